package pushguard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cage/internal/gitrepo"
	"cage/internal/limittest"
	"cage/internal/program"
	"cage/rules"
	"cage/spawn"
)

// TestMain lets the test program be the one that a hook asks through.
func TestMain(m *testing.M) {
	Main()
	os.Exit(m.Run())
}

const session = "0123456789abcdef"

// scene is a repository with a remote, and a guard over it.
type scene struct {
	t     *testing.T
	work  string
	repo  string
	guard *Guard
}

// alone takes away what the caller's environment would tell git.
func alone(t *testing.T) (work string) {
	t.Helper()
	work, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range os.Environ() {
		if name, value, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "GIT_") {
			t.Setenv(name, value) // brings it back after the test
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, value := range map[string]string{
		"HOME": work, "XDG_CONFIG_HOME": work, "GIT_CONFIG_NOSYSTEM": "1",
		"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.invalid", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.invalid",
	} {
		t.Setenv(name, value)
	}
	return work
}

// newScene makes a repository below the work directory, and a guard over it in a
// folder below temp.
func newScene(t *testing.T, name, temp string) *scene {
	t.Helper()
	s := &scene{t: t, work: alone(t)}
	s.repo = filepath.Join(s.work, name)
	s.git(s.work, "init", "-q", "--bare", "-b", "main", "origin.git")
	s.git(s.work, "init", "-q", "-b", "main", "--template=", s.repo)
	s.git(s.repo, "remote", "add", "origin", "../origin.git")
	s.git(s.repo, "commit", "-q", "--allow-empty", "-m", "start")
	temp = filepath.Join(s.work, temp)
	if err := os.MkdirAll(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s.guard, err = Open(Options{Temp: temp, Session: session, Judge: s.judge(), Program: program})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.guard.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(Folder(temp, session)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the folder is left: %v", err)
		}
	})
	return s
}

func (s *scene) judge() Judge {
	s.t.Helper()
	git, err := program.Find("git", os.Getenv("PATH"), "")
	if err != nil {
		s.t.Fatal(err)
	}
	found, err := gitrepo.Discover(s.t.Context(), program.Exec, git, s.repo)
	if err != nil {
		s.t.Fatal(err)
	}
	start, err := found.StartRefs(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	plan, err := rules.New(rules.Inputs{Layout: rules.Layout{Root: found.Root, CommonDir: found.CommonDir}})
	if err != nil {
		s.t.Fatal(err)
	}
	return Judge{Repo: found.Repo, Plan: plan, Start: start}
}

// git runs git as it is outside of a session.
func (s *scene) git(dir string, args ...string) string {
	s.t.Helper()
	out, err := s.command(dir, nil, args...)
	if err != nil {
		s.t.Fatalf("git %q: %v %s", args, err, out)
	}
	return strings.TrimSuffix(out, "\n")
}

// guarded runs git as it is inside of the session.
func (s *scene) guarded(dir string, args ...string) (string, error) {
	return s.command(dir, spawn.WithGitSettings(os.Environ(), s.guard.Settings()...), args...)
}

func (s *scene) command(dir string, env []string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// record commits a content that never stands in the work tree.
func (s *scene) record(path string) {
	s.t.Helper()
	file := filepath.Join(s.work, "content")
	if err := os.WriteFile(file, []byte(path), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.git(s.repo, "update-index", "--add", "--cacheinfo", "100644,"+s.git(s.repo, "hash-object", "-w", file)+","+path)
	s.git(s.repo, "commit", "-q", "-m", path)
}

// Promise: git is led to the hooks in this repository, whatever it is called, in
// all of its work trees, and nowhere else.
func TestOnlyThisRepository(t *testing.T) {
	for _, name := range []string{"repo", "*", `a*b?[c]{d}\e #`, "q'u\"o\nt é%", "-x.path=~"} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, name, "tmp")
			led := func(dir string, want bool) {
				t.Helper()
				out, err := s.guarded(dir, "rev-parse", "--git-path", "hooks/pre-push")
				if got := filepath.Dir(out) == s.guard.folder; err != nil || got != want {
					t.Errorf("in %q: %q, %v", dir, out, err)
				}
			}
			led(s.repo, true)
			led(filepath.Join(s.repo, ".git"), true)
			s.git(s.repo, "push", "-q", "origin", "main")
			tree := filepath.Join(s.work, "tree")
			s.git(s.repo, "worktree", "add", "-q", tree)
			led(tree, true)
			for _, other := range []string{"clone", name + "x", name + "/nested", "x" + name} {
				other = filepath.Join(s.work, other)
				s.git(s.work, "clone", "-q", s.repo, other)
				led(other, false)
			}
			s.git(s.repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../origin.git", "module")
			led(filepath.Join(s.repo, "module"), false)
			led(filepath.Join(s.work, "origin.git"), false)
		})
	}
}

