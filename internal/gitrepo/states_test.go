package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cage/internal/program"
)

// oddNames are names that a careless call of git takes for something else.
func oddNames() []string {
	return []string{"plain", "-x", "--", "*", "[a]", "a?c", ":(glob)**", ":!x", ":", "new\nline", "\ttab", " space ",
		"\"quoted\"", "back\\slash", "\xff\xfe", "HEAD", "HEAD:x", "x^{tree}", "@{u}", "deep/er/-n", "~", "é"}
}

func TestBlobIDIsGits(t *testing.T) {
	alone(t)
	for _, format := range []string{SHA1, SHA256} {
		r := initRepo(t, physicalTemp(t), "--object-format="+format)
		for _, content := range []string{"", "x", "a\r\nb\x00\n", strings.Repeat("y", 1<<17)} {
			want := gitInput(t, r, content, "hash-object", "--stdin", "--no-filters")
			if got := BlobID(format, []byte(content)); got != want {
				t.Errorf("%s of %d bytes: %s, want %s", format, len(content), got, want)
			}
		}
	}
}

func TestCommittedBlob(t *testing.T) {
	alone(t)
	for _, format := range []string{SHA1, SHA256} {
		t.Run(format, func(t *testing.T) {
			r := initRepo(t, physicalTemp(t), "--object-format="+format)
			repo := discover(t, mkdir(t, r+"/sub"))
			ask := func(path, want string) {
				t.Helper()
				got, ok, err := repo.CommittedBlob(context.Background(), path)
				if err != nil || got != want || ok != (want != "") {
					t.Errorf("%q: %q, %v, %v; want %q", path, got, ok, err, want)
				}
			}
			ask(".cage.yaml", "")
			write(t, r+"/.cage.yaml", "staged")
			git(t, r, "add", ".")
			ask(".cage.yaml", "")
			for _, name := range oddNames() {
				write(t, filepath.Join(r, name), "content of "+name)
			}
			link(t, "plain", r+"/link")
			commit(t, r)
			write(t, r+"/.cage.yaml", "changed")
			ask(".cage.yaml", BlobID(format, []byte("staged")))
			for _, name := range oddNames() {
				ask(name, BlobID(format, []byte("content of "+name)))
			}
			for _, name := range []string{"link", "deep", "missing", "plain/x", "", "/plain", "../plain", "./plain", "deep//er/-n", "a\x00b"} {
				ask(name, "")
			}
		})
	}
}

func TestCommittedBlobTellsFailureFromAbsence(t *testing.T) {
	alone(t)
	r := initRepo(t, physicalTemp(t))
	write(t, r+"/a", "a")
	commit(t, r)
	repo := discover(t, r)
	id := git(t, r, "rev-parse", "HEAD^{tree}")
	if err := os.Remove(r + "/.git/objects/" + id[:2] + "/" + id[2:]); err != nil {
		t.Fatal(err)
	}
	var refused *Error
	if _, ok, err := repo.CommittedBlob(context.Background(), "a"); ok || !errors.As(err, &refused) {
		t.Errorf("a tree that is gone: %v, %v", ok, err)
	}
}

// file is a State of an ordinary file.
func file(repo *Repo, path, content string) State {
	return State{Path: path, Blob: BlobID(repo.ObjectFormat, []byte(content)), Mode: ModeFile}
}

// expect compares what a question says about states with what it should.
func expect(t *testing.T, question func([]State) ([]bool, error), want map[State]bool) {
	t.Helper()
	var states []State
	for state := range want {
		states = append(states, state)
	}
	got, err := question(states)
	if err != nil {
		t.Fatal(err)
	}
	for i, state := range states {
		if got[i] != want[state] {
			t.Errorf("%q %s %o: %v", state.Path, state.Blob, state.Mode, got[i])
		}
	}
}

