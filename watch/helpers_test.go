package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"cage/rules"
	"cage/snapshot"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(insideEnv) == "" {
		goleak.VerifyTestMain(m)
	}
	os.Exit(m.Run())
}

// insideEnv is set in test binaries that run in a namespace of their own.
const insideEnv = "WATCH_TEST_INSIDE"

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

// scene is a tree with a watcher on it.
type scene struct {
	testing.TB
	root  string
	trees *snapshot.Trees
	plan  *rules.Plan
	w     *Watcher
	marks int
}

const config = "protect:\n  - path: infra/\n  - path: dir/deep/file.conf\n  - glob: \"**/*.pem\"\n"

// newScene makes a tree with protected files and a watcher that is told of
// them.
func newScene(t testing.TB) *scene { return newSceneWith(t, systemLimits(), nil) }

func newSceneWith(t testing.TB, l limits, prepare func(s *scene)) *scene {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{TB: t, root: root}
	for name, content := range map[string]string{
		".env": "A=1\n", "src/.env": "B=2\n", "src/main.go": "package main\n",
		"infra/prod/main.tf": "resource {}\n", "dir/deep/file.conf": "c\n", "keys/a.pem": "key\n",
		".github/workflows/ci.yml": "on: push\n", ".git/config": "[core]\n", ".git/hooks/pre-commit": "#!/bin/sh\n",
	} {
		s.write(name, content)
	}
	if prepare != nil {
		prepare(s)
	}
	layout := rules.Layout{Root: root, CommonDir: filepath.Join(root, ".git")}
	s.plan, err = rules.New(rules.Inputs{Layout: layout, Config: rules.File{Present: true, Data: []byte(config)}})
	if err != nil {
		t.Fatal(err)
	}
	if s.trees, err = snapshot.OpenTrees(layout); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.trees.Close)
	s.w = open(Options{Plan: s.plan, Trees: s.trees}, l)
	t.Cleanup(func() {
		if err := s.w.Close(); err != nil {
			t.Error(err)
		}
	})
	s.w.Protect(s.w.Scan().Found)
	s.w.Take()
	return s
}

func (s *scene) abs(name string) string { return filepath.Join(s.root, name) }

func (s *scene) path(name string) rules.Path { return s.trees.Layout().Locate(s.abs(name)) }

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *scene) write(name, content string) {
	s.Helper()
	s.must(os.MkdirAll(filepath.Dir(s.abs(name)), 0o755))
	s.must(os.WriteFile(s.abs(name), []byte(content), 0o644))
}

// hinted waits until all the names were hinted at.
func (s *scene) hinted(names ...string) {
	s.Helper()
	missing := make(map[rules.Path]bool)
	for _, name := range names {
		missing[s.path(name)] = true
	}
	s.until(func(b Batch) bool {
		for _, p := range b.Paths {
			delete(missing, p)
		}
		return len(missing) == 0
	}, func() { s.Errorf("no hint at %v", missing) })
}

// until takes batches until one of them, or what they add up to, is enough.
func (s *scene) until(enough func(Batch) bool, fail func()) {
	s.Helper()
	deadline := time.After(patience)
	for {
		select {
		case <-s.w.Ready():
			if enough(s.w.Take()) {
				return
			}
		case <-deadline:
			fail()
			s.FailNow()
		}
	}
}

// settle waits until the watcher has read every event that was caused so far
// and has done what they ask for. Events of one layer arrive in order, so it is
// enough to cause a last one in each and to wait for its hint.
func (s *scene) settle() {
	s.Helper()
	s.last(func() string {
		s.marks++
		name := fmt.Sprintf(".env.settle.%d", s.marks)
		s.must(os.Symlink("x", s.abs(name)))
		s.must(os.Remove(s.abs(name)))
		return name
	})
	if s.w.inodes.armed(s.path("keys/a.pem")) {
		s.last(func() string {
			// One link is one event; it stays until the test ends.
			s.must(os.Link(s.abs("keys/a.pem"), filepath.Join(s.TempDir(), "settle")))
			return "keys/a.pem"
		})
	}
	s.w.doChores()
	s.w.Take()
}

// last causes an event and waits for its hint, again if the kernel dropped it.
func (s *scene) last(cause func() (name string)) {
	s.Helper()
	for hinted := false; !hinted; {
		p := s.path(cause())
		s.until(func(b Batch) bool {
			hinted = slices.Contains(b.Paths, p)
			return hinted || b.Rescan
		}, func() { s.Errorf("no hint at %v", p) })
	}
}