// Promise: a push is judged by the session, also where the folder's name is
// longer than that of a socket may be.
func TestPush(t *testing.T) {
	for name, temp := range map[string]string{"": "tmp", "long": strings.Repeat("long/", 30), "odd": "a'b \"c\" $d\n\\e"} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "repo", temp)
			if out, err := s.guarded(s.repo, "push", "-q", "origin", "main"); err != nil {
				t.Errorf("a harmless push: %v %s", err, out)
			}
			s.record(".github/workflows/ci.yml")
			out, err := s.guarded(s.repo, "push", "-q", "origin", "main")
			if err == nil || !strings.Contains(out, "  .github/workflows/ci.yml  (ci_config)  in ") {
				t.Errorf("a harmful push: %v %s", err, out)
			}
			select {
			case <-s.guard.Ready():
			default:
				t.Error("there is nothing to take")
			}
			if got := s.guard.Take(); len(got) != 1 || len(got[0].Findings) != 1 || got[0].Reason != "" {
				t.Errorf("noted was %+v", got)
			}
			if !s.guard.Whole() {
				t.Error("the folder is said to have been changed")
			}
		})
	}
}

// Promise: what cannot be judged does not go out, and the reason is told.
func TestWhatCannotBeJudged(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(s *scene)
		says  string
	}{
		"no session": {func(s *scene) { s.guard.listener.Close() }, "push refused: the session does not answer: it is gone\nfix: "},
		"no program": {func(s *scene) { must(s.t, os.Remove(filepath.Join(s.guard.folder, Stage))) }, "the cage's program is gone from its place"},
		"program moved": {func(s *scene) {
			link := filepath.Join(s.guard.folder, Stage)
			must(s.t, os.Remove(link))
			must(s.t, os.Symlink("/nowhere/cage", link))
		}, "the cage's program is gone from its place"},
		"another program": {func(s *scene) {
			link := filepath.Join(s.guard.folder, Stage)
			must(s.t, os.Remove(link))
			must(s.t, os.Symlink("/bin/false", link))
		}, "failed to push"},
		"objects elsewhere": {func(s *scene) {
			objects := filepath.Join(s.work, "objects")
			must(s.t, os.Mkdir(objects, 0o700))
			s.t.Setenv("GIT_OBJECT_DIRECTORY", objects)
			s.t.Setenv("GIT_ALTERNATE_OBJECT_DIRECTORIES", filepath.Join(s.repo, ".git/objects"))
			s.git(s.repo, "commit", "-q", "--allow-empty", "-m", "elsewhere")
		}, "it cannot be judged: what it would send is not in the session's repository"},
		"a broken repository": {func(s *scene) {
			s.record("file")
			tree := s.git(s.repo, "rev-parse", "HEAD^{tree}")
			must(s.t, os.Remove(filepath.Join(s.repo, ".git/objects", tree[:2], tree[2:])))
		}, "it cannot be judged: "},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "repo", "tmp")
			c.spoil(s)
			out, err := s.guarded(s.repo, "push", "-q", "origin", "HEAD:refs/heads/x")
			if err == nil || !strings.Contains(out, c.says) {
				t.Errorf("%v %s", err, out)
			}
			if out := s.git(s.work, "-C", "origin.git", "for-each-ref"); out != "" {
				t.Errorf("the other side has %s", out)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Promise: whoever talks nonsense to the session, or nothing at all, disturbs
// neither it nor others.
func TestForgedQuestions(t *testing.T) {
	s := newScene(t, "repo", "tmp")
	s.record(".github/workflows/ci.yml")
	head := s.git(s.repo, "rev-parse", "HEAD")
	line := "refs/heads/main " + head + " refs/heads/main " + strings.Repeat("0", 40) + "\n"
	ask := func(q any) (a answer, err error) {
		conn, err := dial(s.guard.folder)
		must(t, err)
		defer conn.Close()
		must(t, json.NewEncoder(conn).Encode(q))
		err = json.NewDecoder(conn).Decode(&a)
		return a, err
	}
	for text, says := range map[string]string{
		"":                                    "",
		"x\n":                                 "what git said of the push is not understood",
		line + "x\n":                          "what git said of the push is not understood",
		strings.Replace(line, head, "--x", 1): "what git said of the push is not understood",
		strings.Replace(line, head, strings.Repeat("1", 40), 1): "what it would send is not in the session's repository",
		line:        "change protected files",
		line + line: "change protected files",
		strings.Replace(line, head, s.git(s.repo, "rev-parse", "HEAD^{tree}"), 1): "",
		"(delete) " + strings.Repeat("0", 40) + " refs/heads/x " + head + "\n":    "",
	} {
		a, err := ask(question{Version: version, Pushed: []byte(text)})
		if err != nil || a.Refused != (says != "") || !strings.Contains(a.Text, says) {
			t.Errorf("%q: %+v, %v", text, a, err)
		}
	}
	if a, err := ask(question{Version: version + 1}); err != nil || !a.Refused || !strings.Contains(a.Text, errOtherProgram.Error()) {
		t.Errorf("another version: %+v, %v", a, err)
	}
	if _, err := ask("nonsense"); err == nil {
		t.Error("nonsense was answered")
	}
	var silent []net.Conn
	for range maxAtOnce - 1 {
		conn, err := dial(s.guard.folder)
		must(t, err)
		silent = append(silent, conn)
	}
	var asking sync.WaitGroup
	for range 20 {
		asking.Go(func() {
			if a, err := ask(question{Version: version, Pushed: []byte(line)}); err != nil || !a.Refused {
				t.Errorf("beside others: %+v, %v", a, err)
			}
		})
	}
	asking.Wait()
	s.guard.Take()
	// The end waits for none of them.
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.guard.stop()
		s.guard.listener.Close()
		s.guard.answering.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(listening / 2):
		t.Error("the end waits for who says nothing")
	}
	for _, conn := range silent {
		conn.Close()
	}
}

