//go:build unix

package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"cage/internal/safefile"

	"golang.org/x/sys/unix"
)

// private refuses a folder that is a link or somebody else's, or that others
// may enter.
func private(folder string) error {
	info, err := os.Lstat(folder)
	if err != nil {
		return fmt.Errorf("look at the journal's folder: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || !info.IsDir():
		return &CorruptError{Folder: folder, Reason: "it is no folder"}
	case int(stat.Uid) != os.Geteuid():
		return &CorruptError{Folder: folder, Reason: "it belongs to another user"}
	case info.Mode().Perm()&0o077 != 0:
		return &CorruptError{Folder: folder, Reason: "others may enter it"}
	}
	return nil
}

// privateFile refuses anything but a regular file of this user's that nobody
// else may read or write.
func privateFile(info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || !info.Mode().IsRegular():
		return errors.New("is no regular file")
	case int(stat.Uid) != os.Geteuid():
		return errors.New("belongs to another user")
	case info.Mode().Perm()&0o077 != 0:
		return errors.New("is open to others")
	case stat.Nlink > 1: // none is left to one that was removed meanwhile
		return errors.New("has another name")
	}
	return nil
}

// openFile opens a regular file of the journal and nothing that a link leads
// to.
func openFile(dir *os.Root, name string) (*os.File, error) {
	f, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	there, errThere := dir.Lstat(name)
	mine, errMine := f.Stat()
	err = errors.Join(errThere, errMine)
	if err == nil && !os.SameFile(there, mine) {
		err = errors.New("is a link")
	}
	if err == nil {
		err = privateFile(mine)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s %w", name, err)
	}
	return f, nil
}

func inodeOf(dir *os.Root) (safefile.Inode, error) {
	info, err := dir.Stat(".")
	if err != nil {
		return safefile.Inode{}, err
	}
	inode, _ := inodeOfInfo(info)
	return inode, nil
}

func inodeOfInfo(info fs.FileInfo) (safefile.Inode, bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return safefile.Inode{}, false
	}
	return safefile.Inode{Dev: uint64(stat.Dev), Ino: stat.Ino}, true
}

// tryLock takes the lock and reports whether somebody else holds it. The lock
// belongs to the open file and goes with it, whoever dies how.
func tryLock(f *os.File) (held bool, err error) { return flock(f, unix.LOCK_EX) }

// shareLock does the same for a lock that several can have at once, and nobody
// beside who took it for himself.
func shareLock(f *os.File) (held bool, err error) { return flock(f, unix.LOCK_SH) }

func flock(f *os.File, how int) (held bool, err error) {
	for {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		switch {
		case err == nil:
			return false, nil
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return true, nil
		default:
			return false, fmt.Errorf("lock %s: %w", f.Name(), err)
		}
	}
}

// trace is what tells whether somebody touched a file. Of its times only the
// last is beyond everybody's reach: touch(1) sets the others at will.
type trace struct {
	inode   safefile.Inode
	size    int64
	mode    fs.FileMode
	changed time.Time
}

func traceOf(info fs.FileInfo) trace {
	inode, _ := inodeOfInfo(info)
	return trace{inode: inode, size: info.Size(), mode: info.Mode(), changed: changeTime(info)}
}
