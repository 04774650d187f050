package watch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"cage/internal/safefile"
	"cage/rules"

	"golang.org/x/sys/unix"
)

// inodeMask is what an inode watch tells: writing, the end of writing and of a
// mapping, attributes (also the number of links), and that the file left its
// place.
const inodeMask = unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_ATTRIB | unix.IN_MOVE_SELF | unix.IN_DELETE_SELF

// inodes is the layer of watches on the protected files themselves. Watches
// are set only under Watcher.arming; the lock here lets the others look.
type inodes struct {
	mu     sync.Mutex
	source *os.File // nil where no instance could be had
	fd     int
	// at and paths say which watch is on the file at which path; several
	// protected paths can be names of one file.
	at    map[rules.Path]int32
	paths map[int32][]rules.Path
}

// renew opens an instance where there is none, and returns it for its events
// to be read.
func (n *inodes) renew() (*os.File, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.source != nil {
		return nil, nil
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	n.source, n.fd = os.NewFile(uintptr(fd), "inotify"), fd
	n.at, n.paths = make(map[rules.Path]int32), make(map[int32][]rules.Path)
	return n.source, nil
}

func (n *inodes) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.paths)
}

func (n *inodes) armed(p rules.Path) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, ok := n.at[p]
	return ok
}

// arm sets the watch of p on the entry that stands in the directory now, and
// gives up the one on what stood there before.
func (n *inodes) arm(dir *safefile.Dir, p rules.Path) error {
	name, release, err := dir.WatchPath(p.Base())
	if err != nil {
		n.disarm(p)
		return err
	}
	defer release()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.source == nil {
		return errNoInstance
	}
	added, err := unix.InotifyAddWatch(n.fd, name, inodeMask)
	if err != nil {
		n.forget(p)
		return os.NewSyscallError("inotify_add_watch", err)
	}
	wd := int32(added)
	if old, ok := n.at[p]; ok && old == wd {
		return nil
	}
	n.forget(p)
	n.at[p] = wd
	n.paths[wd] = append(n.paths[wd], p)
	return nil
}

func (n *inodes) disarm(p rules.Path) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.forget(p)
}

// forget gives up the watch of p, unless it is another path's too.
func (n *inodes) forget(p rules.Path) {
	wd, ok := n.at[p]
	if !ok {
		return
	}
	delete(n.at, p)
	n.paths[wd] = slices.DeleteFunc(n.paths[wd], func(q rules.Path) bool { return q == p })
	if len(n.paths[wd]) == 0 {
		delete(n.paths, wd)
		// An error says that the watch died before.
		_, _ = unix.InotifyRmWatch(n.fd, uint32(wd))
	}
}

// died notes that the kernel removed a watch.
func (n *inodes) died(wd int32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.paths[wd] {
		delete(n.at, p)
	}
	delete(n.paths, wd)
}

// watchedBy returns the paths that a watch is for. The slice is not shared.
func (n *inodes) watchedBy(wd int32) []rules.Path {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.paths[wd])
}

func (n *inodes) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.source != nil {
		n.source.Close()
		n.source, n.at, n.paths = nil, nil, nil
	}
}

// readInodes reads the events of the instance until it is closed.
func (w *Watcher) readInodes(from *os.File) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if errors.Is(err, os.ErrClosed) {
			return
		}
		if err != nil {
			// inotify(7) knows no reading error that would pass.
			w.hints.fail(fmt.Errorf("read events: %w", err))
			w.ledger.degrade(Lack{Reason: "the inode watches failed: " + safefile.ErrnoName(err)})
			w.lose(false)
			return
		}
		w.inodeEvents(buf[:n])
	}
}

// inodeEvents decodes struct inotify_event (inotify(7)).
func (w *Watcher) inodeEvents(buf []byte) {
	for len(buf) >= unix.SizeofInotifyEvent {
		wd := int32(binary.NativeEndian.Uint32(buf))
		mask := binary.NativeEndian.Uint32(buf[4:])
		length := binary.NativeEndian.Uint32(buf[12:])
		buf = buf[unix.SizeofInotifyEvent+length:]
		if mask&unix.IN_Q_OVERFLOW != 0 {
			// Names come from the other layer: none was lost.
			w.ledger.overflow()
			w.lose(false)
			continue
		}
		w.inodeEvent(wd, mask)
	}
}

func (w *Watcher) inodeEvent(wd int32, mask uint32) {
	paths := w.inodes.watchedBy(wd)
	if mask&unix.IN_IGNORED != 0 {
		w.inodes.died(wd)
	}
	if mask&(unix.IN_IGNORED|unix.IN_UNMOUNT|unix.IN_DELETE_SELF|unix.IN_MOVE_SELF) != 0 {
		w.chores.rearm(paths...)
	}
	w.hints.add(paths...)
}
