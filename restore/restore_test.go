//go:build linux

package restore_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cage/internal/safefile"
	"cage/restore"
	"cage/rules"
	"cage/snapshot"

	"golang.org/x/sys/unix"
)

// scene is a root with a baseline, and a restorer for it.
type scene struct {
	testing.TB
	dir        string
	manifest   *snapshot.Manifest
	restorer   *restore.Restorer
	quarantine func() (*safefile.Dir, error)
}

// Dir makes the scene a quarantine: the one that the test wants.
func (s *scene) Dir() (*safefile.Dir, error) { return s.quarantine() }

var errNone = errors.New("no quarantine")

// newScene protects the files and takes their baseline. The directory `away`
// holds the quarantine; it is outside every rule.
func newScene(t testing.TB, files map[string]string) *scene {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{TB: t, dir: dir}
	t.Cleanup(s.openUp)
	for name, content := range files {
		s.write(name, content)
	}
	s.baseline()
	return s
}

// openUp lets the files be removed when the test is over.
func (s *scene) openUp() {
	filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			os.Chmod(path, 0o700)
		}
		return nil
	})
}

func (s *scene) baseline() {
	s.Helper()
	layout := rules.Layout{Root: s.dir}
	draft, err := rules.New(rules.Inputs{Layout: layout})
	s.must(err)
	trees, err := snapshot.OpenTrees(layout)
	s.must(err)
	s.Cleanup(trees.Close)
	survey := snapshot.Look(trees, draft, nil, nil)
	plan, err := draft.Settle(survey.Found)
	s.must(err)
	store := snapshot.NewStore()
	limits := snapshot.Limits{FileBytes: 1 << 20, Files: 100, TotalBytes: 1 << 22}
	s.manifest, err = snapshot.Take(context.Background(), trees, plan, survey.Found, store, limits)
	s.must(err)
	s.manifest.NoteDirectories(trees, survey.Covered)
	s.restorer = restore.New(trees, plan, s.manifest, store, s, limits.FileBytes)
	s.Cleanup(s.restorer.Close)
	s.must(os.MkdirAll(s.abs("away"), 0o755))
	s.quarantine = func() (*safefile.Dir, error) { return trees.Root(rules.Root).Dir("away") }
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *scene) abs(name string) string { return filepath.Join(s.dir, name) }

func (s *scene) write(name, content string) {
	s.Helper()
	s.must(os.MkdirAll(filepath.Dir(s.abs(name)), 0o755))
	s.must(os.WriteFile(s.abs(name), []byte(content), 0o644))
}

func root(name string) rules.Path { return rules.Path{Rel: name} }

func (s *scene) entry(name string) *snapshot.Entry {
	s.Helper()
	e, ok := s.manifest.Entry(root(name))
	if !ok {
		s.Fatalf("%s is not in the baseline", name)
	}
	return e
}

// put puts a file back that differs.
func (s *scene) put(name string) restore.Result {
	s.Helper()
	result := s.restorer.Put(s.entry(name), false)
	s.letGo(result)
	return result
}

// letGo closes what a result holds open when the test is over.
func (s *scene) letGo(result restore.Result) {
	for _, d := range result.Displaced {
		if d.File != nil {
			s.Cleanup(func() { d.File.Close() })
		}
	}
}

func (s *scene) holds(name, content string) {
	s.Helper()
	got, err := os.ReadFile(s.abs(name))
	if err != nil || string(got) != content {
		s.Errorf("%s holds %q (%v), want %q", name, got, err, content)
	}
}

