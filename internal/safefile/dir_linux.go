package safefile

import (
	"encoding/binary"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// open resolves one name in the directory. Only where the name is a mount
// point of the start is the mount crossed.
func (d *Dir) open(name string, flags int) (int, error) {
	rel := d.join(name)
	if _, ok := d.root.mounts[rel]; ok || d.root.anyMount {
		fd, err := openat2(d.fd, name, flags, confined)
		if !ok {
			return fd, err
		}
		return d.root.onMount(fd, err, rel)
	}
	return openat2(d.fd, name, flags, confined|unix.RESOLVE_NO_XDEV)
}

// Stat returns the state of the entry called name, following nothing.
func (d *Dir) Stat(name string) (Info, error) {
	fd, err := d.open(name, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return Info{}, d.fail("stat", name, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return Info{}, d.fail("stat", name, err)
	}
	return infoOf(&st), nil
}

// Reopen opens the file at rel as Dir.Reopen does.
func (r *Root) Reopen(rel string) (*File, Info, error) {
	if len(r.mounts) == 0 && len(rel) < unix.PathMax {
		return (&Dir{fd: r.fd, root: r}).Reopen(rel)
	}
	return r.reopenIn(rel)
}

// Born returns when the inode of the entry called name was made; zero where the
// file system does not tell. Nobody can set that time.
func (d *Dir) Born(name string) time.Time { return born(d.fd, name, unix.AT_SYMLINK_NOFOLLOW) }

// Born returns when the inode of the file was made; zero where the file system
// does not tell. Nobody can set that time.
func (f *File) Born() time.Time { return born(f.fd, "", unix.AT_EMPTY_PATH) }

func born(fd int, name string, flags int) time.Time {
	var st unix.Statx_t
	if err := unix.Statx(fd, name, flags, unix.STATX_BTIME, &st); err != nil || st.Mask&unix.STATX_BTIME == 0 {
		return time.Time{}
	}
	return time.Unix(st.Btime.Sec, int64(st.Btime.Nsec))
}

// DirToRead opens the directory called name for one ReadDir, which then has
// nothing to open itself.
func (d *Dir) DirToRead(name string) (*Dir, error) {
	fd, err := d.open(name, listFlags)
	if err != nil {
		// One that may not be read can be entered all the same.
		return d.Dir(name)
	}
	return &Dir{fd: fd, root: d.root, rel: d.join(name), listed: true}, nil
}

// listFlags open a directory to be read.
const listFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_NONBLOCK

// DirToRead opens the directory at rel as Dir.DirToRead does.
func (r *Root) DirToRead(rel string) (*Dir, error) {
	if rel == "" {
		return r.Dir(rel)
	}
	fd, err := r.open(rel, listFlags)
	if err != nil {
		return r.Dir(rel)
	}
	return &Dir{fd: fd, root: r, rel: rel, listed: true}, nil
}

// ReadDir returns the entries of the directory in the order of the file
// system. With an error they are those that could be seen.
func (d *Dir) ReadDir() ([]DirEntry, error) {
	if d.listed {
		d.listed = false
		return d.readDir(d.fd)
	}
	fd, err := openat2(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, d.fail("read directory", "", err)
	}
	defer unix.Close(fd)
	return d.readDir(fd)
}

func (d *Dir) readDir(fd int) ([]DirEntry, error) {
	var list listing
	buf := make([]byte, 8<<10)
	for {
		n, err := unix.Getdents(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return list.entries, d.fail("read directory", "", err)
		}
		if n == 0 {
			return list.entries, list.hidden
		}
		list.decode(d, buf[:n])
	}
}

// decode adds what linux_dirent64 records say (getdents64(2)).
func (l *listing) decode(d *Dir, buf []byte) {
	const nameAt = 19
	for len(buf) > nameAt {
		length := binary.NativeEndian.Uint16(buf[16:18])
		kind, known := direntKind(buf[18])
		name := string(buf[nameAt:length])
		if i := strings.IndexByte(name, 0); i >= 0 {
			name = name[:i]
		}
		buf = buf[length:]
		if name == "." || name == ".." {
			continue
		}
		if known {
			l.entries = append(l.entries, DirEntry{Name: name, Kind: kind})
		} else {
			l.look(d, name)
		}
	}
}

func direntKind(t byte) (kind Kind, known bool) {
	switch t {
	case unix.DT_REG:
		return Regular, true
	case unix.DT_LNK:
		return Symlink, true
	case unix.DT_DIR:
		return Directory, true
	case unix.DT_FIFO:
		return FIFO, true
	case unix.DT_SOCK:
		return Socket, true
	case unix.DT_CHR, unix.DT_BLK:
		return Device, true
	default:
		return None, false
	}
}

// BeingWritten reports whether somebody has the file open for writing or
// mapped writable through an open description. It asks for a read lease, which
// the kernel refuses while there is a writer (fcntl(2)); where leases are not
// to be had it reports false.
func (f *File) BeingWritten() bool {
	_, err := unix.FcntlInt(uintptr(f.fd), unix.F_SETLEASE, unix.F_RDLCK)
	if err == nil {
		_, err = unix.FcntlInt(uintptr(f.fd), unix.F_SETLEASE, unix.F_UNLCK)
		return err != nil
	}
	return err == unix.EAGAIN && !f.onNetwork()
}

// onNetwork reports whether the file lies on NFS, which answers EAGAIN for
// every lease that the server did not delegate.
func (f *File) onNetwork() bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(f.fd, &fs) == nil && fs.Type == unix.NFS_SUPER_MAGIC
}

// WatchPath returns a path that names exactly the entry name for as long as
// the returned close function has not been called, for interfaces that take a
// path and would follow a symlink.
func (d *Dir) WatchPath(name string) (string, func(), error) {
	fd, err := d.open(name, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return "", nil, d.fail("open", name, err)
	}
	return selfFD(fd), func() { unix.Close(fd); runtime.KeepAlive(d) }, nil
}
