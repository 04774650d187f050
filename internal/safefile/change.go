//go:build linux || darwin || freebsd || netbsd || openbsd

package safefile

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ErrLeft marks the failure of something that was made and could not be taken
// away again.
var ErrLeft = errors.New("what was made is left there")

// Mkdir makes a directory with the given permission bits and owner. An owner
// that may not be set is left, and so is the mode, which then keeps everybody
// out but the owner.
func (d *Dir) Mkdir(name string, perm, uid, gid uint32) error {
	made, err := d.MakeDir(name, perm, uid, gid)
	if err == nil {
		made.Close()
	}
	return err
}

// MakeDir makes a directory as Mkdir does, and opens it. One that cannot be
// opened is removed again; the error is ErrLeft where that fails too.
func (d *Dir) MakeDir(name string, perm, uid, gid uint32) (*Dir, error) {
	if err := unix.Mkdirat(d.fd, name, 0o700); err != nil {
		return nil, d.fail("mkdir", name, err)
	}
	made, err := d.Dir(name)
	if err != nil {
		if left := d.RemoveDir(name); left != nil && !Missing(left) {
			err = fmt.Errorf("%w (%w)", err, ErrLeft)
		}
		return nil, err
	}
	// A stricter directory can hold what belongs in it, none cannot.
	_, _ = made.Own(perm, uid, gid)
	return made, nil
}

