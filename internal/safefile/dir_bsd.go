//go:build darwin || freebsd || netbsd || openbsd

package safefile

import (
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"
)

// open opens one name in the directory.
func (d *Dir) open(name string, flags int) (int, error) {
	return d.root.step(d.fd, d.join(name), name, flags)
}

// Stat returns the state of the entry called name, following nothing.
func (d *Dir) Stat(name string) (Info, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return Info{}, d.fail("stat", name, err)
	}
	if !d.root.anyMount && uint64(st.Dev) != d.root.device(d.join(name)) {
		return Info{}, d.fail("stat", name, ErrMounted)
	}
	return infoOf(&st), nil
}

// Born returns nothing here: only the number tells one inode from another.
func (d *Dir) Born(string) time.Time { return time.Time{} }

// Born returns nothing here: only the number tells one inode from another.
func (f *File) Born() time.Time { return time.Time{} }

// Reopen opens the file at rel as Dir.Reopen does.
func (r *Root) Reopen(rel string) (*File, Info, error) { return r.reopenIn(rel) }

// DirToRead opens the directory called name for one ReadDir.
func (d *Dir) DirToRead(name string) (*Dir, error) { return d.Dir(name) }

// DirToRead opens the directory at rel for one ReadDir.
func (r *Root) DirToRead(rel string) (*Dir, error) { return r.Dir(rel) }

// ReadDir returns the entries of the directory in the order of the file
// system. With an error they are those that could be seen.
func (d *Dir) ReadDir() ([]DirEntry, error) {
	fd, err := openAt(d.fd, ".", directoryFlags)
	if err != nil {
		return nil, d.fail("read directory", "", err)
	}
	f := os.NewFile(uintptr(fd), path.Join(d.root.path, d.rel))
	defer f.Close()
	names, err := f.Readdirnames(-1)
	list := listing{entries: make([]DirEntry, 0, len(names))}
	for _, name := range names {
		list.look(d, name)
	}
	if err != nil {
		return list.entries, d.fail("read directory", "", err)
	}
	return list.entries, list.hidden
}

// BeingWritten reports false: no kernel here tells whether somebody has a file
// open for writing.
func (f *File) BeingWritten() bool { return false }
