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

// lock takes the lock of an open file with try, which is tryLock or shareLock. It
// reports who holds it where somebody does. What the file says of its holder
// decides nothing but how long to wait: the kernel knows whether the lock is held.
func (h host) lock(f *os.File, try func(*os.File) (bool, error)) (held bool, by holder, err error) {
	for deadline := time.Now().Add(lingering); ; time.Sleep(lingerLook) {
		if held, err = try(f); err != nil || !held {
			return false, holder{}, err
		}
		if by = h.holder(f); by.lives || time.Now().After(deadline) {
			return true, by, nil
		}
	}
}

const signature = "%d %d %d\n"

// sign writes who this is into a lock file. The old text is written over, which
// takes no room: a full disk must not keep a recovery from starting, and if it
// fails all the same nobody but a message misses it.
func (h host) sign(f *os.File) {
	line := fmt.Appendf(nil, signature, h.self.PID, h.self.Start, h.pids)
	if _, err := f.WriteAt(line, 0); err != nil {
		return
	}
	// Not for a new file: ext4 writes what was truncated to nothing back to disk
	// when it is closed (auto_da_alloc), also if it was removed meanwhile.
	if info, err := f.Stat(); err == nil && info.Size() > int64(len(line)) {
		_ = f.Truncate(int64(len(line))) // what follows the line is not read
	}
}

// holder is who signed a lock file.
type holder struct {
	id proc.ID
	// lives says that it does, and holds the lock, as far as can be told: in
	// another pid namespace it may.
	lives bool
}

func (h host) holder(f *os.File) holder {
	var by holder
	var namespace uint64
	if _, err := fmt.Fscanf(io.NewSectionReader(f, 0, 1<<10), signature, &by.id.PID, &by.id.Start, &namespace); err != nil {
		return holder{}
	}
	if namespace != h.pids {
		return holder{lives: true}
	}
	// Anybody can have written that; the kernel knows who took the lock.
	taker, known := kernelHolder(f)
	by.lives = by.id.Alive() && (!known || taker == by.id.PID)
	return by
}
