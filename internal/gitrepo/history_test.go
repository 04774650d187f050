package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cage/internal/program"
)

// startRefs is StartRefs that must work.
func startRefs(t *testing.T, repo *Repo) Refs {
	t.Helper()
	refs, err := repo.StartRefs(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return refs
}

// reached binds Reached to references.
func reached(repo *Repo, refs Refs) func([]State) ([]bool, error) {
	return func(states []State) ([]bool, error) { return repo.Reached(context.Background(), refs, states) }
}

func TestReached(t *testing.T) {
	alone(t)
	for _, format := range []string{SHA1, SHA256} {
		t.Run(format, func(t *testing.T) {
			r := initRepo(t, physicalTemp(t), "--object-format="+format)
			repo := discover(t, mkdir(t, r+"/sub"))
			want := map[State]bool{}
			expect(t, reached(repo, startRefs(t, repo)), map[State]bool{{Path: "a"}: false, file(repo, "a", "a"): false})

			// In the root, and never touched again.
			for _, name := range oddNames() {
				write(t, filepath.Join(r, name), "first "+name)
				want[file(repo, name, "first "+name)] = true
			}
			write(t, r+"/ci", "1")
			commit(t, r)
			for _, content := range []string{"2", "3"} {
				write(t, r+"/ci", content)
				commit(t, r)
			}
			// Deleted, brought back executable, renamed with the same bytes.
			if err := os.Remove(r + "/plain"); err != nil {
				t.Fatal(err)
			}
			commit(t, r)
			write(t, r+"/plain", "again")
			if err := os.Chmod(r+"/plain", 0o755); err != nil {
				t.Fatal(err)
			}
			git(t, r, "mv", "ci", "ci2")
			commit(t, r)
			// On a branch that is merged nowhere, and on one that lives in a tag only.
			git(t, r, "checkout", "-q", "-b", "side", "HEAD~2")
			write(t, r+"/ci", "side")
			commit(t, r)
			git(t, r, "checkout", "-q", "--detach", "main")
			write(t, r+"/ci2", "tagged")
			commit(t, r)
			git(t, r, "tag", "-m", "x", "t")
			git(t, r, "checkout", "-q", "main")
			// Objects that exist, but stood elsewhere or nowhere.
			gitInput(t, r, "loose", "hash-object", "-w", "--stdin")
			refs := startRefs(t, repo)
			write(t, r+"/ci2", "later")
			write(t, r+"/new", "new")
			commit(t, r)

			for _, content := range []string{"1", "2", "3", "side"} {
				want[file(repo, "ci", content)] = true
			}
			for _, content := range []string{"3", "tagged"} {
				want[file(repo, "ci2", content)] = true
			}
			executable := file(repo, "plain", "again")
			want[executable] = false
			executable.Mode = ModeExecutable
			want[executable] = true
			executable.Mode = 0
			want[executable] = true
			want[State{Path: "plain"}] = true // deleted for a while
			want[State{Path: "ci"}] = true    // renamed away
			want[State{Path: "ci2"}] = true   // not in the root
			want[State{Path: "new"}] = true   // in no commit of the start
			want[State{Path: "-x"}] = false   // in every commit
			want[State{Path: "deep/er/-n"}] = false
			want[file(repo, "ci2", "1")] = false
			want[file(repo, "ci", "loose")] = false
			want[file(repo, "ci", "no object at all")] = false
			want[file(repo, "ci2", "later")] = false
			want[file(repo, "new", "new")] = false
			want[State{Path: "ci", Blob: git(t, r, "rev-parse", "HEAD")}] = false
			want[State{Path: "deep", Blob: git(t, r, "rev-parse", "HEAD:deep")}] = false
			for _, path := range []string{"", "/ci", "../ci", "./ci", "a\x00b"} {
				want[State{Path: path}] = false
			}
			for _, blob := range []string{"x", "HEAD:ci", "\n", "--help", strings.Repeat("A", len(BlobID(format, nil)))} {
				want[State{Path: "ci", Blob: blob}] = false
			}
			expect(t, reached(repo, refs), want)
			// Where history is packed and indexed for speed it says the same.
			git(t, r, "-c", "gc.writeCommitGraph=true", "gc", "-q")
			git(t, r, "commit-graph", "write", "--reachable", "--changed-paths")
			git(t, r, "pack-refs", "--all")
			expect(t, reached(repo, refs), want)
		})
	}
}

func TestReachedThroughMerges(t *testing.T) {
	alone(t)
	r := initRepo(t, physicalTemp(t))
	repo := discover(t, r)
	write(t, r+"/a", "base")
	write(t, r+"/always", "x")
	write(t, r+"/gone", "x")
	commit(t, r)
	git(t, r, "checkout", "-q", "-b", "b1")
	write(t, r+"/a", "b1")
	commit(t, r)
	git(t, r, "checkout", "-q", "-b", "b2", "main")
	write(t, r+"/a", "b2")
	commit(t, r)
	// A merge that takes one side, so that the other side's state stands only
	// behind the parent that simplification would leave out.
	git(t, r, "merge", "-q", "-s", "ours", "-m", "m", "b1")
	// A merge with content of its own, and with a deletion of its own.
	git(t, r, "checkout", "-q", "-b", "b3", "main")
	write(t, r+"/other", "b3")
	commit(t, r)
	git(t, r, "merge", "-q", "--no-commit", "-s", "ours", "b2")
	write(t, r+"/a", "evil")
	git(t, r, "rm", "-q", "-f", "gone")
	commit(t, r)
	git(t, r, "checkout", "-q", "main")
	git(t, r, "reset", "-q", "--hard", "b3")
	git(t, r, "branch", "-q", "-D", "b1", "b2", "b3")
	refs := startRefs(t, repo)
	if len(refs) != 1 {
		t.Fatalf("%d references", len(refs))
	}
	expect(t, reached(repo, refs), map[State]bool{
		file(repo, "a", "base"): true, file(repo, "a", "b1"): true, file(repo, "a", "b2"): true, file(repo, "a", "evil"): true,
		file(repo, "a", "b3"): false, {Path: "a"}: false, {Path: "always"}: false, {Path: "gone"}: true, {Path: "other"}: true,
	})
}

func TestReachedWithSeveralRoots(t *testing.T) {
	alone(t)
	r := initRepo(t, physicalTemp(t))
	repo := discover(t, r)
	write(t, r+"/a", "a")
	commit(t, r)
	git(t, r, "checkout", "-q", "--orphan", "other")
	git(t, r, "rm", "-q", "-r", "-f", ".")
	write(t, r+"/b", "b")
	commit(t, r)
	git(t, r, "checkout", "-q", "main")
	expect(t, reached(repo, startRefs(t, repo)), map[State]bool{
		{Path: "a"}: true, {Path: "b"}: true, file(repo, "a", "a"): true, file(repo, "b", "b"): true, file(repo, "a", "b"): false,
	})
}

func TestReachedInAShallowClone(t *testing.T) {
	alone(t)
	base := physicalTemp(t)
	r := initRepo(t, base+"/r")
	for _, content := range []string{"1", "2", "3"} {
		write(t, r+"/a", content)
		commit(t, r)
	}
	git(t, base, "clone", "-q", "--depth=2", "file://"+r, "shallow")
	repo := discover(t, base+"/shallow")
	expect(t, reached(repo, startRefs(t, repo)), map[State]bool{
		file(repo, "a", "3"): true, file(repo, "a", "2"): true, file(repo, "a", "1"): false, {Path: "a"}: false, {Path: "b"}: true,
	})
}

// TestReachedBelievesNoOtherPast checks that neither a replacement nor a graft
// gives the commits of the start a state that they never had.
func TestReachedBelievesNoOtherPast(t *testing.T) {
	alone(t)
	r := initRepo(t, physicalTemp(t))
	repo := discover(t, r)
	write(t, r+"/a", "good")
	start := commit(t, r)
	refs := startRefs(t, repo)
	write(t, r+"/a", "evil")
	evil := commit(t, r)
	git(t, r, "reset", "-q", "--soft", start)
	want := map[State]bool{file(repo, "a", "good"): true, file(repo, "a", "evil"): false, {Path: "a"}: false}

	git(t, r, "replace", start, evil)
	expect(t, reached(repo, refs), want)
	git(t, r, "replace", "-d", start)
	git(t, r, "replace", git(t, r, "rev-parse", start+"^{tree}"), git(t, r, "rev-parse", evil+"^{tree}"))
	expect(t, reached(repo, refs), want)
	git(t, r, "replace", "-d", git(t, r, "rev-parse", start+"^{tree}"))

	orphan := git(t, r, "commit-tree", "-m", "x", evil+"^{tree}")
	write(t, r+"/.git/info/grafts", start+" "+orphan+"\n")
	if out := git(t, r, "rev-list", start); !strings.Contains(out, orphan) {
		t.Fatal("the graft has no effect on git itself")
	}
	expect(t, reached(repo, refs), want)
}

func TestReachedPassesOverReferencesThatAreGone(t *testing.T) {
	alone(t)
	r := initRepo(t, physicalTemp(t))
	repo := discover(t, r)
	write(t, r+"/a", "a")
	commit(t, r)
	write(t, r+"/a", "b")
	commit(t, r)
	gitInput(t, r, "a blob", "tag", "blob", git(t, r, "rev-parse", "HEAD:a"))
	refs := append(startRefs(t, repo), strings.Repeat("1", 40))
	expect(t, reached(repo, refs), map[State]bool{file(repo, "a", "a"): true, file(repo, "a", "c"): false})
}

func TestReachedWithManyReferencesAndPaths(t *testing.T) {
	alone(t)
	r := initRepo(t, physicalTemp(t))
	repo := discover(t, r)
	const files, branches = 1500, 500
	var stream bytes.Buffer
	fmt.Fprintf(&stream, "commit refs/heads/main\ncommitter T <t@example.org> 1 +0000\ndata 1\nx\n")
	name := func(i int) string { return fmt.Sprintf("%s/%04d", strings.Repeat("n", 60), i) }
	for i := range files {
		fmt.Fprintf(&stream, "M 100644 inline %s\ndata 1\n1\n", name(i))
	}
	for i := range branches {
		fmt.Fprintf(&stream, "commit refs/heads/b%d\ncommitter T <t@example.org> %d +0000\ndata 1\nx\n", i, i+2)
		fmt.Fprintf(&stream, "from refs/heads/main\nM 100644 inline %s\ndata 4\n%04d\n", name(i%files), i)
	}
	gitInput(t, r, stream.String(), "fast-import", "--quiet")
	refs := startRefs(t, repo)
	if len(refs) != branches+1 {
		t.Fatalf("%d references", len(refs))
	}
	want := map[State]bool{}
	for i := range branches {
		want[file(repo, name(i), fmt.Sprintf("%04d", i))] = true
		want[file(repo, name(i), fmt.Sprintf("%04d", i+1))] = false
		want[State{Path: name(i)}] = false
	}
	expect(t, reached(repo, refs), want)
	expect(t, func(states []State) ([]bool, error) { return repo.Held(context.Background(), states) },
		map[State]bool{file(repo, name(0), "1"): true, file(repo, name(files-1), "1"): true, file(repo, name(1), "0001"): false})
}

func TestReachedEndsWithTheContext(t *testing.T) {
	alone(t)
	r := initRepo(t, physicalTemp(t))
	write(t, r+"/a", "a")
	commit(t, r)
	git(t, r, "checkout", "-q", "-b", "b")
	write(t, r+"/a", "b")
	commit(t, r)
	git(t, r, "rm", "-q", "a")
	commit(t, r)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := func(ctx context.Context, c program.Call) (program.Result, error) {
		if strings.Contains(strings.Join(c.Args, " "), "rev-list") {
			cancel()
		}
		return program.Exec(ctx, c)
	}
	found, err := Discover(context.Background(), stop, realGit(t), r)
	if err != nil {
		t.Fatal(err)
	}
	repo := found.Repo
	refs := startRefs(t, repo)
	states := []State{{Path: "a"}, file(repo, "a", "a")}
	got, err := repo.Reached(ctx, refs, states)
	if !errors.Is(err, context.Canceled) || len(got) != 2 || !got[0] || got[1] {
		t.Errorf("%v, %v; want what was proved before the end", got, err)
	}
}
