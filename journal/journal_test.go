package journal_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cage/internal/proc"
	"cage/journal"
	"cage/rules"
	"cage/snapshot"
)

// scene is a root outside git with a baseline to journal.
type scene struct {
	testing.TB
	root   string
	temp   string
	layout rules.Layout
}

func newScene(t testing.TB) *scene {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{TB: t, root: filepath.Join(dir, "root"), temp: filepath.Join(dir, "temp")}
	s.layout = rules.Layout{Root: s.root}
	s.must(os.MkdirAll(filepath.Join(s.root, "config"), 0o755))
	s.must(os.Mkdir(s.temp, 0o700))
	for name, content := range map[string]string{
		".env": "A=1", ".env.two": "A=1", "config/.env": "B=2", "go.sum": "sums", "odd\n\xff.env": "", "config/real": "R",
	} {
		s.must(os.WriteFile(filepath.Join(s.root, name), []byte(content), 0o640))
	}
	s.must(os.Symlink("config/real", filepath.Join(s.root, ".env.link")))
	return s
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *scene) folder() string { return journal.Folder(s.layout, s.temp) }

// record takes a baseline as a session does.
func (s *scene) record() journal.Record {
	s.Helper()
	config := rules.File{Present: true, Data: []byte("protect:\n- glob: \"*.env\"\n- path: lead/file\n")}
	plan, err := rules.New(rules.Inputs{Layout: s.layout, Config: config})
	s.must(err)
	trees, err := snapshot.OpenTrees(s.layout)
	s.must(err)
	defer trees.Close()
	found := snapshot.Look(trees, plan, nil, nil).Found
	plan, err = plan.Settle(found)
	s.must(err)
	targets := snapshot.Follow(trees, plan, found).Additions()
	plan = plan.With(targets)
	r := journal.Record{Session: "0123456789abcdef", Layout: s.layout, Started: time.Now(), Store: snapshot.NewStore()}
	r.Rules.Config = config
	for _, target := range targets {
		found = append(found, target.Path)
		r.Rules.Joined = append(r.Rules.Joined, target.Path)
	}
	r.Manifest, err = snapshot.Take(context.Background(), trees, plan, found, r.Store,
		snapshot.Limits{FileBytes: 1 << 20, Files: 100, TotalBytes: 1 << 20})
	s.must(err)
	return r
}

// write makes a journal as a session that was killed leaves it.
func (s *scene) write() journal.Record {
	s.Helper()
	j, left, err := journal.Acquire(s.folder())
	s.must(err)
	if left != nil {
		s.Fatal("an earlier session was there")
	}
	r := s.record()
	s.must(j.Write(r))
	for i := range 3 {
		_, err := j.Refresh([]proc.ID{{PID: 100 + i, Start: 7}})
		s.must(err)
	}
	s.must(j.Close())
	return r
}

func (s *scene) acquire() (*journal.Journal, *journal.Interrupted, error) {
	j, left, err := journal.Acquire(s.folder())
	if j != nil {
		s.Cleanup(func() { j.Close() })
	}
	return j, left, err
}

// listing describes the folder's files with their content.
func (s *scene) listing() string {
	s.Helper()
	entries, err := os.ReadDir(s.folder())
	s.must(err)
	var b strings.Builder
	for _, entry := range entries {
		if entry.IsDir() {
			fmt.Fprintf(&b, "%s/\n", entry.Name())
			continue
		}
		if entry.Type() == os.ModeNamedPipe {
			fmt.Fprintf(&b, "%s|\n", entry.Name())
			continue
		}
		data, err := os.ReadFile(filepath.Join(s.folder(), entry.Name()))
		s.must(err)
		fmt.Fprintf(&b, "%s %q\n", entry.Name(), data)
	}
	return b.String()
}

