//go:build linux || darwin || freebsd || netbsd || openbsd

package safefile

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"cage/internal/limittest"

	"golang.org/x/sys/unix"
)

// TestNothingIsFollowed puts a symlink in every component of a path.
func TestNothingIsFollowed(t *testing.T) {
	s := newScene(t)
	s.write("real/dir/file", "x")
	s.must(os.Symlink("real", s.abs("link")))
	s.must(os.Symlink("/", s.abs("slash")))
	s.must(os.Symlink("..", s.abs("up")))
	s.must(os.Symlink("file", s.abs("real/dir/alias")))
	for _, rel := range []string{"link", "link/dir", "slash", "slash/etc", "up", "real/dir/file", "real/dir/alias", "real/dir/file/x"} {
		if dir, err := s.root.Dir(rel); err == nil {
			dir.Close()
			t.Errorf("%s was opened as a directory", rel)
		} else if !Obstructed(err) {
			t.Errorf("%s: %v is not told as an obstruction", rel, err)
		}
	}
	for _, rel := range []string{"../" + s.path, "real/../../x", "..", "/etc"} {
		if dir, err := s.root.Dir(rel); err == nil && runsAbove(s, dir) {
			t.Errorf("%s leads out of the root", rel)
		}
	}
	dir := s.dir("real/dir")
	if info, err := dir.Stat("alias"); err != nil || info.Kind != Symlink {
		t.Errorf("stat of a symlink: %v, %v", info.Kind, err)
	}
	if target, err := dir.Readlink("alias"); err != nil || target != "file" {
		t.Errorf("readlink: %q, %v", target, err)
	}
	for _, open := range []func(string) (*File, Info, error){dir.Open, dir.OpenWrite} {
		if f, _, err := open("alias"); err == nil {
			f.Close()
			t.Error("a symlink was opened")
		}
	}
	if _, err := s.root.Dir("missing/dir"); !Missing(err) {
		t.Errorf("a missing directory: %v", err)
	}
	if _, err := OpenRoot(s.abs("link")); err == nil {
		t.Error("a root was opened through a symlink")
	}
}

// runsAbove reports whether the directory is none of the root's.
func runsAbove(s *scene, dir *Dir) bool {
	defer dir.Close()
	info, err := dir.Info()
	s.must(err)
	return info.Inode != s.root.Inode()
}

// TestNames takes names that are no text.
func TestNames(t *testing.T) {
	s := newScene(t)
	names := []string{"new\nline", "esc\x1b[2J", " ", "-rf", "...", "\xff\xfe", strings.Repeat("n", 255)}
	for _, name := range names {
		dir := s.mkdir("d/" + name)
		staged := s.stage(dir, node("content of "+name))
		if err := staged.Place(dir, name); err != nil {
			if errors.Is(err, unix.EILSEQ) {
				continue // some systems take no such bytes
			}
			t.Errorf("%q: %v", name, err)
			continue
		}
		staged.Discard()
		f, info, err := dir.Open(name)
		s.must(err)
		buf := make([]byte, info.Size+10)
		n, err := f.ReadAt(buf, 0)
		s.must(err)
		if string(buf[:n]) != "content of "+name {
			t.Errorf("%q holds %q", name, buf[:n])
		}
		f.Close()
		entries, err := dir.ReadDir()
		s.must(err)
		if len(entries) != 1 || entries[0] != (DirEntry{Name: name, Kind: Regular}) {
			t.Errorf("entries %+v", entries)
		}
	}
	entries, err := s.dir("d").ReadDir()
	s.must(err)
	if len(entries) != len(names) {
		t.Errorf("%d entries of %d", len(entries), len(names))
	}
}

