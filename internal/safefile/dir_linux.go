package safefile

import (
	"encoding/binary"
	"errors"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Dir is an open directory beneath a Root. It stays the same directory
// wherever it is moved.
type Dir struct {
	fd   int
	root *Root
	rel  string
}

// Close releases the directory.
func (d *Dir) Close() error { return unix.Close(d.fd) }

// Rel returns the path beneath the root that the directory was opened by.
func (d *Dir) Rel() string { return d.rel }

// Info returns the state of the directory itself.
func (d *Dir) Info() (Info, error) {
	var st unix.Stat_t
	if err := unix.Fstat(d.fd, &st); err != nil {
		return Info{}, d.fail("stat", "", err)
	}
	return infoOf(&st), nil
}

func (d *Dir) fail(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: op, Path: path.Join(d.root.path, d.rel, name), Err: err}
}

func (d *Dir) join(name string) string {
	if d.rel == "" {
		return name
	}
	return d.rel + "/" + name
}

// open resolves one name in the directory. Only where the name is a mount
// point of the start is the mount crossed.
func (d *Dir) open(name string, flags uint64) (int, error) {
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

// Dir opens the directory called name.
func (d *Dir) Dir(name string) (*Dir, error) {
	fd, err := d.open(name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return nil, d.fail("open directory", name, err)
	}
	return &Dir{fd: fd, root: d.root, rel: d.join(name)}, nil
}

// Readlink returns the target of the symlink called name.
func (d *Dir) Readlink(name string) (string, error) {
	buf := make([]byte, 256)
	for {
		n, err := unix.Readlinkat(d.fd, name, buf)
		if err != nil {
			return "", d.fail("readlink", name, err)
		}
		if n < len(buf) {
			return string(buf[:n]), nil
		}
		buf = make([]byte, 2*len(buf))
	}
}

// DirEntry is one name in a directory with the kind the directory records for
// it.
type DirEntry struct {
	Name string
	Kind Kind
}

// ReadDir returns the entries of the directory in the order of the file
// system.
func (d *Dir) ReadDir() ([]DirEntry, error) {
	fd, err := openat2(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, d.fail("read directory", "", err)
	}
	defer unix.Close(fd)
	var entries []DirEntry
	buf := make([]byte, 32<<10)
	for {
		n, err := unix.Getdents(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return entries, d.fail("read directory", "", err)
		}
		if n == 0 {
			return entries, nil
		}
		entries = d.appendEntries(entries, buf[:n])
	}
}

// appendEntries decodes linux_dirent64 records (getdents64(2)).
func (d *Dir) appendEntries(entries []DirEntry, buf []byte) []DirEntry {
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
		if !known {
			info, err := d.Stat(name)
			if err != nil && !errors.Is(err, ErrMounted) {
				continue
			}
			kind = info.Kind
		}
		entries = append(entries, DirEntry{Name: name, Kind: kind})
	}
	return entries
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

// File is an open regular file.
type File struct {
	fd   int
	name string
}

// Open opens the regular file called name for reading. It never waits: not for
// a FIFO's writer (only regular files are opened), not for a lease holder
// (ErrBusy). The returned Info is of the very file that was opened.
func (d *Dir) Open(name string) (*File, Info, error) {
	return d.openFile(name, unix.O_RDONLY)
}

// OpenWrite opens the regular file called name for reading and writing in
// place, without changing it.
func (d *Dir) OpenWrite(name string) (*File, Info, error) {
	return d.openFile(name, unix.O_RDWR)
}

func (d *Dir) openFile(name string, access uint64) (*File, Info, error) {
	// The type is looked at first: opening a device can have effects, and a
	// FIFO or socket has no content.
	info, err := d.Stat(name)
	if err != nil {
		return nil, Info{}, err
	}
	if info.Kind != Regular {
		return nil, info, d.fail("open", name, unix.EINVAL)
	}
	fd, err := d.open(name, access|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_NOCTTY)
	if err != nil {
		return nil, info, d.fail("open", name, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, info, d.fail("stat", name, err)
	}
	f := &File{fd: fd, name: path.Join(d.root.path, d.rel, name)}
	if info = infoOf(&st); info.Kind != Regular {
		f.Close()
		return nil, info, d.fail("open", name, unix.EINVAL)
	}
	return f, info, nil
}

// Close releases the file.
func (f *File) Close() error { return unix.Close(f.fd) }

func (f *File) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: op, Path: f.name, Err: err}
}

// Info returns the state of the file now.
func (f *File) Info() (Info, error) {
	var st unix.Stat_t
	if err := unix.Fstat(f.fd, &st); err != nil {
		return Info{}, f.fail("stat", err)
	}
	return infoOf(&st), nil
}

// ReadAt fills buf from the offset and returns how much there was; at the end
// of the file that is less than asked for, without an error.
func (f *File) ReadAt(buf []byte, offset int64) (int, error) {
	total := 0
	for total < len(buf) {
		n, err := unix.Pread(f.fd, buf[total:], offset+int64(total))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return total, f.fail("read", err)
		}
		if n == 0 {
			break
		}
		total += n
	}
	return total, nil
}

// Attrs returns the user's extended attributes and access control lists,
// sorted by name. A file system without them has none.
func (f *File) Attrs() ([]Attr, error) {
	var small [512]byte
	names := small[:]
	n, err := unix.Flistxattr(f.fd, names)
	for err == unix.ERANGE {
		names = make([]byte, 2*len(names))
		n, err = unix.Flistxattr(f.fd, names)
	}
	if err == unix.EOPNOTSUPP || err == unix.EPERM || n == 0 && err == nil {
		return nil, nil
	}
	if err != nil {
		return nil, f.fail("list extended attributes", err)
	}
	var attrs []Attr
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names[:n]), "\x00"), "\x00") {
		if !keptAttr(name) {
			continue
		}
		value, err := f.attr(name)
		if err == unix.ENODATA {
			continue
		}
		if err != nil {
			return nil, f.fail("read extended attribute", err)
		}
		attrs = append(attrs, Attr{Name: name, Value: value})
	}
	slices.SortFunc(attrs, func(a, b Attr) int { return strings.Compare(a.Name, b.Name) })
	return attrs, nil
}

func (f *File) attr(name string) ([]byte, error) {
	value := make([]byte, 256)
	for {
		n, err := unix.Fgetxattr(f.fd, name, value)
		if err == nil {
			return value[:n:n], nil
		}
		if err != unix.ERANGE {
			return nil, err
		}
		// 64 KiB is the kernel's limit for one value (xattr(7)).
		if len(value) > 64<<10 {
			return nil, err
		}
		value = make([]byte, 4*len(value))
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
