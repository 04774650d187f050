//go:build linux || darwin || freebsd || netbsd || openbsd

package safefile

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// scene is a root that is open, with its directories at hand.
type scene struct {
	testing.TB
	path string
	root *Root
}

func newScene(t testing.TB) *scene {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{TB: t, path: dir}
	s.reopen()
	return s
}

// reopen opens the root again, as a new session would.
func (s *scene) reopen() {
	s.Helper()
	root, err := OpenRoot(s.path)
	s.must(err)
	s.Cleanup(func() { root.Close() })
	s.root = root
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *scene) abs(name string) string { return filepath.Join(s.path, name) }

func (s *scene) write(name, content string) {
	s.Helper()
	s.must(os.MkdirAll(filepath.Dir(s.abs(name)), 0o755))
	s.must(os.WriteFile(s.abs(name), []byte(content), 0o644))
}

func (s *scene) mkdir(name string) *Dir {
	s.Helper()
	s.must(os.MkdirAll(s.abs(name), 0o755))
	return s.dir(name)
}

func (s *scene) dir(name string) *Dir {
	s.Helper()
	dir, err := s.root.Dir(name)
	s.must(err)
	s.Cleanup(func() { dir.Close() })
	return dir
}

func (s *scene) holds(name, content string) {
	s.Helper()
	got, err := os.ReadFile(s.abs(name))
	s.must(err)
	if string(got) != content {
		s.Errorf("%s holds %q, want %q", name, got, content)
	}
}

func (s *scene) empty(name string) {
	s.Helper()
	entries, err := os.ReadDir(s.abs(name))
	s.must(err)
	for _, e := range entries {
		s.Errorf("%s holds %q", name, e.Name())
	}
}

// node is a regular file of this user.
func node(content string) Node {
	return Node{
		Kind: Regular, Perm: 0o640, UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()),
		MTime: time.Date(2001, 2, 3, 4, 5, 6, 789000, time.UTC).UnixNano(), Content: []byte(content),
	}
}

func link(target string) Node {
	n := node("")
	n.Kind, n.Link, n.Content = Symlink, target, nil
	return n
}

func (s *scene) stage(in *Dir, n Node) *Staged {
	s.Helper()
	staged, err := Stage(in, n)
	s.must(err)
	s.Cleanup(func() { staged.Discard() })
	return staged
}

// put makes an entry of a kind under a name.
func (s *scene) put(kind Kind, name string) {
	s.Helper()
	switch kind {
	case None:
	case Regular:
		s.write(name, "old")
	case Symlink:
		s.must(os.Symlink("old-target", s.abs(name)))
	case Directory:
		s.write(name+"/inside", "old")
	case FIFO:
		s.must(unix.Mkfifo(s.abs(name), 0o600))
	default:
		s.Fatalf("cannot make a %v", kind)
	}
}