func TestRoundTrip(t *testing.T) {
	s := newScene(t)
	r := s.write()
	_, left, err := s.acquire()
	s.must(err)
	if left == nil || left.Session != r.Session || !left.SameBoot || !left.SamePIDs {
		t.Fatalf("%+v", left)
	}
	self, err := proc.Self()
	s.must(err)
	if left.Leaves || left.Cage != self || !slices.Equal(left.Processes, []proc.ID{{PID: 102, Start: 7}}) {
		t.Errorf("cage %v, processes %v", left.Cage, left.Processes)
	}
	plan, manifest, err := left.Build(s.layout, nil)
	s.must(err)
	if !slices.Equal(manifest.Paths(), r.Manifest.Paths()) {
		t.Fatalf("paths %v, want %v", manifest.Paths(), r.Manifest.Paths())
	}
	for _, p := range r.Manifest.Paths() {
		was, _ := r.Manifest.Entry(p)
		is, _ := manifest.Entry(p)
		if fmt.Sprintf("%+v", was) != fmt.Sprintf("%+v", is) {
			t.Errorf("%q is\n%+v, was\n%+v", p.Rel, is, was)
		}
		if !was.Kept {
			continue
		}
		want, _ := r.Store.Get(was.State.Content)
		if got, ok := left.Store.Get(is.State.Content); !ok || string(got) != string(want) {
			t.Errorf("content of %q is %q, want %q", p.Rel, got, want)
		}
	}
	if v, ok := plan.Classify(rules.Path{Rel: "config/real"}); !ok || v.Rule != rules.Secrets {
		t.Errorf("the target of a protected link is %+v", v)
	}
	if !slices.Equal(manifest.Directories(), r.Manifest.Directories()) {
		t.Errorf("directories %v", manifest.Directories())
	}
}

// What a session has left is nobody's to end, and a journal that is read says so.
func TestLeft(t *testing.T) {
	s := newScene(t)
	j, _, err := s.acquire()
	s.must(err)
	s.must(j.Write(s.record()))
	s.must(j.Leave())
	s.must(j.Close())
	_, left, err := s.acquire()
	s.must(err)
	if left == nil || !left.Leaves {
		t.Errorf("%+v", left)
	}
}

// TestAmended notes what git changed while the session ran.
func TestAmended(t *testing.T) {
	s := newScene(t)
	j, _, err := journal.Acquire(s.folder())
	s.must(err)
	r := s.record()
	s.must(j.Write(r))
	e, _ := r.Manifest.Entry(rules.Path{Rel: ".env"})
	changed := *e
	changed.State.Content = r.Store.Put([]byte("kept"))
	changed.State.Size = 4
	r.Manifest.Replace(&changed)
	s.must(j.Amend(&changed))
	s.must(j.Close())
	_, left, err := s.acquire()
	s.must(err)
	_, manifest, err := left.Build(s.layout, nil)
	s.must(err)
	again, _ := manifest.Entry(e.Path)
	if content, _ := left.Store.Get(again.State.Content); string(content) != "kept" {
		t.Errorf("the amended content is %q", content)
	}
}

func TestRemovedJournalIsNone(t *testing.T) {
	s := newScene(t)
	s.write()
	j, _, err := journal.Acquire(s.folder())
	s.must(err)
	s.must(j.Remove())
	if _, err := os.Lstat(s.folder()); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
	_, left, err := s.acquire()
	if left != nil || err != nil {
		t.Errorf("%v %v", left, err)
	}
}

// TestOneWins starts many at the same moment, again and again, while winners
// remove their journal.
func TestOneWins(t *testing.T) {
	s := newScene(t)
	for range 50 {
		type result struct {
			j   *journal.Journal
			err error
		}
		const starts = 8
		results := make(chan result, starts)
		for range starts {
			go func() {
				j, _, err := journal.Acquire(s.folder())
				results <- result{j, err}
			}()
		}
		var winner *journal.Journal
		for range starts {
			r := <-results
			var active *journal.ActiveError
			switch {
			case r.err == nil && winner == nil:
				winner = r.j
			case r.err == nil:
				t.Fatal("two hold the lock")
			case !errors.As(r.err, &active):
				t.Fatal(r.err)
			}
		}
		if winner == nil {
			t.Fatal("nobody holds the lock")
		}
		s.must(winner.Remove())
	}
}