// Promise: only folders of sessions that are gone are left over, and only those
// are removed.
func TestLeftovers(t *testing.T) {
	s := newScene(t, "repo", "tmp")
	temp := filepath.Dir(s.guard.folder)
	gone := Folder(temp, "fedcba9876543210")
	must(t, os.Mkdir(gone, 0o700))
	must(t, os.WriteFile(Folder(temp, "file"), nil, 0o600))
	must(t, os.Symlink(gone, Folder(temp, "link")))
	must(t, os.Mkdir(filepath.Join(temp, "gantry-cage-other"), 0o700))
	left, err := Leftovers(temp)
	if err != nil || !slices.Equal(left, []string{gone}) {
		t.Errorf("left are %q, %v", left, err)
	}
	if left, err := Leftovers(filepath.Join(temp, "none")); err != nil || len(left) > 0 {
		t.Errorf("in no directory %q, %v", left, err)
	}
	for _, id := range []string{"", "/../x", "../x", "a/b", "x/.."} {
		if err := Remove(temp, id); id != "" && err == nil {
			t.Errorf("%q passed for a session", id)
		}
	}
	must(t, Remove(temp, "fedcba9876543210"))
	if left, err := Leftovers(temp); err != nil || len(left) > 0 {
		t.Errorf("left are %q, %v", left, err)
	}
	if !s.guard.Whole() {
		t.Error("the living one was touched")
	}
}

// Promise: a folder that was changed is not said to be whole, and is looked at
// without waiting for anybody.
func TestWhole(t *testing.T) {
	s := newScene(t, "repo", "tmp")
	for name, spoil := range map[string]func(path string) error{
		"gone":   os.Remove,
		"empty":  func(path string) error { return os.Truncate(path, 0) },
		"other":  func(path string) error { return os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700) },
		"a pipe": func(path string) error { return errors.Join(os.Remove(path), exec.Command("mkfifo", path).Run()) },
	} {
		for _, part := range []string{configName, "pre-push", Stage} {
			path := filepath.Join(s.guard.folder, part)
			saved := filepath.Join(s.work, "saved")
			must(t, os.Rename(path, saved))
			if part == Stage {
				must(t, os.WriteFile(path, nil, 0o700))
			} else {
				must(t, exec.Command("cp", saved, path).Run())
			}
			must(t, spoil(path))
			if s.guard.Whole() {
				t.Errorf("%s: %s passes for whole", part, name)
			}
			os.Remove(path)
			must(t, os.Rename(saved, path))
			if !s.guard.Whole() {
				t.Fatalf("%s is back and is not whole", part)
			}
		}
	}
}

