//go:build linux || darwin || freebsd || netbsd || openbsd

package kept

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cage/internal/safefile"
	"cage/rules"
	"cage/snapshot"

	"golang.org/x/sys/unix"
)

// patience bounds every wait; it is far above anything that works.
const patience = 30 * time.Second

const session = "0123456789abcdef"

// scene is a git directory with a quarantine and folders for copies.
type scene struct {
	testing.TB
	options Options
	keeper  *Keeper
}

func newScene(t testing.TB) *scene {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{TB: t}
	s.must(os.Mkdir(filepath.Join(dir, "git"), 0o755))
	root, err := safefile.OpenRoot(filepath.Join(dir, "git"))
	s.must(err)
	t.Cleanup(func() { root.Close() })
	s.options = Options{
		GitDir: root, Store: filepath.Join(dir, "store", session), Spare: filepath.Join(dir, "spare"),
		Session: session, DigestLimit: 1 << 20,
		Identify: func(int64) hash.Hash { return sha256.New() },
	}
	return s
}

func (s *scene) open() *Keeper {
	s.keeper = Open(s.options)
	s.Cleanup(s.keeper.Finish)
	return s.keeper
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// quarantine is the path of the session's quarantine.
func (s *scene) quarantine() string {
	return filepath.Join(s.options.GitDir.Path(), QuarantineName, session)
}

// displace puts a file into the quarantine, as a restore does.
func (s *scene) displace(name, content string) Version {
	s.Helper()
	dir, err := s.keeper.Dir()
	s.must(err)
	defer dir.Close()
	s.must(os.WriteFile(filepath.Join(s.quarantine(), name), []byte(content), 0o644))
	file, info, err := dir.Open(name)
	s.must(err)
	return Version{Tag: 7, Path: rules.Path{Rel: name}, Info: info, Quarantined: name, File: file}
}

// unopened is the same for a version that could not be opened.
func (s *scene) unopened(name, content string) Version {
	v := s.displace(name, content)
	v.File.Close()
	v.File = nil
	return v
}

// nameless holds a file that has no name.
func (s *scene) nameless(content string) Version {
	s.Helper()
	s.must(os.WriteFile(filepath.Join(s.options.GitDir.Path(), "nameless"), []byte(content), 0o644))
	dir, err := s.options.GitDir.Dir("")
	s.must(err)
	defer dir.Close()
	file, info, err := safefile.Unname(dir, "nameless")
	s.must(err)
	return Version{Tag: 7, Info: info, File: file}
}

// seal hands one version over, ends the session and returns what became of it.
func (s *scene) seal(v Version) Sealed {
	s.Helper()
	s.keeper.Keep(v)
	s.keeper.Finish()
	sealed := s.keeper.Take()
	if len(sealed) != 1 {
		s.Fatalf("%d versions were sealed, want 1", len(sealed))
	}
	return sealed[0]
}

// await waits until something is sealed.
func (s *scene) await() Sealed {
	s.Helper()
	select {
	case <-s.keeper.Ready():
	case <-time.After(patience):
		s.Fatal("nothing was sealed")
	}
	return s.keeper.Take()[0]
}

func (s *scene) holds(place, content string) {
	s.Helper()
	got, err := os.ReadFile(place)
	s.must(err)
	if string(got) != content {
		s.Errorf("%s holds %q, want %q", place, got, content)
	}
}

func (s *scene) in(place, folder string) {
	s.Helper()
	if filepath.Dir(place) != folder {
		s.Errorf("it lies at %q, want it in %s", place, folder)
	}
}

func (s *scene) gone(path string) {
	s.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		s.Errorf("%s is there: %v", path, err)
	}
}

func TestFilesLeaveTheQuarantine(t *testing.T) {
	s := newScene(t)
	s.open()
	sealed := s.seal(s.displace("a", "content"))
	s.must(sealed.Err)
	s.in(sealed.Place, s.options.Store)
	s.holds(sealed.Place, "content")
	if filepath.Base(sealed.Place) != snapshot.IDOf([]byte("content")).String() {
		t.Errorf("%s is no address of the content", sealed.Place)
	}
	identity := sha256.Sum256([]byte("content"))
	if sealed.Tag != 7 || sealed.Digest != snapshot.DigestOf([]byte("content")) || !bytes.Equal(sealed.Identity, identity[:]) {
		t.Errorf("sealed as %+v", sealed)
	}
	for path, mode := range map[string]fs.FileMode{sealed.Place: 0o600, s.options.Store: 0o700 | fs.ModeDir} {
		if info, err := os.Stat(path); err != nil || info.Mode() != mode {
			t.Errorf("%s: mode %v, want %v (%v)", path, info.Mode(), mode, err)
		}
	}
	s.gone(filepath.Join(s.options.GitDir.Path(), QuarantineName))
}