// TestLockOutlivesItsHolder has a lock that a process holds which did not take
// it, as a child does that has not closed it yet: it is waited for.
func TestLockOutlivesItsHolder(t *testing.T) {
	s := newScene(t)
	s.write()
	lock, err := os.OpenFile(filepath.Join(s.folder(), "lock"), os.O_RDWR, 0)
	s.must(err)
	s.must(lock.Truncate(0))
	s.must(syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
	acquired := make(chan error, 1)
	go func() {
		j, left, err := journal.Acquire(s.folder())
		if err == nil && left == nil {
			err = errors.New("the earlier session is not found")
		}
		if err == nil {
			err = j.Close()
		}
		acquired <- err
	}()
	s.must(lock.Close())
	s.must(<-acquired)
}

// TestActiveNamesItsProcess asks while the session runs.
func TestActiveNamesItsProcess(t *testing.T) {
	s := newScene(t)
	j, _, err := journal.Acquire(s.folder())
	s.must(err)
	defer j.Remove()
	s.must(j.Write(s.record()))
	_, _, err = s.acquire()
	var active *journal.ActiveError
	if !errors.As(err, &active) || active.Cage.PID != os.Getpid() {
		t.Errorf("%v", err)
	}
}

// TestEveryFlippedByteIsRefused flips bytes in every part of every file: each
// in a small one, every few in a large one.
func TestEveryFlippedByteIsRefused(t *testing.T) {
	s := newScene(t)
	s.write()
	entries, err := os.ReadDir(s.folder())
	s.must(err)
	flipped := 0
	for _, entry := range entries {
		if entry.Name() == "lock" {
			continue // what it says decides nothing
		}
		name := filepath.Join(s.folder(), entry.Name())
		data, err := os.ReadFile(name)
		s.must(err)
		for i := 0; i < len(data); i += 1 + len(data)/200 {
			data[i] ^= 1
			s.must(os.WriteFile(name, data, 0o600))
			before := s.listing()
			if _, left, err := journal.Acquire(s.folder()); !corrupt(err) || left != nil {
				t.Fatalf("byte %d of %s: %v", i, entry.Name(), err)
			}
			if s.listing() != before {
				t.Fatalf("byte %d of %s: the journal was changed", i, entry.Name())
			}
			data[i] ^= 1
			flipped++
		}
		s.must(os.WriteFile(name, data, 0o600))
	}
	if flipped < 500 {
		t.Errorf("only %d bytes were flipped", flipped)
	}
	j, left, err := journal.Acquire(s.folder())
	if err != nil || left == nil {
		t.Fatalf("unharmed again it is refused: %v", err)
	}
	j.Close()
}

func corrupt(err error) bool {
	var c *journal.CorruptError
	return errors.As(err, &c)
}

// TestRefused spoils a journal in one way at a time.
func TestRefused(t *testing.T) {
	tests := map[string]func(s *scene){
		"a missing part":       func(s *scene) { s.must(os.Remove(filepath.Join(s.folder(), "baseline.json"))) },
		"a missing sidecar":    func(s *scene) { s.must(os.Remove(filepath.Join(s.folder(), "session.json.sha256"))) },
		"missing content":      func(s *scene) { s.must(os.Remove(filepath.Join(s.folder(), "content.pack"))) },
		"a truncated part":     func(s *scene) { s.must(os.Truncate(filepath.Join(s.folder(), "content.pack"), 3)) },
		"no life":              func(s *scene) { s.removeLives() },
		"something else in it": func(s *scene) { s.must(os.WriteFile(filepath.Join(s.folder(), "x"), nil, 0o600)) },
		"a part for others":    func(s *scene) { s.must(os.Chmod(filepath.Join(s.folder(), "session.json"), 0o644)) },
		"a folder for others":  func(s *scene) { s.must(os.Chmod(s.folder(), 0o755)) },
		"a link in it": func(s *scene) {
			name := filepath.Join(s.folder(), "content.pack")
			s.must(os.Rename(name, filepath.Join(s.temp, "elsewhere")))
			s.must(os.Symlink(filepath.Join(s.temp, "elsewhere"), name))
		},
		"a hard link in it": func(s *scene) {
			s.must(os.Link(filepath.Join(s.folder(), "content.pack"), filepath.Join(s.temp, "elsewhere")))
		},
		"a link for a folder": func(s *scene) {
			s.must(os.Rename(s.folder(), s.folder()+".real"))
			s.must(os.Symlink(s.folder()+".real", s.folder()))
		},
		"a link for a lock": func(s *scene) {
			s.must(os.Remove(filepath.Join(s.folder(), "lock")))
			s.must(os.Symlink("content.pack", filepath.Join(s.folder(), "lock")))
		},
		"a part for a lock": func(s *scene) {
			s.must(os.Remove(filepath.Join(s.folder(), "lock")))
			s.must(os.Link(filepath.Join(s.folder(), "content.pack"), filepath.Join(s.folder(), "lock")))
		},
		"a folder for a lock": func(s *scene) {
			s.must(os.Remove(filepath.Join(s.folder(), "lock")))
			s.must(os.Mkdir(filepath.Join(s.folder(), "lock"), 0o700))
		},
		"a pipe for a lock": func(s *scene) {
			s.must(os.Remove(filepath.Join(s.folder(), "lock")))
			s.must(syscall.Mkfifo(filepath.Join(s.folder(), "lock"), 0o600))
		},
		"a lock for others": func(s *scene) { s.must(os.Chmod(filepath.Join(s.folder(), "lock"), 0o666)) },
		"a copied folder":   (*scene).copyFolder,
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.write()
			spoil(s)
			before := s.listing()
			if _, left, err := journal.Acquire(s.folder()); !corrupt(err) || left != nil {
				t.Errorf("%v", err)
			}
			if s.listing() != before {
				t.Error("the journal was changed")
			}
		})
	}
}