// TestDeepPath works where no path reaches.
func TestDeepPath(t *testing.T) {
	s := newScene(t)
	name := strings.Repeat("d", 100)
	dir, err := s.root.Dir("")
	s.must(err)
	for range 90 {
		s.must(dir.Mkdir(name, 0o755, uint32(os.Geteuid()), uint32(os.Getegid())))
		next, err := dir.Dir(name)
		s.must(err)
		dir.Close()
		dir = next
	}
	defer dir.Close()
	s.must(s.stage(dir, node("deep")).Place(dir, "file"))
	if dir.Rel() != strings.TrimSuffix(strings.Repeat(name+"/", 90), "/") {
		t.Error("the directory does not know its path")
	}
	again, err := s.root.Dir(dir.Rel())
	s.must(err)
	defer again.Close()
	if info, err := again.Stat("file"); err != nil || info.Kind != Regular || info.Size != 4 {
		t.Errorf("%+v, %v", info, err)
	}
	if !dir.SameDir() {
		t.Error("the directory is another one")
	}
	if _, err := s.root.Dir(dir.Rel() + "/missing/" + dir.Rel()); !Missing(err) {
		t.Errorf("a missing directory: %v", err)
	}
	if _, err := s.root.Dir(strings.Repeat("x", 5000)); err == nil {
		t.Error("a name that is too long was opened")
	}
}

// TestExchange swaps entries of every type.
func TestExchange(t *testing.T) {
	for _, old := range []Kind{None, Regular, Symlink, Directory, FIFO} {
		for _, next := range []Node{node("new"), link("new-target")} {
			t.Run(old.String()+" for "+next.Kind.String(), func(t *testing.T) {
				s := newScene(t)
				staging, dir := s.mkdir("stage"), s.mkdir("dir")
				s.put(old, "dir/name")
				staged := s.stage(staging, next)
				displaced, err := staged.Exchange(dir, "name")
				staged.Discard()
				if old == None {
					if !Missing(err) || displaced != "" {
						t.Errorf("exchange with nothing: %q, %v", displaced, err)
					}
					s.empty("stage")
					s.empty("dir")
					return
				}
				s.must(err)
				s.is("dir", "name", next.Kind)
				s.is("stage", displaced, old)
				switch old {
				case Regular:
					s.holds("stage/"+displaced, "old")
				case Directory:
					s.holds("stage/"+displaced+"/inside", "old")
				}
				if next.Kind == Regular {
					s.holds("dir/name", "new")
				}
				if entries, _ := os.ReadDir(s.abs("stage")); len(entries) != 1 {
					t.Errorf("%d entries are left in the staging directory", len(entries))
				}
			})
		}
	}
}

func (s *scene) is(dir, name string, want Kind) {
	s.Helper()
	info, err := s.dir(dir).Stat(name)
	s.must(err)
	if info.Kind != want {
		s.Errorf("%s/%s is a %v, want a %v", dir, name, info.Kind, want)
	}
}

// TestPlaceReplacesNothing places onto entries of every type.
func TestPlaceReplacesNothing(t *testing.T) {
	for _, old := range []Kind{Regular, Symlink, Directory, FIFO} {
		for _, next := range []Node{node("new"), link("new-target")} {
			s := newScene(t)
			staging, dir := s.mkdir("stage"), s.mkdir("dir")
			s.put(old, "dir/name")
			staged := s.stage(staging, next)
			if err := staged.Place(dir, "name"); !errors.Is(err, fs.ErrExist) {
				t.Errorf("a %v onto a %v: %v", next.Kind, old, err)
			}
			s.is("dir", "name", old)
			s.must(staged.Place(dir, "free"))
			staged.Discard()
			s.is("dir", "free", next.Kind)
			s.empty("stage")
		}
	}
}