func (s *scene) names(dir string) []string {
	s.Helper()
	entries, err := os.ReadDir(s.abs(dir))
	s.must(err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// only wants exactly these names in a directory.
func (s *scene) only(dir string, names ...string) {
	s.Helper()
	if got := s.names(dir); !slices.Equal(got, names) {
		s.Errorf("%s has %q, want %q", dir, got, names)
	}
}

// content returns what a displaced file holds.
func content(t testing.TB, d restore.Displaced) string {
	t.Helper()
	if d.File == nil {
		t.Fatalf("it is not held open: %+v", d)
	}
	buf := make([]byte, 1<<10)
	n, err := d.File.ReadAt(buf, 0)
	if err != nil {
		t.Fatal(err)
	}
	return string(buf[:n])
}

// obstacles are what may stand in the place of a file.
func obstacles() map[string]func(path string) error {
	return map[string]func(path string) error{
		"file":    func(path string) error { return os.WriteFile(path, []byte("evil"), 0o600) },
		"symlink": func(path string) error { return os.Symlink("/etc/passwd", path) },
		"fifo":    func(path string) error { return unix.Mkfifo(path, 0o600) },
		"directory": func(path string) error {
			return errors.Join(os.MkdirAll(path+"/deep", 0o755), os.WriteFile(path+"/deep/.env", nil, 0o600))
		},
		"closed directory": func(path string) error { return os.Mkdir(path, 0o555) },
		"hidden directory": func(path string) error {
			return errors.Join(os.MkdirAll(path+"/deep", 0o755), os.Chmod(path, 0))
		},
		"large file": func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<40))
		},
	}
}

// quarantines are the ways in which the quarantine can be there or not.
func quarantines(s *scene) map[string]func() (*safefile.Dir, error) {
	there := s.quarantine
	return map[string]func() (*safefile.Dir, error){
		"there": there,
		"none":  func() (*safefile.Dir, error) { return nil, errNone },
		"removed after it was opened": func() (*safefile.Dir, error) {
			s.must(os.MkdirAll(s.abs("away/gone"), 0o755))
			root, err := safefile.OpenRoot(s.abs("away/gone"))
			s.must(err)
			defer root.Close()
			dir, err := root.Dir("")
			s.must(os.Remove(s.abs("away/gone")))
			return dir, err
		},
		"read-only": func() (*safefile.Dir, error) {
			// A directory of the kernel's own takes nothing, not even from root.
			root, err := safefile.OpenRoot("/proc")
			s.must(err)
			defer root.Close()
			return root.Dir("sys")
		},
	}
}

func TestPut(t *testing.T) {
	for what, stand := range obstacles() {
		for where := range quarantines(newScene(t, nil)) {
			t.Run(what+", quarantine "+where, func(t *testing.T) {
				s := newScene(t, map[string]string{".env": "A=1"})
				s.quarantine = quarantines(s)[where]
				s.must(os.Remove(s.abs(".env")))
				s.must(stand(s.abs(".env")))
				before, err := os.Lstat(s.abs(".env"))
				s.must(err)
				result := s.put(".env")
				s.must(result.Err)
				s.holds(".env", "A=1")
				if len(result.Displaced) != 1 {
					t.Fatalf("displaced: %+v", result.Displaced)
				}
				s.whereabouts(result.Displaced[0], before)
			})
		}
	}
}

// whereabouts wants a displaced version to be where it is said to be, whatever
// it is, and as it was.
func (s *scene) whereabouts(d restore.Displaced, before fs.FileInfo) {
	s.Helper()
	path := ""
	switch {
	case d.Quarantined != "":
		path = s.abs("away/" + d.Quarantined)
	case d.Beside != rules.Path{}:
		path = s.abs(d.Beside.Rel)
	case d.File == nil:
		s.Fatalf("it is nowhere: %+v", d)
	default:
		if got := content(s, d); got != "evil" {
			s.Errorf("it holds %q", got)
		}
		s.only(".", ".env", "away")
		return
	}
	after, err := os.Lstat(path)
	s.must(err)
	if !os.SameFile(before, after) || before.Mode() != after.Mode() {
		s.Errorf("%v became %v", before.Mode(), after.Mode())
	}
}