// copyFolder moves the folder away and puts a copy in its place.
func (s *scene) copyFolder() {
	s.must(os.Rename(s.folder(), s.folder()+".real"))
	s.must(os.CopyFS(s.folder(), os.DirFS(s.folder()+".real")))
	s.must(os.Chmod(s.folder(), 0o700))
	entries, err := os.ReadDir(s.folder())
	s.must(err)
	for _, entry := range entries {
		s.must(os.Chmod(filepath.Join(s.folder(), entry.Name()), 0o600))
	}
}

func (s *scene) removeLives() {
	names, err := filepath.Glob(filepath.Join(s.folder(), "life-*"))
	s.must(err)
	for _, name := range names {
		s.must(os.Remove(name))
	}
}

// TestMended takes the journal away while the session runs.
func TestMended(t *testing.T) {
	tests := map[string]func(s *scene){
		"nothing":       func(*scene) {},
		"a part":        func(s *scene) { s.must(os.Remove(filepath.Join(s.folder(), "content.pack"))) },
		"the lock":      func(s *scene) { s.must(os.Remove(filepath.Join(s.folder(), "lock"))) },
		"all of it":     func(s *scene) { s.must(os.RemoveAll(s.folder())) },
		"moved away":    func(s *scene) { s.must(os.Rename(s.folder(), s.folder()+".x")) },
		"another":       func(s *scene) { s.must(os.RemoveAll(s.folder())); s.must(os.Mkdir(s.folder(), 0o700)) },
		"a file for it": func(s *scene) { s.must(os.RemoveAll(s.folder())); s.must(os.WriteFile(s.folder(), nil, 0o600)) },
		"changed bytes": func(s *scene) {
			s.must(os.WriteFile(filepath.Join(s.folder(), "content.pack"), []byte("x"), 0o600))
		},
		"changed bytes under old times": func(s *scene) {
			name := filepath.Join(s.folder(), "content.pack")
			info, err := os.Stat(name)
			s.must(err)
			s.must(os.WriteFile(name, make([]byte, info.Size()), 0o600))
			s.must(os.Chtimes(name, info.ModTime(), info.ModTime()))
		},
		"another name":        func(s *scene) { s.must(os.Link(filepath.Join(s.folder(), "content.pack"), filepath.Join(s.temp, "x"))) },
		"a folder for others": func(s *scene) { s.must(os.Chmod(s.folder(), 0o755)) },
		"something beside it": func(s *scene) { s.must(os.WriteFile(filepath.Join(s.folder(), "x"), nil, 0o600)) },
		"a folder beside it":  func(s *scene) { s.must(os.MkdirAll(filepath.Join(s.folder(), "x", "y"), 0o700)) },
		"a life of its own":   func(s *scene) { s.must(os.WriteFile(filepath.Join(s.folder(), "life-9.json"), nil, 0o600)) },
		"an older life":       func(s *scene) { s.must(os.Chmod(filepath.Join(s.folder(), "life-1.json"), 0o644)) },
	}
	if os.Geteuid() != 0 { // who may enter what is closed
		tests["a closed folder"] = func(s *scene) { s.must(os.Chmod(s.folder(), 0)) }
		tests["a folder without x"] = func(s *scene) { s.must(os.Chmod(s.folder(), 0o600)) }
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			j, _, err := journal.Acquire(s.folder())
			s.must(err)
			s.must(j.Write(s.record()))
			spoil(s)
			mended, err := j.Refresh([]proc.ID{{PID: 5, Start: 5}})
			s.must(err)
			if mended == (name == "nothing") {
				t.Errorf("mended: %v", mended)
			}
			if _, _, err := journal.Acquire(s.folder()); !isActive(err) {
				t.Errorf("the lock is not held: %v", err)
			}
			s.must(j.Close())
			_, left, err := s.acquire()
			if err != nil || left == nil || len(left.Processes) != 1 {
				t.Errorf("%v %v", left, err)
			}
		})
	}
}