func TestHeld(t *testing.T) {
	alone(t)
	for _, format := range []string{SHA1, SHA256} {
		t.Run(format, func(t *testing.T) {
			r := initRepo(t, physicalTemp(t), "--object-format="+format)
			repo := discover(t, mkdir(t, r+"/sub"))
			held := func(states []State) ([]bool, error) { return repo.Held(context.Background(), states) }
			expect(t, held, map[State]bool{{Path: "a"}: true, file(repo, "a", "a"): false})

			want := map[State]bool{}
			for _, name := range oddNames() {
				write(t, filepath.Join(r, name), "content of "+name)
				want[file(repo, name, "content of "+name)] = true
				want[file(repo, name, "other")] = false
				want[State{Path: name}] = false
			}
			write(t, r+"/run", "run")
			if err := os.Chmod(r+"/run", 0o755); err != nil {
				t.Fatal(err)
			}
			link(t, "plain", r+"/link")
			commit(t, r)
			run, target := file(repo, "run", "run"), file(repo, "link", "plain")
			want[run], want[target] = false, false
			run.Mode, target.Mode = ModeExecutable, ModeLink
			want[run], want[target] = true, true
			run.Mode = 0
			want[run] = true
			want[State{Path: "missing"}] = true
			want[State{Path: "plain/below"}] = true
			for _, path := range []string{"", "/plain", "../plain", "deep/../plain", "a\x00b"} {
				want[State{Path: path}] = false
			}
			want[State{Path: "plain", Blob: "\n"}] = false
			expect(t, held, want)

			// The index counts beside HEAD, for presence and for absence.
			write(t, r+"/plain", "staged")
			git(t, r, "add", "plain")
			git(t, r, "rm", "-q", "--cached", "HEAD")
			write(t, r+"/plain", "in the work tree only")
			expect(t, held, map[State]bool{
				file(repo, "plain", "staged"): true, file(repo, "plain", "content of plain"): true,
				file(repo, "plain", "in the work tree only"): false, {Path: "plain"}: false,
				{Path: "HEAD"}: true, file(repo, "HEAD", "content of HEAD"): true,
			})
			// A checkout brings only what the index has.
			indexed := func(states []State) ([]bool, error) { return repo.Indexed(context.Background(), states) }
			expect(t, indexed, map[State]bool{
				file(repo, "plain", "staged"): true, file(repo, "plain", "content of plain"): false, {Path: "plain"}: false,
				{Path: "HEAD"}: true, file(repo, "HEAD", "content of HEAD"): false, {Path: "missing"}: true,
				{Path: "../plain"}: false, run: true, target: true,
			})
		})
	}
}

func TestHeldInAConflict(t *testing.T) {
	alone(t)
	r := initRepo(t, physicalTemp(t))
	write(t, r+"/a", "base\n")
	commit(t, r)
	git(t, r, "checkout", "-q", "-b", "theirs")
	write(t, r+"/a", "theirs\n")
	commit(t, r)
	git(t, r, "checkout", "-q", "main")
	write(t, r+"/a", "ours\n")
	commit(t, r)
	repo := discover(t, r)
	cherryPick(t, r, "theirs")
	index, err := os.ReadFile(r + "/.git/index")
	if err != nil {
		t.Fatal(err)
	}
	expect(t, func(states []State) ([]bool, error) { return repo.Held(context.Background(), states) }, map[State]bool{
		file(repo, "a", "base\n"): true, file(repo, "a", "ours\n"): true, file(repo, "a", "theirs\n"): true,
		file(repo, "a", "none\n"): false, {Path: "a"}: false,
	})
	expect(t, func(states []State) ([]bool, error) { return repo.Indexed(context.Background(), states) }, map[State]bool{
		file(repo, "a", "base\n"): false, file(repo, "a", "ours\n"): false, file(repo, "a", "theirs\n"): false, {Path: "a"}: false,
	})
	after, err := os.ReadFile(r + "/.git/index")
	if err != nil || !bytes.Equal(index, after) {
		t.Errorf("the index was written (%v)", err)
	}
}