// TestPutWhole brings back all that belongs to a file, and to a link.
func TestPutWhole(t *testing.T) {
	s := newScene(t, map[string]string{".env": "A=1", "config/real": "R"})
	s.must(os.Chmod(s.abs(".env"), 0o640|fs.ModeSetgid))
	s.must(os.Symlink("config/real", s.abs(".env.link")))
	noted := unix.Setxattr(s.abs(".env"), "user.note", []byte("hello"), 0) == nil
	at := time.Unix(1600000000, 123456789)
	s.must(os.Chtimes(s.abs(".env"), at, at))
	s.baseline()
	for _, where := range []string{"there", "none"} {
		s.quarantine = quarantines(s)[where]
		for _, name := range []string{".env", ".env.link"} {
			s.must(os.Remove(s.abs(name)))
			s.write(name, "evil")
			s.must(s.put(name).Err)
			s.must(os.Remove(s.abs(name)))
			result := s.restorer.Put(s.entry(name), true)
			s.must(result.Err)
			if len(result.Displaced) > 0 || len(result.Unset) > 0 {
				t.Errorf("%s: %+v", name, result)
			}
		}
		info, err := os.Lstat(s.abs(".env"))
		s.must(err)
		if info.Mode() != 0o640|fs.ModeSetgid || !info.ModTime().Equal(at) {
			t.Errorf("%v %v", info.Mode(), info.ModTime())
		}
		value := make([]byte, 10)
		if n, err := unix.Getxattr(s.abs(".env"), "user.note", value); noted && (err != nil || string(value[:n]) != "hello") {
			t.Errorf("the attribute is %q (%v)", value[:max(n, 0)], err)
		}
		if target, err := os.Readlink(s.abs(".env.link")); target != "config/real" {
			t.Errorf("the link leads to %q (%v)", target, err)
		}
	}
}

// TestPutAbsent replaces nothing that appeared where nothing was seen.
func TestPutAbsent(t *testing.T) {
	for where := range quarantines(newScene(t, nil)) {
		s := newScene(t, map[string]string{".env": "A=1"})
		s.quarantine = quarantines(s)[where]
		s.write(".env", "appeared")
		if result := s.restorer.Put(s.entry(".env"), true); !errors.Is(result.Err, restore.ErrAppeared) {
			t.Errorf("%s: %v", where, result.Err)
		}
		s.holds(".env", "appeared")
		s.only(".", ".env", "away")
	}
}

// TestRebuild puts whatever stands in the place of a directory away and makes
// the directory anew, as it was.
func TestRebuild(t *testing.T) {
	const file = ".github/workflows/deep/ci.yml"
	for what, stand := range obstacles() {
		if strings.Contains(what, "directory") {
			continue // a directory is one, whoever made it
		}
		for _, parent := range []string{".github", ".github/workflows", ".github/workflows/deep"} {
			for where := range quarantines(newScene(t, nil)) {
				t.Run(what+" for "+parent+", quarantine "+where, func(t *testing.T) {
					s := newScene(t, map[string]string{file: "on: push"})
					s.must(os.Chmod(s.abs(".github/workflows"), 0o750))
					s.baseline()
					s.quarantine = quarantines(s)[where]
					s.must(os.RemoveAll(s.abs(parent)))
					s.must(stand(s.abs(parent)))
					result := s.restorer.Put(s.entry(file), true)
					s.letGo(result)
					s.must(result.Err)
					s.holds(file, "on: push")
					if len(result.Displaced) != 1 || result.Displaced[0].Path != root(parent) {
						t.Errorf("displaced: %+v", result.Displaced)
					}
					if info, err := os.Stat(s.abs(".github/workflows")); err != nil || info.Mode().Perm() != 0o750 {
						t.Errorf("mode %v (%v)", info.Mode(), err)
					}
				})
			}
		}
	}
}