// TestLinkInItsPlace has a link to somebody's folder where the quarantine, or a
// part of the way to it, should be: it is made all the same, and the folder is
// not touched.
func TestLinkInItsPlace(t *testing.T) {
	for name, at := range map[string]func(s *scene) string{
		"of all sessions": func(s *scene) string { return filepath.Dir(s.quarantine()) },
		"of this session": func(s *scene) string {
			s.must(os.Mkdir(filepath.Dir(s.quarantine()), 0o700))
			return s.quarantine()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			outside := t.TempDir()
			s.must(os.Symlink(outside, at(s)))
			s.open()
			sealed := s.seal(s.displace("a", "content"))
			s.holds(sealed.Place, "content")
			s.gone(filepath.Dir(s.quarantine()))
			if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
				t.Errorf("outside: %v %v", entries, err)
			}
		})
	}
}

// TestQuarantineLost takes the quarantine away from under its versions: a file
// that is held open is not lost by that.
func TestQuarantineLost(t *testing.T) {
	away := func(s *scene) {
		s.must(os.Rename(filepath.Dir(s.quarantine()), s.options.GitDir.Path()+"/away"))
	}
	for name, lose := range map[string]func(s *scene){
		"removed":    func(s *scene) { s.must(os.RemoveAll(filepath.Dir(s.quarantine()))) },
		"moved away": away,
		"replaced by a link": func(s *scene) {
			away(s)
			s.must(os.Symlink("away", filepath.Dir(s.quarantine())))
		},
		"replaced by a file": func(s *scene) {
			away(s)
			s.must(os.WriteFile(filepath.Dir(s.quarantine()), nil, 0o600))
		},
		"another file by its name": func(s *scene) {
			s.must(os.Rename(s.quarantine()+"/a", s.quarantine()+"/b"))
			s.must(os.WriteFile(s.quarantine()+"/a", []byte("other"), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.open()
			v := s.displace("a", "content")
			lose(s)
			sealed := s.seal(v)
			s.must(sealed.Err)
			s.in(sealed.Place, s.options.Store)
			s.holds(sealed.Place, "content")
			if name == "another file by its name" {
				s.holds(s.quarantine()+"/a", "other")
			}
		})
		t.Run(name+", not open", func(t *testing.T) {
			s := newScene(t)
			s.open()
			v := s.unopened("a", "content")
			lose(s)
			if sealed := s.seal(v); sealed.Err == nil || sealed.Place != "" {
				t.Errorf("it lies at %q (%v), which is not so", sealed.Place, sealed.Err)
			}
		})
	}
}

// block makes a folder that nothing can be made in, whoever asks.
func block(s *scene, folder string) {
	s.must(os.MkdirAll(filepath.Dir(filepath.Dir(folder)), 0o755))
	s.must(os.WriteFile(filepath.Dir(folder), nil, 0o600))
}

func TestStoreUnwritable(t *testing.T) {
	t.Run("quarantined", func(t *testing.T) {
		s := newScene(t)
		block(s, s.options.Store)
		s.open()
		sealed := s.seal(s.displace("a", "content"))
		if sealed.Err == nil {
			t.Error("nothing was said of the store")
		}
		s.in(sealed.Place, s.quarantine())
		s.holds(sealed.Place, "content")
		if sealed.Digest != snapshot.DigestOf([]byte("content")) || len(sealed.Identity) == 0 {
			t.Error("its digests were not taken")
		}
	})
	t.Run("nameless", func(t *testing.T) {
		s := newScene(t)
		block(s, s.options.Store)
		s.open()
		sealed := s.seal(s.nameless("content"))
		s.must(sealed.Err)
		s.in(sealed.Place, s.options.Spare)
		s.holds(sealed.Place, "content")
	})
	t.Run("nameless, for a while", func(t *testing.T) {
		s := newScene(t)
		s.options.Spare = ""
		block(s, s.options.Store)
		s.open()
		s.keeper.Keep(s.nameless("content"))
		s.must(os.Remove(filepath.Dir(s.options.Store)))
		sealed := s.await()
		s.must(sealed.Err)
		s.in(sealed.Place, s.options.Store)
		s.holds(sealed.Place, "content")
	})
	t.Run("nameless, to the end", func(t *testing.T) {
		s := newScene(t)
		s.options.Spare = ""
		block(s, s.options.Store)
		s.open()
		if sealed := s.seal(s.nameless("content")); sealed.Err == nil || sealed.Place != "" {
			t.Errorf("it lies at %q (%v), which is not so", sealed.Place, sealed.Err)
		}
	})
	t.Run("in memory", func(t *testing.T) {
		s := newScene(t)
		block(s, s.options.Store)
		s.open()
		sealed := s.seal(Version{Content: []byte("content")})
		s.must(sealed.Err)
		s.in(sealed.Place, s.options.Spare)
		s.holds(sealed.Place, "content")
	})
}

// TestWriters lets a version wait for as long as somebody writes it. At the end
// it stays where its writer finds it, or is taken as it is where it has no name.
func TestWriters(t *testing.T) {
	s := newScene(t)
	s.open()
	for _, v := range []Version{s.displace("a", "one"), s.unopened("b", "one")} {
		writer, err := os.OpenFile(filepath.Join(s.quarantine(), v.Quarantined), os.O_WRONLY|os.O_APPEND, 0)
		s.must(err)
		if file := v.File; file != nil && !file.BeingWritten() {
			t.Skip("writers are not seen on this system")
		}
		s.keeper.Keep(v)
		_, err = writer.WriteString(" two")
		s.must(err)
		if sealed := s.keeper.Take(); len(sealed) > 0 {
			t.Errorf("sealed while it was written: %+v", sealed)
		}
		s.must(writer.Close())
		s.holds(s.await().Place, "one two")
	}

	v := s.displace("c", "to the")
	writer, err := os.OpenFile(filepath.Join(s.quarantine(), "c"), os.O_WRONLY|os.O_APPEND, 0)
	s.must(err)
	defer writer.Close()
	nameless := s.displace("d", "as it is")
	other, err := os.OpenFile(filepath.Join(s.quarantine(), "d"), os.O_WRONLY, 0)
	s.must(err)
	defer other.Close()
	s.must(os.Remove(filepath.Join(s.quarantine(), "d")))
	nameless.Quarantined = ""
	s.keeper.Keep(nameless)
	s.keeper.Keep(v)
	s.keeper.Finish()
	_, err = writer.WriteString(" end")
	s.must(err)
	sealed := s.keeper.Take()
	s.holds(sealed[0].Place, "as it is")
	s.in(sealed[1].Place, s.quarantine())
	s.holds(sealed[1].Place, "to the end")
	if sealed[1].Digest != (snapshot.Digest{}) {
		t.Error("what was not whole has a digest")
	}
}

// rewriting is a hash by which content is known, made while somebody writes it.
type rewriting struct {
	hash.Hash
	write func()
}

func (r rewriting) Write(p []byte) (int, error) {
	r.write()
	return r.Hash.Write(p)
}

// TestHalfIsNoCopy has a version written while it is copied: what was read by
// then is left nowhere, and takes nothing from what a session may copy.
func TestHalfIsNoCopy(t *testing.T) {
	s := newScene(t)
	s.open()
	v := s.displace("a", "one")
	looks := 0
	s.keeper.Identify = func(int64) hash.Hash {
		return rewriting{sha256.New(), func() {
			if looks++; looks == 2 { // the first is when it comes
				s.must(os.WriteFile(filepath.Join(s.quarantine(), "a"), []byte("one two"), 0o644))
			}
		}}
	}
	s.keeper.Keep(v)
	sealed := s.await()
	s.must(sealed.Err)
	s.holds(sealed.Place, "one two")
	copies, err := os.ReadDir(s.options.Store)
	s.must(err)
	if len(copies) != 1 || s.keeper.copied != int64(len("one two")) {
		t.Errorf("%d copies with %d bytes", len(copies), s.keeper.copied)
	}
}

func TestOtherKindsStay(t *testing.T) {
	s := newScene(t)
	s.options.Drop = true
	s.open()
	dir, err := s.keeper.Dir()
	s.must(err)
	defer dir.Close()
	s.must(os.Symlink("target", filepath.Join(s.quarantine(), "link")))
	s.must(os.Mkdir(filepath.Join(s.quarantine(), "directory"), 0o755))
	for _, name := range []string{"link", "directory"} {
		info, err := dir.Stat(name)
		s.must(err)
		s.keeper.Keep(Version{Info: info, Quarantined: name})
	}
	s.keeper.Keep(Version{Beside: "/beside"})
	s.keeper.Keep(s.displace("file", "dropped"))
	s.keeper.Finish()
	var places []string
	for _, sealed := range s.keeper.Take() {
		s.must(sealed.Err)
		places = append(places, sealed.Place)
	}
	want := []string{filepath.Join(s.quarantine(), "link"), filepath.Join(s.quarantine(), "directory"), "/beside", ""}
	if !slices.Equal(places, want) {
		t.Errorf("they lie at %q, want %q", places, want)
	}
	s.gone(filepath.Join(s.quarantine(), "file"))
	s.gone(s.options.Store)
	if info, err := os.Lstat(filepath.Join(s.quarantine(), "link")); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is not there any more: %v", err)
	}
}

