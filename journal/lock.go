package journal

import (
	"fmt"
	"io"
	"os"
	"time"

	"cage/internal/proc"
)

// lingering is how long a lock may outlive its holder: a process that was
// killed while it started another leaves that with its descriptors until its
// exec (or its end) closes them.
const (
	lingering  = 2 * time.Second
	lingerLook = 5 * time.Millisecond
)

// lock takes the lock of an open file and signs it. It reports who holds it
// where somebody does. What the file says of its holder decides nothing but how
// long to wait: the kernel knows whether the lock is held.
func (h host) lock(f *os.File) (held bool, holder proc.ID, err error) {
	for deadline := time.Now().Add(lingering); ; time.Sleep(lingerLook) {
		if held, err = tryLock(f); err != nil {
			return false, proc.ID{}, err
		}
		if !held {
			return false, proc.ID{}, h.sign(f)
		}
		var lives bool
		if holder, lives = h.holder(f); lives || time.Now().After(deadline) {
			return true, holder, nil
		}
	}
}

const signature = "%d %d %d\n"

// sign writes who this is into a lock file.
func (h host) sign(f *os.File) error {
	line := fmt.Appendf(nil, signature, h.self.PID, h.self.Start, h.pids)
	info, err := f.Stat()
	// Not for a new file: ext4 writes what was truncated to nothing back to disk
	// when it is closed (auto_da_alloc), also if it was removed meanwhile.
	if err == nil && info.Size() > int64(len(line)) {
		err = f.Truncate(int64(len(line)))
	}
	if err == nil {
		_, err = f.WriteAt(line, 0)
	}
	if err != nil {
		return fmt.Errorf("sign the lock: %w", err)
	}
	return nil
}

// holder reads who signed a lock file, and whether that process lives as far
// as can be told: in another pid namespace it may.
func (h host) holder(f *os.File) (id proc.ID, lives bool) {
	var namespace uint64
	if _, err := fmt.Fscanf(io.NewSectionReader(f, 0, 1<<10), signature, &id.PID, &id.Start, &namespace); err != nil {
		return proc.ID{}, false
	}
	if namespace != h.pids {
		return proc.ID{}, true
	}
	return id, id.Alive()
}