// TestOutOfReach opens directories up that were known and leaves a file alone
// that only could not be reached.
func TestOutOfReach(t *testing.T) {
	s := newScene(t, map[string]string{"config/.env": "A=1", "config/closed/.env": "B=1"})
	s.must(os.Chmod(s.abs("config/closed"), 0o555))
	s.baseline()
	s.must(os.Chmod(s.abs("config"), 0))
	before := s.entry("config/.env").State.Inode
	result := s.put("config/.env")
	s.must(result.Err)
	if !result.Untouched || result.State.Inode != before || len(result.Displaced) > 0 || !slices.Equal(result.Reset, []rules.Path{root("config")}) {
		t.Errorf("%+v", result)
	}

	s.must(os.Chmod(s.abs("config"), 0o500))
	s.must(os.Chmod(s.abs("config/closed"), 0o700))
	s.must(os.Remove(s.abs("config/closed/.env")))
	s.must(os.Chmod(s.abs("config/closed"), 0o555))
	result = s.restorer.Put(s.entry("config/closed/.env"), true)
	s.must(result.Err)
	s.holds("config/closed/.env", "B=1")
	if info, err := os.Stat(s.abs("config/closed")); err != nil || info.Mode().Perm() != 0o555 {
		t.Errorf("mode %v (%v)", info.Mode(), err)
	}

	s.must(os.Chmod(s.abs("config"), 0o700))
	s.must(os.Chmod(s.abs("config/closed"), 0o700))
	s.must(os.RemoveAll(s.abs("config/closed")))
	s.must(os.Chmod(s.abs("config"), 0o500))
	s.must(s.restorer.Put(s.entry("config/closed/.env"), true).Err)
	s.must(s.restorer.Reset(root("config")).Err)
	for dir, mode := range map[string]fs.FileMode{"config": 0o755, "config/closed": 0o555} {
		if info, err := os.Stat(s.abs(dir)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: mode %v (%v)", dir, info.Mode(), err)
		}
	}
}

func TestRemove(t *testing.T) {
	const added = ".github/workflows/made/for/it.yml"
	for what, stand := range obstacles() {
		for where := range quarantines(newScene(t, nil)) {
			t.Run(what+", quarantine "+where, func(t *testing.T) {
				s := newScene(t, map[string]string{".github/workflows/ci.yml": "on: push"})
				s.quarantine = quarantines(s)[where]
				s.must(os.MkdirAll(s.abs(filepath.Dir(added)), 0o755))
				s.must(stand(s.abs(added)))
				result := s.restorer.Remove(root(added))
				s.letGo(result)
				s.must(result.Err)
				if len(result.Displaced) != 1 {
					t.Fatalf("displaced: %+v", result.Displaced)
				}
				if result.Displaced[0].Beside == (rules.Path{}) {
					s.only(".github/workflows", "ci.yml")
				}
				if _, err := os.Lstat(s.abs(added)); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("it is there: %v", err)
				}
			})
		}
	}
	s := newScene(t, map[string]string{".github/workflows/ci.yml": "on: push"})
	for _, name := range []string{".github/workflows/nothing.yml", ".github/workflows/no/where.yml", ".github/workflows/ci.yml/x"} {
		if result := s.restorer.Remove(root(name)); result.Err != nil || len(result.Displaced) > 0 {
			t.Errorf("%s: %+v", name, result)
		}
	}
	s.holds(".github/workflows/ci.yml", "on: push")
}

// TestRemoveForDirectory makes a directory again whose place was taken.
func TestRemoveForDirectory(t *testing.T) {
	s := newScene(t, map[string]string{".circleci/config.yml": "version: 2"})
	s.must(os.Remove(s.abs(".circleci/config.yml")))
	s.must(os.Chmod(s.abs(".circleci"), 0o711))
	s.baseline()
	s.must(os.Remove(s.abs(".circleci")))
	s.must(os.Symlink("away", s.abs(".circleci")))
	result := s.restorer.Remove(root(".circleci"))
	s.must(result.Err)
	if info, err := os.Lstat(s.abs(".circleci")); err != nil || info.Mode() != fs.ModeDir|0o711 {
		t.Errorf("%v (%v)", info.Mode(), err)
	}
}