// TestAttributes sets back everything that a restore knows.
func TestAttributes(t *testing.T) {
	s := newScene(t)
	dir := s.mkdir("dir")
	n := node("content")
	n.Perm = 0o4754 // as the access control list has it
	if os.Geteuid() == 0 {
		n.UID, n.GID, n.Perm = 1234, 2345, 0o6754
	}
	n.Attrs = testAttrs()
	staged := s.stage(dir, n)
	s.must(staged.Place(dir, "name"))
	for _, unset := range staged.Unset {
		t.Logf("not set: %s: %v", unset.Name, unset.Err)
	}
	if len(staged.Unset) == len(n.Attrs) && len(n.Attrs) > 0 {
		n.Attrs = nil
	} else if len(staged.Unset) > 0 {
		t.Errorf("not set: %+v", staged.Unset)
	}
	staged.Discard()
	f, info, err := dir.Open("name")
	s.must(err)
	defer f.Close()
	if info.Perm != n.Perm || info.UID != n.UID || info.GID != n.GID || info.MTime != n.MTime || info.Size != 7 || info.Nlink != 1 {
		t.Errorf("%+v, want %+v", info, n)
	}
	if attrs, err := f.Attrs(); err != nil || !SameAttrs(attrs, n.Attrs) {
		t.Errorf("attributes %v, %v, want %v", attrs, err, n.Attrs)
	}

	l := link("target")
	l.UID, l.GID = n.UID, n.GID
	placed := s.stage(dir, l)
	s.must(placed.Place(dir, "link"))
	if info, err := dir.Stat("link"); err != nil || info.UID != l.UID || info.GID != l.GID || info.MTime != l.MTime {
		t.Errorf("%+v, %v, want %+v", info, err, l)
	}
}

func TestMkdirMoveRemove(t *testing.T) {
	s := newScene(t)
	dir, to := s.mkdir("dir"), s.mkdir("to")
	s.must(dir.Mkdir("made", 0o2710, uint32(os.Geteuid()), uint32(os.Getegid())))
	made := s.dir("dir/made")
	if info, err := made.Info(); err != nil || info.Perm != 0o2710 || info.Kind != Directory {
		t.Errorf("%+v, %v", info, err)
	}
	s.must(made.Chmod(0o500))
	if info, err := made.Info(); err != nil || info.Perm != 0o500 {
		t.Errorf("%+v, %v", info, err)
	}
	if err := dir.Mkdir("made", 0o700, 0, 0); !errors.Is(err, fs.ErrExist) {
		t.Errorf("made twice: %v", err)
	}
	if !made.SameDir() {
		t.Error("the directory is another one")
	}
	s.must(made.Chmod(0o700)) // a directory that is moved is written to
	s.must(Move(dir, "made", to, "moved"))
	if made.SameDir() {
		t.Error("a directory that moved is where it was")
	}
	if err := to.Remove("moved"); err == nil {
		t.Error("a directory was removed as a file")
	}
	s.must(to.RemoveDir("moved"))
	s.write("to/full/x", "x")
	if err := to.RemoveDir("full"); err == nil {
		t.Error("a full directory was removed")
	}
	s.must(s.dir("to/full").Remove("x"))
	for _, kind := range []Kind{Regular, Symlink, Directory, FIFO} {
		s.put(kind, "dir/"+kind.String())
		s.must(Move(dir, kind.String(), to, kind.String()))
		s.is("to", kind.String(), kind)
	}
}

// TestOverwrite writes in place only where that is the file that was meant.
func TestOverwrite(t *testing.T) {
	s := newScene(t)
	dir := s.mkdir("dir")
	s.write("dir/name", "original content")
	info, err := dir.Stat("name")
	s.must(err)
	refused := func(what string) {
		t.Helper()
		if _, _, err := Overwrite(dir, "name", node("new"), info.Inode, 1); err == nil {
			t.Errorf("written: %s", what)
		}
	}
	for _, content := range []string{"much longer than what it held before", "short"} {
		if _, _, err := Overwrite(dir, "name", node(content), info.Inode, 1); errors.Is(err, unix.EOPNOTSUPP) {
			continue // no space can be reserved on this system
		} else {
			s.must(err)
		}
		s.holds("dir/name", content)
		if now, err := dir.Stat("name"); err != nil || now.Inode != info.Inode || now.Perm != 0o640 || now.MTime != node("").MTime {
			t.Errorf("%+v, %v", now, err)
		}
	}
	s.write("dir/emptied", "x")
	emptied, err := dir.Stat("emptied")
	s.must(err)
	_, _, err = Overwrite(dir, "emptied", node(""), emptied.Inode, 1)
	s.must(err)
	s.holds("dir/emptied", "")
	old, _, err := Overwrite(dir, "name", node("x"), info.Inode, 1)
	s.must(err)
	if len(old) == 0 {
		t.Error("what it held was not returned")
	}
	s.must(os.Link(s.abs("dir/name"), s.abs("dir/other")))
	refused("a file that has another name by now")
	s.holds("dir/name", "x")
	s.must(os.Remove(s.abs("dir/other")))
	s.must(os.Rename(s.abs("dir/name"), s.abs("dir/aside")))
	refused("nothing")
	s.write("dir/name", "another file")
	refused("another file")
	s.holds("dir/name", "another file")
	s.must(os.Remove(s.abs("dir/name")))
	s.must(os.Symlink("aside", s.abs("dir/name")))
	refused("a symlink")
	s.holds("dir/aside", "x")
}