// Again opens the same directory once more, wherever it is now.
func (d *Dir) Again() (*Dir, error) {
	fd, err := unix.FcntlInt(uintptr(d.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, d.fail("open again", "", err)
	}
	return &Dir{fd: fd, root: d.root, rel: d.rel}, nil
}

// Own sets owner and permission bits of the directory itself, as far as they
// differ. Why the owner could not be set is returned for itself: the bits are
// set all the same.
func (d *Dir) Own(perm, uid, gid uint32) (unowned, err error) {
	now, err := d.Info()
	if err != nil {
		return nil, err
	}
	if now.UID != uid || now.GID != gid {
		unowned = d.fail("chown", "", chownDir(d.fd, uid, gid))
	}
	return unowned, d.Chmod(perm)
}

// Chmod sets the permission bits of the directory itself.
func (d *Dir) Chmod(perm uint32) error { return d.fail("chmod", "", chmodDir(d.fd, perm)) }

// Remove removes the entry called name if it is no directory.
func (d *Dir) Remove(name string) error {
	return d.fail("remove", name, unix.Unlinkat(d.fd, name, 0))
}

// RemoveDir removes the directory called name if it is empty.
func (d *Dir) RemoveDir(name string) error {
	return d.fail("remove directory", name, unix.Unlinkat(d.fd, name, unix.AT_REMOVEDIR))
}

// Move renames an entry, whatever it is, to a name where nothing stands.
func Move(from *Dir, name string, to *Dir, newName string) error {
	err := renameNew(from, name, to, newName)
	if noRenameFlags(err) {
		// The new name is a random one of ours: nothing can stand there.
		err = unix.Renameat(from.fd, name, to.fd, newName)
	}
	return from.fail("move", name, err)
}

// Staged is a new entry, complete with content and attributes, that has no
// name in any protected directory yet.
type Staged struct {
	node Node
	dir  *Dir // on the mount it was staged for
	fd   int  // unnamed file, -1 for a symlink
	name string
	// Unset names the attributes that could not be set on it.
	Unset []UnsetAttr
}

// UnsetAttr is an attribute that the system refused to set.
type UnsetAttr struct {
	Name string // OwnerAttr, or the name of the extended attribute
	Err  error
}

// Spare is an unnamed file that is made and written before it is needed: both
// takes a file system longer than to give it a name.
type Spare struct{ staged *Staged }

// NewSpare makes a spare that holds a regular file's node, on the mount of dir;
// nil where that cannot be done ahead.
func NewSpare(dir *Dir, node Node) *Spare {
	fd, err := createUnnamed(dir)
	if err != nil {
		return nil
	}
	s := &Staged{node: node, fd: fd}
	if err := s.fill(); err != nil {
		s.Discard()
		return nil
	}
	return &Spare{staged: s}
}

// Used reports whether there is nothing left to take.
func (spare *Spare) Used() bool { return spare == nil || spare.staged == nil }

// Close lets go of a spare that nobody took. A nil one has nothing.
func (spare *Spare) Close() {
	if s := spare.take(); s != nil {
		s.Discard()
	}
}

// take returns the file, nil where there is none.
func (spare *Spare) take() (s *Staged) {
	if spare.Used() {
		return nil
	}
	s, spare.staged = spare.staged, nil
	return s
}

// ErrStaging marks failures to prepare an entry: nothing was changed at its
// path.
var ErrStaging = errors.New("the new entry could not be prepared")

// Stage writes a new entry on the mount of dir, which also lends it a name for
// the moment of an exchange. Its errors are ErrStaging.
func Stage(dir *Dir, node Node) (*Staged, error) {
	var none *Spare
	return none.Stage(dir, node)
}

// Stage does the same with the spare, which must have been made on the same
// mount: where it holds this very node nothing is left to write. A nil one, and
// one that was used, is as good as none.
func (spare *Spare) Stage(dir *Dir, node Node) (*Staged, error) {
	s := &Staged{node: node, dir: dir, fd: -1}
	if node.Kind == Symlink {
		return s, nil
	}
	if err := s.prepare(spare.take()); err != nil {
		s.Discard()
		return nil, s.unprepared(err)
	}
	return s, nil
}

// prepare gives the entry its file, made of another one where there is one.
func (s *Staged) prepare(made *Staged) error {
	if made == nil {
		if err := s.create(); err != nil {
			return err
		}
		return s.fill()
	}
	s.fd = made.fd
	if made.node.is(s.node) {
		s.Unset = made.Unset
		return nil
	}
	if len(made.node.Content) > len(s.node.Content) {
		if err := unix.Ftruncate(s.fd, int64(len(s.node.Content))); err != nil {
			return err
		}
	}
	return s.fill()
}

// is reports whether two nodes are one and the same, down to the memory that
// holds the content.
func (n Node) is(other Node) bool {
	return n.Kind == other.Kind && n.Perm == other.Perm && n.UID == other.UID && n.GID == other.GID &&
		n.MTime == other.MTime && SameAttrs(n.Attrs, other.Attrs) &&
		len(n.Content) == len(other.Content) && unsafe.SliceData(n.Content) == unsafe.SliceData(other.Content)
}

func (s *Staged) unprepared(err error) error {
	return fmt.Errorf("%w: %w", ErrStaging, s.dir.fail("stage", "", err))
}

// fill writes content and attributes, the time last because writing moves it.
func (s *Staged) fill() error {
	if err := writeAll(s.fd, s.node.Content); err != nil {
		return err
	}
	if err := s.dress(); err != nil {
		return err
	}
	return setTime(s.fd, s.node.MTime)
}

// dress sets owner, mode and attributes. The owner goes first because a chown
// clears setuid and setgid.
func (s *Staged) dress() error {
	if err := s.own(); err != nil {
		return err
	}
	if err := unix.Fchmod(s.fd, s.node.Perm); err != nil {
		return err
	}
	return s.setAttrs()
}

// Dress gives the file, which has the node's mode, its owner and attributes, and
// returns those that the system refused to set.
func (f *File) Dress(node Node) ([]UnsetAttr, error) {
	s := Staged{node: node, fd: f.fd}
	err := s.own()
	if err == nil && len(s.Unset) == 0 {
		err = unix.Fchmod(s.fd, node.Perm) // a chown clears setuid and setgid
	}
	if err == nil {
		err = s.setAttrs()
	}
	return s.Unset, f.fail("dress", err)
}

// own sets the owner where it differs: a directory with the setgid bit gives
// new files its own group.
func (s *Staged) own() error {
	var st unix.Stat_t
	if err := unix.Fstat(s.fd, &st); err != nil {
		return err
	}
	if st.Uid == s.node.UID && st.Gid == s.node.GID {
		return nil
	}
	return s.note(OwnerAttr, unix.Fchown(s.fd, int(s.node.UID), int(s.node.GID)))
}

// setAttrs gives the file the node's attributes and no others: a directory with
// a default access control list gives new files one.
func (s *Staged) setAttrs() error {
	file := File{fd: s.fd}
	attrs, err := file.Attrs()
	if err != nil {
		return err
	}
	for _, attr := range attrs {
		if !slices.ContainsFunc(s.node.Attrs, attr.sameName) {
			if err := s.note(attr.Name, removeAttr(s.fd, attr.Name)); err != nil {
				return err
			}
		}
	}
	for _, attr := range s.node.Attrs {
		if err := s.note(attr.Name, setAttr(s.fd, attr)); err != nil {
			return err
		}
	}
	return nil
}

func (a Attr) sameName(b Attr) bool { return a.Name == b.Name }

// note keeps in mind that an attribute could not be set. Where there was only
// no room for it, that is an error.
func (s *Staged) note(name string, err error) error {
	if err == unix.ENOSPC || err == unix.EDQUOT {
		return err
	}
	if err != nil {
		s.Unset = append(s.Unset, UnsetAttr{Name: name, Err: err})
	}
	return nil
}

func writeAll(fd int, content []byte) error {
	for offset := 0; offset < len(content); {
		n, err := unix.Pwrite(fd, content[offset:], int64(offset))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		offset += n
	}
	return nil
}

// Place gives the staged entry a name where nothing stands; the error is
// fs.ErrExist where something does.
func (s *Staged) Place(dir *Dir, name string) error {
	var err error
	switch {
	case s.node.Kind == Symlink:
		err = s.link(dir, name)
	case s.name != "":
		err = renameNew(s.dir, s.name, dir, name)
		if err == nil {
			s.name = ""
		}
		if noRenameFlags(err) {
			err = unix.Linkat(s.dir.fd, s.name, dir.fd, name, 0)
		}
	default:
		err = s.link(dir, name)
	}
	return dir.fail("place", name, err)
}

// link makes the entry appear under a name, which must be free: a symlink is
// made there, an unnamed file linked.
func (s *Staged) link(dir *Dir, name string) error {
	if s.node.Kind != Symlink {
		return s.linkFile(dir, name)
	}
	if err := unix.Symlinkat(s.node.Link, dir.fd, name); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstatat(dir.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if st.Uid != s.node.UID || st.Gid != s.node.GID {
		err := unix.Fchownat(dir.fd, name, int(s.node.UID), int(s.node.GID), unix.AT_SYMLINK_NOFOLLOW)
		if err := s.note(OwnerAttr, err); err != nil {
			return err
		}
	}
	return setLinkTime(dir.fd, name, s.node.MTime)
}

// Exchange swaps the staged entry in for whatever stands at name and leaves
// that, untouched, under the returned name in the staging directory. It is one
// atomic step where the file system can, else what stood there is moved out
// first and the new entry placed without replacing.
func (s *Staged) Exchange(dir *Dir, name string) (displaced string, err error) {
	if err := s.lendName(); err != nil {
		return "", s.unprepared(err)
	}
	err = exchange(s.dir, s.name, dir, name)
	if err == nil {
		displaced, s.name = s.name, ""
		return displaced, nil
	}
	if !noRenameFlags(err) {
		return "", dir.fail("exchange", name, err)
	}
	aside := Token()
	if err := Move(dir, name, s.dir, aside); err != nil {
		return "", err
	}
	return aside, s.Place(dir, name)
}

// lendName gives the staged entry a name in the staging directory.
func (s *Staged) lendName() error {
	if s.name != "" {
		return nil
	}
	token := Token()
	err := s.link(s.dir, token)
	s.name = token // a symlink may stand there even so
	return err
}

// Discard releases the staged entry and removes any name it still has in the
// staging directory. Once placed or exchanged the entry itself stays. It returns
// the name that could not be removed, empty where there is none.
func (s *Staged) Discard() (left string) {
	if s.name != "" {
		if err := unix.Unlinkat(s.dir.fd, s.name, 0); err != nil && err != unix.ENOENT {
			left = s.name
		}
		s.name = ""
	}
	if s.fd >= 0 {
		unix.Close(s.fd)
		s.fd = -1
	}
	return left
}

// errNotOriginal is returned where the file that stands at a name is not the
// one that a write in place was meant for.
var errNotOriginal = errors.New("another file stands there, or a link to it was made")

// heldBytes bounds what Overwrite holds of the content that it replaces: 64 MiB.
const heldBytes = 64 << 20

// Overwrite writes the node's content and attributes into the file that stands
// at name, for places where no entry can be exchanged: mount points, immutable
// directories, full disks. It does so only if that is the original inode with
// its original number of links, and only once the space is reserved: a write
// that ran out of space half way would leave a torn file. What stood in the
// file is returned; it is nil where that was more than 64 MiB.
func Overwrite(dir *Dir, name string, node Node, original Inode, links uint64) (old []byte, unset []UnsetAttr, err error) {
	f, info, err := dir.OpenWrite(name)
	if errors.Is(err, fs.ErrPermission) && dir.grant(name, original, node.Perm) {
		f, info, err = dir.OpenWrite(name)
	}
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if info.Inode != original || info.Nlink != links {
		return nil, nil, dir.fail("overwrite", name, errNotOriginal)
	}
	if old, err = f.readAll(info.Size); err != nil {
		return nil, nil, err
	}
	if err := reserve(f.fd, info.Size, int64(len(node.Content))); err != nil {
		return nil, nil, f.fail("reserve space", err)
	}
	s := Staged{node: node, fd: f.fd}
	if err := s.fill(); err != nil {
		return old, s.Unset, f.fail("overwrite", err)
	}
	if err := unix.Ftruncate(f.fd, int64(len(node.Content))); err != nil {
		return old, s.Unset, f.fail("truncate", err)
	}
	return old, s.Unset, f.fail("set time", setTime(f.fd, node.MTime))
}

// readAll reads a file that is not larger than what is held.
func (f *File) readAll(size int64) ([]byte, error) {
	if size > heldBytes {
		return nil, nil
	}
	content := make([]byte, size)
	n, err := f.ReadAt(content, 0)
	return content[:n], err
}

// Unname opens the regular file called name and removes the name, if it still
// names that file.
func Unname(dir *Dir, name string) (*File, Info, error) {
	f, info, err := dir.Open(name)
	if err != nil {
		return nil, info, err
	}
	if again, err := dir.Stat(name); err != nil || again.Inode != info.Inode {
		f.Close()
		return nil, info, dir.fail("remove", name, errNotOriginal)
	}
	if err := dir.Remove(name); err != nil {
		f.Close()
		return nil, info, err
	}
	return f, info, nil
}

// SameDir reports whether rel still leads to the directory d from its root. It
// does so too where the look fails: that proves nothing.
func (d *Dir) SameDir() bool {
	again, err := d.root.Dir(d.rel)
	if err != nil {
		return Unseen(err)
	}
	defer again.Close()
	a, errA := d.Info()
	b, errB := again.Info()
	return errA == nil && errB == nil && a.Inode == b.Inode
}

// Abs returns the absolute path of the entry called name by the path that the
// directory was opened by.
func (d *Dir) Abs(name string) string { return path.Join(d.root.path, d.rel, name) }