// Promise: what git noted of pushes is told, of others' work nothing.
func TestPublished(t *testing.T) {
	s := newScene(t, "repo", "tmp")
	since := time.Now().Add(-time.Minute) // as far as git's whole seconds go
	judge := s.guard.judge
	published := func() (told []string) {
		t.Helper()
		all, err := judge.Published(context.Background(), since)
		must(t, err)
		for _, p := range all {
			for _, f := range p.Findings {
				told = append(told, p.Ref+" "+f.Path)
			}
		}
		slices.Sort(told)
		return told
	}
	wants := func(want ...string) {
		t.Helper()
		if got := published(); !slices.Equal(got, want) {
			t.Errorf("told of %q, want %q", got, want)
		}
	}
	wants()
	s.git(s.repo, "push", "-q", "origin", "main")
	wants()

	// A colleague's change is fetched, merged, and goes out again.
	colleague := filepath.Join(s.work, "colleague")
	s.git(s.work, "clone", "-q", "origin.git", colleague)
	must(t, os.WriteFile(filepath.Join(colleague, ".gitlab-ci.yml"), nil, 0o600))
	s.git(colleague, "add", ".")
	s.git(colleague, "commit", "-q", "-m", "theirs")
	s.git(colleague, "push", "-q", "origin", "main")
	s.git(s.repo, "fetch", "-q")
	s.git(s.repo, "merge", "-q", "origin/main")
	s.git(s.repo, "push", "-q", "origin", "HEAD:refs/heads/feature/one")
	wants()

	s.record(".github/workflows/ci.yml")
	s.git(s.repo, "push", "-q", "origin", "HEAD:refs/heads/feature/one")
	s.record("harmless")
	s.git(s.repo, "push", "-q", "origin", "HEAD:refs/heads/feature/one", "HEAD:refs/heads/two")
	wants("refs/remotes/origin/feature/one .github/workflows/ci.yml", "refs/remotes/origin/two .github/workflows/ci.yml")

	// That it comes back from there makes nobody else its author.
	t.Setenv("GIT_COMMITTER_DATE", fmt.Sprint(time.Now().Add(time.Minute).Unix())+" +0000") // the log has whole seconds
	s.git(s.repo, "fetch", "-q", "origin", "two:refs/remotes/other/two")
	wants("refs/remotes/origin/feature/one .github/workflows/ci.yml", "refs/remotes/origin/two .github/workflows/ci.yml")

	// Nonsense in a log, and what is none, are passed over.
	logs := filepath.Join(s.repo, ".git/logs/refs/remotes/origin")
	must(t, os.WriteFile(filepath.Join(logs, "nonsense"), []byte("\nx\n\x00 y z\n"+strings.Repeat("1 ", 9)+"\tupdate by push\n"), 0o600))
	must(t, exec.Command("mkfifo", filepath.Join(logs, "pipe")).Run())
	must(t, os.Symlink("/dev/zero", filepath.Join(logs, "link")))
	if got := published(); len(got) != 2 {
		t.Errorf("told of %q", got)
	}
	// Earlier pushes are not the session's.
	if all, err := judge.Published(context.Background(), time.Now().Add(time.Hour)); err != nil || len(all) > 0 {
		t.Errorf("told of %v, %v", all, err)
	}
}

// Promise: a push of the second in which the session began, but before it, is
// not the session's, and its own are told of whatever becomes of the logs.
func TestPublishedBefore(t *testing.T) {
	s := newScene(t, "repo", "tmp")
	since := time.Now().Add(-time.Minute) // as far as git's whole seconds go
	log := filepath.Join(s.repo, ".git/logs/refs/remotes/origin/main")
	wants := func(judge Judge, want int) {
		t.Helper()
		all, err := judge.Published(context.Background(), since)
		must(t, err)
		if len(all) != want {
			t.Errorf("told of %v, want %d", all, want)
		}
	}
	s.git(s.repo, "push", "-q", "origin", "main")
	s.record(".github/workflows/ci.yml")
	// The same over and over, so that git notes the same lines.
	t.Setenv("GIT_COMMITTER_DATE", fmt.Sprint(time.Now().Unix())+" +0000")
	forth := func() { s.git(s.repo, "push", "-q", "origin", "main") }
	back := func() { s.git(s.repo, "push", "-qf", "origin", "HEAD~1:main") }
	forth()
	back()
	wants(s.guard.judge, 1) // by time alone
	judge := s.guard.judge.Note(since)
	wants(judge, 0)
	wants(judge, 0)
	forth()
	wants(judge, 1)
	back()
	forth()
	wants(judge, 2)

	// The log is cut, and grows again.
	lines, err := os.ReadFile(log)
	must(t, err)
	must(t, os.WriteFile(log, bytes.Join(bytes.SplitAfter(lines, []byte("\n"))[3:], nil), 0o600))
	back()
	forth()
	wants(judge, 2)
	must(t, os.Truncate(log, 0))
	wants(judge, 0)
	s.record(".gitlab-ci.yml")
	forth()
	wants(judge, 1)
}