func TestUnname(t *testing.T) {
	s := newScene(t)
	dir := s.mkdir("dir")
	s.write("dir/name", "content")
	f, info, err := Unname(dir, "name")
	s.must(err)
	defer f.Close()
	buf := make([]byte, 10)
	if n, err := f.ReadAt(buf, 0); err != nil || string(buf[:n]) != "content" || info.Size != 7 {
		t.Errorf("%q, %v", buf[:n], err)
	}
	s.empty("dir")
	for _, kind := range []Kind{Symlink, Directory, FIFO} {
		s.put(kind, "dir/name")
		if f, _, err := Unname(dir, "name"); err == nil {
			f.Close()
			t.Errorf("a %v lost its name", kind)
		}
		s.is("dir", "name", kind)
		s.must(os.RemoveAll(s.abs("dir/name")))
	}
}

func TestRootMoved(t *testing.T) {
	s := newScene(t)
	s.mkdir("root")
	root, err := OpenRoot(s.abs("root"))
	s.must(err)
	defer root.Close()
	moved := func(want bool, what string) {
		t.Helper()
		if got, err := root.Moved(); got != want || err != nil {
			t.Errorf("%s: moved %v, %v", what, got, err)
		}
	}
	moved(false, "at once")
	s.must(os.Rename(s.abs("root"), s.abs("away")))
	moved(true, "a missing root")
	s.mkdir("root")
	moved(true, "another root")
	s.must(os.Remove(s.abs("root")))
	s.must(os.Symlink("away", s.abs("root")))
	moved(true, "a symlink to the root")
	s.must(os.Remove(s.abs("root")))
	s.must(os.Rename(s.abs("away"), s.abs("root")))
	moved(false, "the root is back")
}

// A look that failed says nothing: not that the root moved, and not that it did
// not.
func TestRootMovedUnknown(t *testing.T) {
	s := newScene(t)
	s.mkdir("root")
	root, err := OpenRoot(s.abs("root"))
	s.must(err)
	defer root.Close()
	dir, err := root.Dir("")
	s.must(err)
	defer dir.Close()
	restored := limittest.NoFiles(t)
	moved, err := root.Moved()
	same := dir.SameDir()
	restored()
	if moved || !errors.Is(err, unix.EMFILE) || !Unseen(err) {
		t.Errorf("without a descriptor: moved %v, %v", moved, err)
	}
	if !same {
		t.Error("without a descriptor a directory is taken for another one")
	}
	if moved, err := root.Moved(); moved || err != nil {
		t.Errorf("moved %v, %v", moved, err)
	}
}

func TestUnseen(t *testing.T) {
	for _, err := range []error{
		nil, unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EACCES, unix.EPERM, ErrMounted, ErrBusy,
	} {
		if Unseen(&os.PathError{Err: err}) && err != nil || err == nil && Unseen(nil) {
			t.Errorf("%v says nothing", err)
		}
	}
	for _, err := range []error{unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EINTR, unix.EIO, unix.EAGAIN, unix.ESTALE} {
		if !Unseen(&os.PathError{Err: err}) {
			t.Errorf("%v says something", err)
		}
	}
}

func TestErrnoName(t *testing.T) {
	for want, err := range map[string]error{
		"EACCES": &os.PathError{Err: unix.EACCES},
		"EXDEV":  &os.PathError{Err: ErrMounted},
		"EAGAIN": ErrBusy,
		"ERROR":  errors.New("no number"),
	} {
		if got := ErrnoName(err); got != want {
			t.Errorf("%v is %s, want %s", err, got, want)
		}
	}
}