// TestQuarantineRace has the quarantine removed over and over: every restore
// works, and what was displaced is held, unless it was removed at once.
func TestQuarantineRace(t *testing.T) {
	s := newScene(t, map[string]string{".env": "A=1"})
	open := s.quarantine
	s.quarantine = func() (*safefile.Dir, error) {
		if err := os.MkdirAll(s.abs("away"), 0o755); err != nil {
			return nil, err
		}
		return open()
	}
	s.beside(func() { os.RemoveAll(s.abs("away")) })
	for range 300 {
		s.must(os.WriteFile(s.abs("new"), []byte("evil"), 0o600))
		s.must(os.Rename(s.abs("new"), s.abs(".env")))
		result := s.restorer.Put(s.entry(".env"), false)
		s.must(result.Err)
		s.holds(".env", "A=1")
		for _, d := range result.Displaced {
			if d.File == nil {
				continue
			}
			if got := content(t, d); got != "evil" {
				t.Fatalf("displaced %q", got)
			}
			d.File.Close()
		}
	}
}

// beside runs f over and over until the test ends.
func (s *scene) beside(f func()) {
	var running sync.WaitGroup
	stop := make(chan struct{})
	running.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				f()
			}
		}
	})
	s.Cleanup(func() { close(stop); running.Wait() })
}

// TestParentRace has the directory swapped for a link to another one and back,
// over and over: nothing is ever written through the link.
func TestParentRace(t *testing.T) {
	s := newScene(t, map[string]string{".github/workflows/ci.yml": "on: push"})
	outside := t.TempDir()
	s.must(os.WriteFile(filepath.Join(outside, "ci.yml"), []byte("outside"), 0o644))
	s.must(os.Symlink(outside, s.abs("link")))
	swap := func() {
		unix.Renameat2(unix.AT_FDCWD, s.abs("link"), unix.AT_FDCWD, s.abs(".github/workflows"), unix.RENAME_EXCHANGE)
	}
	t.Run("swapping", func(t *testing.T) {
		inner := *s
		inner.TB = t
		inner.beside(swap)
		for range 300 {
			result := s.restorer.Put(s.entry(".github/workflows/ci.yml"), false)
			s.letGo(result)
			if result.Err != nil && !errors.Is(result.Err, restore.ErrMoved) && !errors.Is(result.Err, restore.ErrChanged) &&
				!errors.Is(result.Err, restore.ErrAppeared) && !errors.Is(result.Err, syscall.ENOTDIR) && !errors.Is(result.Err, syscall.ELOOP) {
				t.Fatal(result.Err)
			}
		}
	})
	s.must(s.put(".github/workflows/ci.yml").Err)
	s.holds(".github/workflows/ci.yml", "on: push")
	entries, err := os.ReadDir(outside)
	s.must(err)
	if data, err := os.ReadFile(filepath.Join(outside, "ci.yml")); len(entries) != 1 || string(data) != "outside" {
		t.Errorf("outside: %v, %q (%v)", entries, data, err)
	}
}

// TestInheritsNothing gives the directories that a file is staged in a default
// access control list and a group: none of it is the file's.
func TestInheritsNothing(t *testing.T) {
	entry := func(tag, perm byte, id uint32) []byte {
		return binary.LittleEndian.AppendUint32([]byte{tag, 0, perm, 0}, id)
	}
	const nobody, undefined = 1, ^uint32(0)
	list := slices.Concat([]byte{2, 0, 0, 0}, entry(1, 7, undefined), entry(2, 7, nobody),
		entry(4, 5, undefined), entry(0x10, 7, undefined), entry(0x20, 5, undefined))
	for where := range quarantines(newScene(t, nil)) {
		s := newScene(t, map[string]string{"config/.env": "A=1"})
		s.quarantine = quarantines(s)[where]
		for _, dir := range []string{"away", "config"} {
			if err := unix.Setxattr(s.abs(dir), "system.posix_acl_default", list, 0); err != nil {
				t.Skip("no access control lists here")
			}
			if os.Geteuid() == 0 {
				s.must(os.Chown(s.abs(dir), 0, 7))
			}
			s.must(os.Chmod(s.abs(dir), 0o755|fs.ModeSetgid))
		}
		s.write("config/.env", "evil")
		for _, absent := range []bool{false, true} {
			if absent {
				s.must(os.Remove(s.abs("config/.env")))
			}
			result := s.restorer.Put(s.entry("config/.env"), absent)
			s.letGo(result)
			s.must(result.Err)
			if len(result.Unset) > 0 {
				t.Errorf("%s: could not be set: %v", where, result.Unset)
			}
			if n, err := unix.Lgetxattr(s.abs("config/.env"), "system.posix_acl_access", nil); err == nil {
				t.Errorf("%s: it has an access control list of %d bytes", where, n)
			}
		}
	}
}