// A link that was set aside is known by its target, as one in the quarantine is.
func TestLinkSetAside(t *testing.T) {
	s := newScene(t)
	s.options.GitDir = nil
	s.open()
	place := filepath.Join(t.TempDir(), "link")
	s.must(os.Symlink("target", place))
	sealed := s.seal(Version{Beside: place, Info: safefile.Info{Kind: safefile.Symlink}})
	if sealed.Place != place || sealed.Digest != snapshot.DigestOfLink("target") {
		t.Errorf("sealed as %+v", sealed)
	}
}

// TestBudget fills the store to its bound with holes.
func TestBudget(t *testing.T) {
	s := newScene(t)
	s.open()
	large := func(name string, size int64) Version {
		v := s.displace(name, "")
		s.must(os.Truncate(filepath.Join(s.quarantine(), name), size))
		return v
	}
	s.keeper.Keep(large("a", 40<<20))
	s.keeper.Keep(large("b", 40<<20))
	s.keeper.Keep(large("c", 1<<40))
	s.keeper.Keep(s.nameless("small"))
	tooLarge := s.nameless("")
	tooLarge.File.Close()
	tooLarge.File = nil
	s.keeper.Keep(tooLarge)
	s.keeper.Finish()
	sealed := s.keeper.Take()
	s.in(sealed[0].Place, s.options.Store)
	s.in(sealed[1].Place, s.quarantine())
	s.in(sealed[2].Place, s.quarantine())
	s.in(sealed[3].Place, s.options.Store)
	if sealed[4].Err == nil || sealed[4].Place != "" {
		t.Errorf("what could not be held lies at %q (%v)", sealed[4].Place, sealed[4].Err)
	}
	if sealed[2].Digest != (snapshot.Digest{}) {
		t.Error("a terabyte was read")
	}
}