// TestRemovedWhateverStandsThere ends a session whose folder somebody put
// something else in the place of, right before: the next one is not refused.
func TestRemovedWhateverStandsThere(t *testing.T) {
	tests := map[string]func(s *scene){
		"the journal":     func(*scene) {},
		"nothing":         func(s *scene) { s.must(os.RemoveAll(s.folder())) },
		"a file":          func(s *scene) { s.must(os.RemoveAll(s.folder())); s.must(os.WriteFile(s.folder(), nil, 0o600)) },
		"a link":          func(s *scene) { s.must(os.RemoveAll(s.folder())); s.must(os.Symlink(s.root, s.folder())) },
		"another folder":  func(s *scene) { s.must(os.RemoveAll(s.folder())); s.must(os.Mkdir(s.folder(), 0o755)) },
		"a copy":          (*scene).copyFolder,
		"something in it": func(s *scene) { s.must(os.MkdirAll(s.folder()+"/x/y", 0o700)) },
		"another lock": func(s *scene) {
			s.must(os.Remove(s.folder() + "/lock"))
			s.must(os.WriteFile(s.folder()+"/lock", nil, 0o600))
		},
		"no directory to hold": func(s *scene) { s.must(os.RemoveAll(s.temp)) },
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			j, _, err := journal.Acquire(s.folder())
			s.must(err)
			s.must(j.Write(s.record()))
			spoil(s)
			s.must(j.Remove())
			if _, err := os.Lstat(s.folder()); err == nil {
				t.Error("something stands there still")
			}
			if _, err := os.ReadFile(filepath.Join(s.root, ".env")); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRemoveLeavesAnotherSession has a session begin where the folder of the
// one before was moved away.
func TestRemoveLeavesAnotherSession(t *testing.T) {
	s := newScene(t)
	j, _, err := journal.Acquire(s.folder())
	s.must(err)
	s.must(j.Write(s.record()))
	s.must(os.Rename(s.folder(), s.folder()+".away"))
	other, _, err := s.acquire()
	s.must(err)
	s.must(other.Write(s.record()))
	before := s.listing()
	s.must(j.Remove())
	if after := s.listing(); after != before {
		t.Errorf("it was\n%sand is\n%s", before, after)
	}
}

// TestCommonLockIsNoWay gives the name of the common lock to something else. Its
// content stays, and the lock is taken all the same.
func TestCommonLockIsNoWay(t *testing.T) {
	for name, occupy := range map[string]func(config, lock string) error{
		"a hard link": os.Link,
		"a link":      os.Symlink,
		"a pipe":      func(_, lock string) error { return syscall.Mkfifo(lock, 0o600) },
		"a folder":    func(_, lock string) error { return os.Mkdir(lock, 0o700) },
		"a socket":    func(_, lock string) error { return syscall.Mknod(lock, syscall.S_IFSOCK|0o600, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			config := filepath.Join(s.root, ".env")
			s.must(occupy(config, filepath.Join(s.root, journal.CommonLockName)))
			lock, err := journal.LockCommon(s.root)
			s.must(err)
			if lock == nil {
				t.Fatal("somebody holds it")
			}
			if again, err := journal.LockCommon(s.root); again != nil || err != nil {
				t.Errorf("a second lock: %v %v", again, err)
			}
			s.must(lock.Release())
			if data, err := os.ReadFile(config); string(data) != "A=1" {
				t.Errorf("the file holds %q (%v)", data, err)
			}
		})
	}
}

// TestComingAndGoing takes the lock and removes the journal from many sides at
// once: nobody fails but because another one holds it.
func TestComingAndGoing(t *testing.T) {
	s := newScene(t)
	errs := make(chan error)
	const sides = 4
	for range sides {
		go func() {
			for range 200 {
				j, _, err := journal.Acquire(s.folder())
				if err == nil {
					err = j.Remove()
				}
				if err != nil && !isActive(err) {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range sides {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// TestNothingNewIsNotWritten refreshes a journal that has nothing to say, and
// one whose newest record somebody took away.
func TestNothingNewIsNotWritten(t *testing.T) {
	s := newScene(t)
	j, _, err := s.acquire()
	s.must(err)
	s.must(j.Write(s.record()))
	same := []proc.ID{{PID: 5, Start: 5}, {PID: 6, Start: 5}}
	refresh := func(processes []proc.ID) (before, after string) {
		before = s.listing()
		mended, err := j.Refresh(processes)
		s.must(err)
		if mended {
			t.Error("mended")
		}
		return before, s.listing()
	}
	if before, after := refresh(same); before == after {
		t.Error("the first list was not written")
	}
	if before, after := refresh(slices.Clone(same)); before != after {
		t.Errorf("the same list was written again:\n%s\nafter\n%s", after, before)
	}
	if before, after := refresh(same[:1]); before == after {
		t.Error("another list was not written")
	}
	s.removeLives()
	refresh(same[:1])
	s.must(j.Close())
	if _, left, err := s.acquire(); err != nil || left == nil || len(left.Processes) != 1 {
		t.Errorf("%v %v", left, err)
	}
}

// TestRefreshFailsWithoutHarm has no new record written, as on a full disk:
// what is there already stays, whole.
func TestRefreshFailsWithoutHarm(t *testing.T) {
	s := newScene(t)
	j, _, err := s.acquire()
	s.must(err)
	s.must(j.Write(s.record()))
	inTheWay := filepath.Join(s.folder(), "life-2.json.new")
	s.must(os.MkdirAll(filepath.Join(inTheWay, "taken"), 0o700))
	before := s.listing()
	mended, err := j.Refresh([]proc.ID{{PID: 5, Start: 5}})
	if err == nil || mended {
		t.Errorf("%v, mended: %v", err, mended)
	}
	if after := s.listing(); after != before {
		t.Errorf("the journal changed:\n%s\nafter\n%s", after, before)
	}
	s.must(os.RemoveAll(inTheWay))
	s.must(j.Close())
	if _, left, err := s.acquire(); err != nil || left == nil || len(left.Processes) != 0 {
		t.Errorf("%v %v", left, err)
	}
}

func isActive(err error) bool {
	var active *journal.ActiveError
	return errors.As(err, &active)
}

// TestJoinedByWayOfLinks has files that joined by way of directories' links. One
// that the journal's own links do not lead to is left out while it is as it was.
func TestJoinedByWayOfLinks(t *testing.T) {
	s := newScene(t)
	s.must(os.Mkdir(filepath.Join(s.root, "dir"), 0o755))
	for _, name := range []string{"inner", "file", "absolute", "beyond"} {
		s.must(os.WriteFile(filepath.Join(s.root, "dir", name), []byte(name), 0o640))
	}
	for link, target := range map[string]string{
		"way": "./config/../dir", ".env.way": "way/inner", "lead": "../root/dir", "../outside": s.root,
		".env.absolute": filepath.Join(s.root, "dir/absolute"), ".env.beyond": "../outside/dir/beyond",
	} {
		s.must(os.Symlink(target, filepath.Join(s.root, link)))
	}
	r := s.write()
	_, left, err := s.acquire()
	s.must(err)
	// What stands there now leads nobody.
	s.must(os.Remove(filepath.Join(s.root, ".env.absolute")))
	s.must(os.Symlink("dir/beyond", filepath.Join(s.root, ".env.absolute")))
	plan, manifest, err := left.Build(s.layout, nil)
	s.must(err)
	for path, rule := range map[string]rules.Rule{
		"way": rules.Secrets, "dir/inner": rules.Secrets, "lead": rules.Protect, "dir/file": rules.Protect, "dir/absolute": rules.Secrets,
	} {
		if v, ok := plan.Classify(rules.Path{Rel: path}); !ok || v.Rule != rule {
			t.Errorf("%s is %+v", path, v)
		}
	}
	want := slices.DeleteFunc(slices.Clone(r.Manifest.Paths()), func(p rules.Path) bool { return p.Rel == "dir/beyond" || p.Anchor == rules.Outside })
	if len(want) != r.Manifest.Len()-2 || !slices.Equal(manifest.Paths(), want) {
		t.Errorf("paths %v, want %v", manifest.Paths(), want)
	}
	s.must(os.WriteFile(filepath.Join(s.root, "dir/beyond"), []byte("evil"), 0o640))
	if _, _, err := left.Build(s.layout, nil); !corrupt(err) || !strings.Contains(err.Error(), `"dir/beyond"`) {
		t.Errorf("%v", err)
	}
}

// TestForeignEntryIsRefused has a journal that names a path which no rule of
// its session matches.
func TestForeignEntryIsRefused(t *testing.T) {
	s := newScene(t)
	s.write()
	_, left, err := s.acquire()
	s.must(err)
	// Elsewhere the same names are matched by no rule: the config is another.
	left.ForgetConfig()
	if _, _, err := left.Build(s.layout, nil); !corrupt(err) {
		t.Errorf("%v", err)
	}
}

// TestEnsured asks for the whole journal when the session ends: it is there, is
// written again, or lies where its folder was moved to.
func TestEnsured(t *testing.T) {
	for name, spoil := range map[string]func(s *scene) (folder string){
		"as it was": func(s *scene) string { return s.folder() },
		"gone":      func(s *scene) string { s.must(os.RemoveAll(s.folder())); return s.folder() },
		"without its content": func(s *scene) string {
			s.must(os.Remove(filepath.Join(s.folder(), "content.pack")))
			return s.folder()
		},
		"moved away": func(s *scene) string { s.must(os.Rename(s.folder(), s.folder()+".away")); return s.folder() },
		"moved with the directory above": func(s *scene) string {
			s.must(os.Rename(s.temp, s.temp+".away"))
			return filepath.Join(s.temp+".away", filepath.Base(s.folder()))
		},
		"nowhere": func(s *scene) string { s.must(os.RemoveAll(s.temp)); return "" },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			j, _, err := journal.Acquire(s.folder())
			s.must(err)
			s.must(j.Write(s.record()))
			folder := spoil(s)
			if err := j.Ensure(); (err == nil) != (folder != "") {
				t.Error(err)
			}
			s.must(j.Close())
			if folder == "" {
				return
			}
			again, left, err := journal.Acquire(folder)
			s.must(err)
			defer again.Close()
			if left == nil {
				t.Error("it is no journal")
			}
		})
	}
}

// foreign makes a directory that nothing may touch, and returns what says whether
// it is whole at a path.
func (s *scene) foreign() (dir string, whole func(at string)) {
	s.Helper()
	dir, err := os.MkdirTemp(filepath.Dir(s.temp), "foreign")
	s.must(err)
	s.must(os.Chmod(dir, 0o755))
	s.must(os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	s.must(os.WriteFile(filepath.Join(dir, "sub/file"), []byte("whole"), 0o644))
	return dir, func(at string) {
		s.Helper()
		info, err := os.Stat(at)
		s.must(err)
		data, err := os.ReadFile(filepath.Join(at, "sub/file"))
		if err != nil || string(data) != "whole" || info.Mode().Perm() != 0o755 {
			s.Errorf("what is somebody else's is %v, %q, %v", info.Mode(), data, err)
		}
	}
}

// another makes the journal of another session, as it was left by a cage that was
// killed, at a path.
func (s *scene) another(at string) (was string) {
	s.Helper()
	other := newScene(s.TB)
	j, _, err := journal.Acquire(other.folder())
	s.must(err)
	r := other.record()
	r.Session = "fedcba9876543210"
	s.must(j.Write(r))
	s.must(j.Close())
	s.must(os.Rename(other.folder(), at))
	return s.listing()
}

// none fails where what a folder holds is a journal still.
func (s *scene) none(folder string) {
	s.Helper()
	for _, name := range []string{"session.json", "content.pack", "lock"} {
		if _, err := os.Lstat(filepath.Join(folder, name)); err == nil {
			s.Errorf("%s is in %s", name, folder)
		}
	}
}

// TestNothingForeignIsRemoved ends a session whose folder somebody moved away, and
// put something in the place of that is no journal of it. The journal is gone,
// wherever it lies, and what is somebody else's stays as it is.
func TestNothingForeignIsRemoved(t *testing.T) {
	begin := func(t *testing.T) (*scene, *journal.Journal) {
		s := newScene(t)
		j, _, err := journal.Acquire(s.folder())
		s.must(err)
		s.must(j.Write(s.record()))
		return s, j
	}
	stays := func(s *scene, j *journal.Journal) {
		s.Helper()
		if err := j.Remove(); err == nil || !strings.Contains(err.Error(), s.folder()+" stays") {
			s.Errorf("%v", err)
		}
	}
	t.Run("a folder in its place", func(t *testing.T) {
		s, j := begin(t)
		dir, whole := s.foreign()
		s.must(os.Rename(s.folder(), s.folder()+".away"))
		s.must(os.Rename(dir, s.folder()))
		stays(s, j)
		whole(s.folder())
		s.none(s.folder() + ".away")
	})
	t.Run("a file in its place", func(t *testing.T) {
		s, j := begin(t)
		s.must(os.Rename(s.folder(), s.folder()+".away"))
		s.must(os.WriteFile(s.folder(), []byte("whole"), 0o644))
		stays(s, j)
		if data, err := os.ReadFile(s.folder()); string(data) != "whole" {
			t.Errorf("%q, %v", data, err)
		}
		s.none(s.folder() + ".away")
	})
	t.Run("another session's journal in its place", func(t *testing.T) {
		s, j := begin(t)
		s.must(os.Rename(s.folder(), s.folder()+".away"))
		was := s.another(s.folder())
		stays(s, j)
		if is := s.listing(); is != was {
			t.Errorf("it was\n%sand is\n%s", was, is)
		}
		s.none(s.folder() + ".away")
	})
	t.Run("a folder in it", func(t *testing.T) {
		s, j := begin(t)
		dir, whole := s.foreign()
		s.must(os.Rename(dir, filepath.Join(s.folder(), "x")))
		s.must(j.Remove())
		if len(j.Found()) != 1 {
			t.Fatalf("found is %q", j.Found())
		}
		whole(j.Found()[0])
		if _, err := os.Lstat(s.folder()); err == nil {
			t.Error("the folder is there still")
		}
	})
	t.Run("a folder with a part's name in it", func(t *testing.T) {
		s, j := begin(t)
		dir, whole := s.foreign()
		s.must(os.Remove(filepath.Join(s.folder(), "session.json")))
		s.must(os.Rename(dir, filepath.Join(s.folder(), "session.json")))
		s.must(j.Remove())
		if len(j.Found()) != 1 {
			t.Fatalf("found is %q", j.Found())
		}
		whole(j.Found()[0])
	})
	t.Run("the directory above moved away", func(t *testing.T) {
		s, j := begin(t)
		s.must(os.Rename(s.temp, s.temp+".away"))
		s.must(j.Remove())
		if _, err := os.Lstat(filepath.Join(s.temp+".away", filepath.Base(s.folder()))); err == nil {
			t.Error("the folder is there still")
		}
	})
	t.Run("another directory above", func(t *testing.T) {
		s, j := begin(t)
		s.must(os.Rename(s.temp, s.temp+".away"))
		s.must(os.Mkdir(s.temp, 0o700))
		was := s.another(s.folder())
		stays(s, j)
		if is := s.listing(); is != was {
			t.Errorf("it was\n%sand is\n%s", was, is)
		}
		if _, err := os.Lstat(filepath.Join(s.temp+".away", filepath.Base(s.folder()))); err == nil {
			t.Error("the folder is there still")
		}
	})
}

// TestNothingForeignIsMended does the same while the session runs: its journal is
// written again, beside what was in its place, but over no other session's.
func TestNothingForeignIsMended(t *testing.T) {
	t.Run("a folder", func(t *testing.T) {
		s := newScene(t)
		j, _, err := s.acquire()
		s.must(err)
		s.must(j.Write(s.record()))
		dir, whole := s.foreign()
		s.must(os.Rename(s.folder(), s.folder()+".away"))
		s.must(os.Rename(dir, s.folder()))
		mended, err := j.Refresh(nil)
		if err != nil || !mended || len(j.Found()) != 1 {
			t.Fatalf("mended: %v, %v, found %q", mended, err, j.Found())
		}
		whole(j.Found()[0])
		s.none(s.folder() + ".away")
		s.must(j.Close())
		if _, left, err := s.acquire(); err != nil || left == nil {
			t.Errorf("%v %v", left, err)
		}
	})
	t.Run("another session's journal", func(t *testing.T) {
		s := newScene(t)
		j, _, err := s.acquire()
		s.must(err)
		s.must(j.Write(s.record()))
		s.must(os.Rename(s.folder(), s.folder()+".away"))
		was := s.another(s.folder())
		if mended, err := j.Refresh(nil); err == nil || mended {
			t.Errorf("mended: %v, %v", mended, err)
		}
		if is := s.listing(); is != was {
			t.Errorf("it was\n%sand is\n%s", was, is)
		}
	})
	t.Run("another git directory", func(t *testing.T) {
		s := newScene(t)
		s.layout.GitDir = filepath.Join(s.root, ".git")
		s.must(os.Mkdir(s.layout.GitDir, 0o755))
		j, _, err := s.acquire()
		s.must(err)
		s.must(j.Write(s.record()))
		s.must(os.Rename(s.layout.GitDir, s.layout.GitDir+".away"))
		s.must(os.Mkdir(s.layout.GitDir, 0o755))
		if mended, err := j.Refresh(nil); err == nil || mended {
			t.Errorf("mended: %v, %v", mended, err)
		}
		if entries, err := os.ReadDir(s.layout.GitDir); err != nil || len(entries) > 0 {
			t.Errorf("it holds %v, %v", entries, err)
		}
	})
}