// TestTemporariesGoAgain opens and closes the directory that is worked in, over
// and over, so that what was made for the moment cannot be removed: it goes as
// soon as it can, wherever the directory is by then.
func TestTemporariesGoAgain(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may work everywhere")
	}
	for _, moved := range []bool{false, true} {
		s := newScene(t, map[string]string{".github/workflows/ci.yml": "on: push"})
		s.quarantine = func() (*safefile.Dir, error) { return nil, errNone }
		at := s.abs(".github/workflows")
		var left []string
		t.Run("closing", func(t *testing.T) {
			inner := *s
			inner.TB = t
			inner.beside(func() { os.Chmod(at, 0); os.Chmod(at, 0o755) })
			for end := time.Now().Add(2 * time.Minute); len(left) == 0; {
				if time.Now().After(end) {
					t.Fatal("nothing was ever left behind")
				}
				s.letGo(s.restorer.Put(s.entry(".github/workflows/ci.yml"), false))
				left, _ = filepath.Glob(at + "/????????????????????????????????")
			}
		})
		s.must(os.Chmod(at, 0o755))
		for _, name := range left {
			if p := root(".github/workflows/" + filepath.Base(name)); !s.restorer.Owns(p) {
				t.Errorf("%s is not its own", name)
			}
		}
		if s.restorer.Owns(root(".github/workflows/" + safefile.Token())) {
			t.Error("every name is its own")
		}
		if moved {
			s.must(os.Rename(at, s.abs(".github/moved")))
			at = s.abs(".github/moved")
			s.restorer.Tidy()
		} else {
			s.must(os.Chmod(at, 0))
			s.restorer.Tidy()
			s.restorer.Clear()
			if info, err := os.Stat(at); err != nil || info.Mode().Perm() != 0 {
				t.Errorf("the mode became %v (%v)", info.Mode(), err)
			}
			s.must(os.Chmod(at, 0o755))
		}
		if left, _ = filepath.Glob(at + "/????????????????????????????????"); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
	}
}

// TestNoDescriptorLeavesNothing runs out of descriptors at every step of a
// restore: nothing that it made for the moment stays, but for what holds a
// displaced version that could not be opened.
func TestNoDescriptorLeavesNothing(t *testing.T) {
	s := newScene(t, map[string]string{".github/workflows/ci.yml": "on: push"})
	s.quarantine = func() (*safefile.Dir, error) { return nil, errNone }
	failed, names := 0, []string{"ci.yml"}
	for room := range 16 {
		s.write(".github/workflows/ci.yml", "evil")
		var result restore.Result
		withRoom(t, room, func() { result = s.restorer.Put(s.entry(".github/workflows/ci.yml"), false) })
		s.letGo(result)
		if errors.Is(result.Err, syscall.EMFILE) {
			failed++
		}
		for _, d := range result.Displaced {
			if d.Beside != (rules.Path{}) {
				names = append(names, d.Beside.Dir().Dir().Base())
			}
		}
		s.restorer.Tidy()
		slices.Sort(names)
		s.only(".github/workflows", names...)
	}
	if failed == 0 {
		t.Error("no restore ran out of descriptors")
	}
	s.holds(".github/workflows/ci.yml", "on: push")
}

// withRoom runs f with so many descriptors left to open.
func withRoom(t *testing.T, room int, f func()) {
	t.Helper()
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	var opened []int
	defer func() {
		for _, fd := range opened {
			unix.Close(fd)
		}
	}()
	// Every number below the limit is taken, and then so many are let go.
	const limit = 300
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &before)
	for {
		fd, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			break
		}
		opened = append(opened, fd)
	}
	for range room {
		unix.Close(opened[len(opened)-1])
		opened = opened[:len(opened)-1]
	}
	f()
}