// TestQuarantinePrivate has others' permissions taken off the quarantine again.
func TestQuarantinePrivate(t *testing.T) {
	for _, mode := range []fs.FileMode{0, 0o500, 0o777} {
		s := newScene(t)
		s.open()
		v := s.displace("a", "content")
		s.must(os.Chmod(s.quarantine(), mode))
		s.must(os.Chmod(filepath.Dir(s.quarantine()), mode))
		dir, err := s.keeper.Dir()
		s.must(err)
		info, err := dir.Info()
		s.must(err)
		dir.Close()
		if info.Perm != 0o700 {
			t.Errorf("mode %o of the quarantine, made %o before", info.Perm, mode)
		}
		sealed := s.seal(v)
		s.must(sealed.Err)
		s.holds(sealed.Place, "content")
		s.gone(filepath.Dir(s.quarantine()))
	}
}

// TestForeignQuarantine has somebody's own directory in the place of the
// quarantine: it is left as it is, and is none.
func TestForeignQuarantine(t *testing.T) {
	s := newScene(t)
	place := filepath.Dir(s.quarantine())
	s.must(os.Mkdir(place, 0o755))
	s.must(os.WriteFile(filepath.Join(place, "file"), []byte("whole"), 0o644))
	if dir, err := s.open().Dir(); err == nil {
		dir.Close()
		t.Error("it is taken for the quarantine")
	}
	s.must(s.seal(s.nameless("content")).Err)
	info, err := os.Stat(place)
	s.must(err)
	if entries, err := os.ReadDir(place); err != nil || len(entries) != 1 || info.Mode().Perm() != 0o755 {
		t.Errorf("it is %v and holds %v, %v", info.Mode(), entries, err)
	}
	s.holds(filepath.Join(place, "file"), "whole")
}

func TestNoGit(t *testing.T) {
	s := newScene(t)
	s.options.GitDir = nil
	if _, err := s.open().Dir(); err == nil {
		t.Error("there is a quarantine outside git")
	}
	s.keeper.Finish()
}

