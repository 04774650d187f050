//go:build linux || darwin || freebsd || netbsd || openbsd

package safefile

import (
	"cmp"
	"errors"
	"os"
	"path"
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
	// listed says that the descriptor itself can be read, once.
	listed bool
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

// Dir opens the directory called name.
func (d *Dir) Dir(name string) (*Dir, error) {
	fd, err := d.open(name, directoryFlags)
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
	// Err is why a look that was needed for the kind said nothing.
	Err error
}

// listing is what was read of a directory.
type listing struct {
	entries []DirEntry
	// hidden is the first error that says that entries cannot be seen.
	hidden error
}

// look adds an entry whose kind the directory did not tell.
func (l *listing) look(d *Dir, name string) {
	info, err := d.Stat(name)
	switch {
	case Absent(err):
	case err == nil, errors.Is(err, ErrMounted):
		l.entries = append(l.entries, DirEntry{Name: name, Kind: info.Kind})
	case Hidden(err):
		l.hidden = cmp.Or(l.hidden, err)
	default:
		l.entries = append(l.entries, DirEntry{Name: name, Err: err})
	}
}

// File is an open regular file.
type File struct {
	fd   int
	root *Root
	dir  string
	name string
}

// Open opens the regular file called name for reading. It never waits: not for
// a FIFO's writer (only regular files are opened), not for a lease holder
// (ErrBusy). The returned Info is of the very file that was opened.
func (d *Dir) Open(name string) (*File, Info, error) {
	return d.openFile(name, unix.O_RDONLY)
}

// Reopen opens what was a regular file before, like Open but for the order: the
// type is looked at afterwards, which is half the work. A FIFO or a device that
// took the file's place is opened, without waiting, and let go again: what
// stands in for a protected file has no claim to be spared that.
func (d *Dir) Reopen(name string) (*File, Info, error) {
	f, info, err := d.openAny(name, unix.O_RDONLY)
	if err == nil || info.Kind != None {
		return f, info, err
	}
	seen, unseen := d.Stat(name)
	switch {
	case unseen != nil:
		return nil, Info{}, unseen
	case seen.Kind != Regular:
		return nil, seen, d.fail("open", name, unix.EINVAL)
	default:
		return nil, seen, err
	}
}

// reopenIn does what Reopen does, in the directory of rel.
func (r *Root) reopenIn(rel string) (*File, Info, error) {
	dir, err := r.Dir(parent(rel))
	if err != nil {
		return nil, Info{}, err
	}
	defer dir.Close()
	return dir.Reopen(path.Base(rel))
}

// OpenWrite opens the regular file called name for reading and writing in
// place, without changing it.
func (d *Dir) OpenWrite(name string) (*File, Info, error) {
	return d.openFile(name, unix.O_RDWR)
}

func (d *Dir) openFile(name string, access int) (*File, Info, error) {
	// The type is looked at first: opening a device can have effects, and a
	// FIFO or socket has no content.
	info, err := d.Stat(name)
	if err != nil {
		return nil, Info{}, err
	}
	if info.Kind != Regular {
		return nil, info, d.fail("open", name, unix.EINVAL)
	}
	f, opened, err := d.openAny(name, access)
	if opened.Kind == None {
		return nil, info, err
	}
	return f, opened, err
}

// openAny opens what stands at name without waiting, and keeps it if it is a
// regular file. The Info is of what was opened.
func (d *Dir) openAny(name string, access int) (*File, Info, error) {
	fd, err := d.open(name, access|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_NOCTTY)
	if err != nil {
		return nil, Info{}, d.fail("open", name, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, Info{}, d.fail("stat", name, err)
	}
	info := infoOf(&st)
	if info.Kind != Regular {
		unix.Close(fd)
		return nil, info, d.fail("open", name, unix.EINVAL)
	}
	return &File{fd: fd, root: d.root, dir: d.rel, name: name}, info, nil
}

// Close releases the file.
func (f *File) Close() error { return unix.Close(f.fd) }

func (f *File) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: op, Path: path.Join(f.root.path, f.dir, f.name), Err: err}
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
		n, err := f.ReadSome(buf[total:], offset+int64(total))
		if err != nil {
			return total, err
		}
		if n == 0 {
			break
		}
		total += n
	}
	return total, nil
}

// ReadSome reads what one system call gives: at the end of the file nothing,
// before it one byte at least.
func (f *File) ReadSome(buf []byte, offset int64) (int, error) {
	for {
		n, err := unix.Pread(f.fd, buf, offset)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return 0, f.fail("read", err)
		}
		return n, nil
	}
}

// Attrs returns the user's extended attributes and access control lists,
// sorted by name. A file system without them has none.
func (f *File) Attrs() ([]Attr, error) {
	names, err := attrNames(f.fd)
	if err != nil {
		return nil, f.fail("list extended attributes", err)
	}
	var attrs []Attr
	for _, name := range names {
		if !KeepsAttr(name) {
			continue
		}
		value, err := attrValue(f.fd, name)
		if err == errNoAttr {
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