// cherryPick picks a commit that does not apply.
func cherryPick(t *testing.T, dir, name string) {
	t.Helper()
	result, err := program.Exec(context.Background(), program.Call{Path: realGit(t), Dir: dir, Env: append(os.Environ(),
		"GIT_COMMITTER_NAME=T", "GIT_COMMITTER_EMAIL=t@example.org"), Args: []string{"cherry-pick", name}})
	if err != nil || result.ExitCode != 1 {
		t.Fatalf("%+v, %v: no conflict", result, err)
	}
}

func TestStartRefs(t *testing.T) {
	alone(t)
	r := initRepo(t, physicalTemp(t))
	repo := discover(t, r)
	refs := func() string {
		t.Helper()
		refs, err := repo.StartRefs(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		found, err := Discover(context.Background(), program.Exec, realGit(t), r)
		if err != nil {
			t.Fatal(err)
		}
		if !found.said.refsTold || !slices.Equal(found.said.refs, refs) {
			t.Errorf("the call that found the repository told of %q, want %q", found.said.refs, refs)
		}
		return strings.Join(refs, " ")
	}
	if got := refs(); got != "" {
		t.Errorf("%q without any commit", got)
	}
	first := commit(t, r)
	git(t, r, "branch", "same")
	if got := refs(); got != first {
		t.Errorf("%q, want %s once", got, first)
	}
	git(t, r, "tag", "-m", "x", "annotated")
	git(t, r, "checkout", "-q", "--detach")
	detached := commit(t, r)
	for _, id := range []string{first, detached, git(t, r, "rev-parse", "annotated")} {
		if !strings.Contains(refs(), id) {
			t.Errorf("%q lacks %s", refs(), id)
		}
	}
	git(t, r, "checkout", "-q", "--orphan", "new")
	if strings.Contains(refs(), detached) {
		t.Errorf("%q holds the HEAD of before", refs())
	}
	// A reference to an object that is gone must not fail the start.
	write(t, r+"/.git/refs/heads/dangling", strings.Repeat("1", 40)+"\n")
	if !strings.Contains(refs(), first) {
		t.Errorf("%q lacks %s", refs(), first)
	}
}

func TestScopesCoverEveryPath(t *testing.T) {
	flat := make([]string, maxScopes+1)
	for i := range flat {
		flat[i] = strconv.Itoa(i)
	}
	var deep []string
	for i := range 3000 {
		deep = append(deep, fmt.Sprintf("top/%d/%d/%d", i%7, i%100, i))
	}
	long := append([]string{"x", strings.Repeat("d/", 1500) + "e"}, deep...)
	for name, c := range map[string]struct {
		paths []string
		few   int
	}{
		"none": {nil, 0}, "few stay": {flat[:maxScopes], maxScopes}, "too many at the top": {flat, 0},
		"deep": {deep, 7}, "very deep": {long, 9},
	} {
		got := scopes(c.paths)
		if len(got) != c.few {
			t.Errorf("%s: %d scopes, want %d", name, len(got), c.few)
		}
		for _, path := range c.paths {
			if len(got) > 0 && !slices.ContainsFunc(got, func(scope string) bool { return strings.HasPrefix(path+"/", scope+"/") }) {
				t.Errorf("%s: %q is not covered", name, path)
			}
		}
	}
}

func TestListingsThatAreNotUnderstood(t *testing.T) {
	for _, listing := range []string{"x", "100644 id 0 a\x00", "100644 id\ta\x00", "9 id 0\ta\x00"} {
		if err := recordsAt([]string{"a"}).read([]byte(listing), 1); !errors.Is(err, errListing) {
			t.Errorf("%q: %v", listing, err)
		}
	}
	for _, listing := range []string{"x", "100644 100644 a b M\x00a\x00", ":100644 100644 a b M\x00", ":x y a b M\x00a\x00", "::1 1 a b MM\x00a\x00"} {
		if err := (changes{recordsAt([]string{"a"})}).read(listing); !errors.Is(err, errListing) {
			t.Errorf("%q: %v", listing, err)
		}
	}
}