// Promise: many references at once reach the session and the repository's own
// hook whole.
func TestManyReferences(t *testing.T) {
	s := newScene(t, "repo", "tmp")
	const many = 1000
	var refs strings.Builder
	for i := range many {
		fmt.Fprintf(&refs, "create refs/tags/%0200d HEAD\n", i)
	}
	cmd := exec.Command("git", "update-ref", "--stdin")
	cmd.Dir, cmd.Stdin = s.repo, strings.NewReader(refs.String())
	must(t, cmd.Run())
	hooks := filepath.Join(s.repo, ".git/hooks")
	must(t, os.MkdirAll(hooks, 0o700))
	got := filepath.Join(s.work, "got")
	must(t, os.WriteFile(filepath.Join(hooks, "pre-push"), []byte("#!/bin/sh\nsort >'"+got+"'\n"), 0o700))
	if out, err := s.guarded(s.repo, "push", "-q", "--tags", "origin"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	data, err := os.ReadFile(got)
	must(t, err)
	if lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n"); len(lines) != many || len(strings.Fields(lines[many-1])) != 4 {
		t.Errorf("the own hook got %d lines, the last is %q", len(lines), lines[len(lines)-1])
	}
}

// Promise: of the folder only the guard's own files are removed. What somebody put
// there, or in its place, is whole afterwards, also where the session did not end.
func TestForeignFolderStays(t *testing.T) {
	foreign := func(t *testing.T, dir string) string {
		t.Helper()
		path := filepath.Join(dir, "foreign")
		must(t, os.Mkdir(path, 0o700))
		must(t, os.WriteFile(filepath.Join(path, "file"), []byte("whole"), 0o600))
		return path
	}
	whole := func(t *testing.T, path string, err error) {
		t.Helper()
		data, readErr := os.ReadFile(filepath.Join(path, "file"))
		if err == nil || string(data) != "whole" {
			t.Errorf("closed with %v, it holds %q, %v", err, data, readErr)
		}
	}
	t.Run("in its place", func(t *testing.T) {
		s := newScene(t, "repo", "tmp")
		must(t, os.Rename(s.guard.folder, s.guard.folder+".away"))
		must(t, os.Rename(foreign(t, s.work), s.guard.folder))
		whole(t, s.guard.folder, s.guard.Close())
		if entries, err := os.ReadDir(s.guard.folder + ".away"); err != nil || len(entries) > 0 {
			t.Errorf("of its own are left %v, %v", entries, err)
		}
		must(t, os.RemoveAll(s.guard.folder))
	})
	t.Run("in it", func(t *testing.T) {
		s := newScene(t, "repo", "tmp")
		inner := filepath.Join(s.guard.folder, "pre-push")
		must(t, os.Remove(inner))
		must(t, os.Rename(foreign(t, s.work), inner))
		whole(t, inner, s.guard.Close())
		must(t, os.RemoveAll(s.guard.folder))
	})
	t.Run("after a kill", func(t *testing.T) {
		temp := t.TempDir()
		folder := Folder(temp, "fedcba9876543210")
		must(t, os.Rename(foreign(t, temp), folder))
		whole(t, folder, Remove(temp, "fedcba9876543210"))
	})
}

// Promise: a guard that cannot be opened leaves nothing.
func TestNothingIsLeftWithoutDescriptors(t *testing.T) {
	s := newScene(t, "repo", "tmp")
	temp := t.TempDir()
	o := Options{Temp: temp, Session: session, Judge: s.guard.judge, Program: s.guard.program}
	restored := limittest.NoFiles(t)
	_, err := Open(o)
	restored()
	if !errors.Is(err, syscall.EMFILE) {
		t.Errorf("it opens: %v", err)
	}
	if entries, err := os.ReadDir(temp); err != nil || len(entries) > 0 {
		t.Errorf("left are %v, %v", entries, err)
	}
}