func TestPrune(t *testing.T) {
	s := newScene(t)
	sessions := filepath.Dir(s.options.Store)
	now := time.Now()
	old := now.Add(-keepFor - time.Hour)
	address := snapshot.IDOf(nil).String()
	make := func(name string, at time.Time, files ...string) string {
		dir := filepath.Join(sessions, name)
		s.must(os.MkdirAll(dir, 0o700))
		for _, file := range files {
			s.must(os.WriteFile(filepath.Join(dir, file), nil, 0o600))
		}
		s.must(os.Chtimes(dir, at, at))
		return dir
	}
	gone := make("00000000000000aa", old, address, incoming+"123")
	young := make("00000000000000ab", now.Add(-keepFor+time.Hour), address)
	mixed := make("00000000000000ac", old, address, "notes")
	foreign := make("00000000000000AD", old, address)
	link := filepath.Join(sessions, "00000000000000ae")
	outside := filepath.Join(filepath.Dir(sessions), "outside")
	s.must(os.MkdirAll(outside, 0o755))
	s.must(os.WriteFile(filepath.Join(outside, address), nil, 0o600))
	s.must(os.Symlink(outside, link))
	inside := filepath.Join(young, "..", "00000000000000af")
	s.must(os.Mkdir(inside, 0o700))
	s.must(os.Symlink(filepath.Join(outside, address), filepath.Join(inside, address)))
	s.must(os.Chtimes(inside, old, old))

	s.must(Prune(sessions, now))
	s.gone(gone)
	s.gone(filepath.Join(mixed, address))
	for _, path := range []string{
		filepath.Join(young, address), filepath.Join(mixed, "notes"), filepath.Join(foreign, address), link,
		filepath.Join(outside, address), filepath.Join(inside, address),
	} {
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
	s.must(Prune(filepath.Join(sessions, "none"), now))
}

// What a version is when it comes and what it is when it is sealed are two
// things where somebody writes it in between.
func TestIdentityWhenItCame(t *testing.T) {
	s := newScene(t)
	s.open()
	v := s.displace("a", "evil")
	writer, err := os.OpenFile(filepath.Join(s.quarantine(), "a"), os.O_RDWR, 0)
	s.must(err)
	s.keeper.Keep(v) // not sealed while it is open
	_, err = writer.WriteAt([]byte("good"), 0)
	s.must(err)
	s.must(writer.Close())
	s.keeper.Finish()
	sealed := s.keeper.Take()
	came, is := sha256.Sum256([]byte("evil")), sha256.Sum256([]byte("good"))
	if len(sealed) != 1 || !bytes.Equal(sealed[0].Came, came[:]) || !bytes.Equal(sealed[0].Identity, is[:]) || sealed[0].Began {
		t.Errorf("sealed as %+v", sealed)
	}
}

// A version that its writer went on with is told from one that was given
// another content.
func TestBeginningOfAVersion(t *testing.T) {
	for came, began := range map[string]bool{"": true, "go": true, "evil": false, "longer than good": false, "good": false} {
		s := newScene(t)
		s.open()
		v := s.displace("a", came)
		writer, err := os.OpenFile(filepath.Join(s.quarantine(), "a"), os.O_RDWR, 0)
		s.must(err)
		s.keeper.Keep(v) // not sealed while it is open
		_, err = writer.WriteAt([]byte("good"), 0)
		s.must(err)
		s.must(writer.Truncate(4))
		s.must(writer.Close())
		s.keeper.Finish()
		if sealed := s.keeper.Take(); len(sealed) != 1 || sealed[0].Began != began {
			t.Errorf("%q is sealed as %+v", came, sealed)
		}
	}
}

// A version past the limit is not looked at when it comes.
func TestIdentityOfALargeVersion(t *testing.T) {
	s := newScene(t)
	s.open()
	large := strings.Repeat("x", int(s.keeper.DigestLimit))
	if sealed := s.seal(s.displace("a", large)); sealed.Came == nil || !bytes.Equal(sealed.Came, sealed.Identity) {
		t.Errorf("at the limit sealed as %+v", sealed)
	}
	s.open()
	if sealed := s.seal(s.displace("b", large+"x")); sealed.Came != nil || sealed.Identity == nil {
		t.Errorf("past the limit sealed as %+v", sealed)
	}
}

func mkfifo(path string) error { return unix.Mkfifo(path, 0o600) }
