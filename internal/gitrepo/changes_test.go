package gitrepo

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestReadChanges(t *testing.T) {
	one, two, none := strings.Repeat("1", 40), strings.Repeat("2", 40), strings.Repeat("0", 40)
	good := ":100644 100755 " + one + " " + two + " M\x00a\nb\xff\x00" +
		":000000 120000 " + none + " " + two + " A\x00:c\x00" +
		":100644 000000 " + one + " " + none + " U\x00d\x00"
	want := []Change{
		{Path: "a\nb\xff", Before: Record{ModeFile, one}, After: Record{ModeExecutable, two}},
		{Path: ":c", After: Record{ModeLink, two}},
		{Path: "d", Before: Record{ModeFile, one}, Unmerged: true},
	}
	got, err := readChanges([]byte(good))
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v (%v)", got, err)
	}
	if got, err := readChanges(nil); err != nil || len(got) != 0 {
		t.Errorf("nothing is %v (%v)", got, err)
	}
	for _, bad := range []string{
		"x", ":", ":\x00", ":100644 100644 " + one + " " + two + " M\x00", ":100644 100644 " + one + " " + two + " M\x00\x00",
		":100644 100644 " + one + " " + two + "\x00a\x00", ":10x644 100644 " + one + " " + two + " M\x00a\x00",
		":100644 100y44 " + one + " " + two + " M\x00a\x00", good + "x", one + "\x00" + good,
	} {
		if got, err := readChanges([]byte(bad)); err == nil {
			t.Errorf("%q is %v", bad, got)
		}
	}
}

// TestCommitsAndChanges asks about a history with a merge.
func TestCommitsAndChanges(t *testing.T) {
	alone(t)
	ctx := context.Background()
	dir := initRepo(t, physicalTemp(t)+"/r")
	repo := discover(t, dir)
	if changes, err := repo.StagedChanges(ctx); err != nil || len(changes) != 0 {
		t.Errorf("an empty repository has %v (%v)", changes, err)
	}
	if links, err := repo.Links(ctx, "HEAD"); err != nil || len(links) != 0 {
		t.Errorf("an empty repository has the links %v (%v)", links, err)
	}
	write(t, dir+"/a", "1\n")
	link(t, "a", dir+"/l")
	git(t, dir, "add", ".")
	staged, err := repo.StagedChanges(ctx)
	if err != nil || len(staged) != 2 || staged[0].Before != (Record{}) || staged[0].After.Mode != ModeFile {
		t.Errorf("staged is %+v (%v)", staged, err)
	}
	first := commit(t, dir)
	git(t, dir, "switch", "-q", "-c", "side")
	write(t, dir+"/b", "b\n")
	side := commit(t, dir)
	git(t, dir, "switch", "-q", "main")
	write(t, dir+"/a", "2\n")
	second := commit(t, dir)
	git(t, dir, "merge", "-q", "--no-edit", "side")
	merge := git(t, dir, "rev-parse", "HEAD")

	commits, err := repo.Commits(ctx, []string{merge}, []string{first})
	if err != nil || len(commits) != 3 || commits[0].ID != merge || !slices.Equal(commits[0].Parents, []string{second, side}) {
		t.Fatalf("commits are %v (%v)", commits, err)
	}
	steps := []Step{{merge, second}, {merge, side}, {first, ""}, {second, first}, {second, second}}
	changes, err := repo.StepChanges(ctx, steps)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, list := range changes {
		var names []string
		for _, change := range list {
			names = append(names, change.Path)
		}
		paths = append(paths, strings.Join(names, " "))
	}
	if want := []string{"b", "a", "a l", "a", ""}; !slices.Equal(paths, want) {
		t.Errorf("the steps change %q, want %q", paths, want)
	}
	ids, err := repo.CommitIDs(ctx, []string{"main", "side", "nowhere", "--all", "a b", first[:12], "HEAD:a", ""})
	if want := []string{merge, side, "", "", "", first, "", ""}; err != nil || !slices.Equal(ids, want) {
		t.Errorf("the ids are %q (%v), want %q", ids, err, want)
	}
	if _, err := repo.CommitIDs(ctx, []string{"main\nside"}); !errors.Is(err, ErrRevision) {
		t.Errorf("two revisions in one: %v", err)
	}
	if bases, err := repo.MergeBases(ctx, second, side); err != nil || !slices.Equal(bases, []string{first}) {
		t.Errorf("the merge bases are %v (%v)", bases, err)
	}
	if kept, err := repo.Independent(ctx, []string{first, second, side}); err != nil || !slices.Equal(kept, []string{second, side}) {
		t.Errorf("independent are %v (%v)", kept, err)
	}
	if links, err := repo.Links(ctx, merge); err != nil || len(links) != 1 || links[0] != (Link{"l", BlobID(repo.ObjectFormat, []byte("a"))}) {
		t.Errorf("the links are %v (%v)", links, err)
	}
	if listed, err := repo.Paths(ctx, first); err != nil || !slices.Equal(listed, []string{"a", "l"}) {
		t.Errorf("the paths are %q (%v)", listed, err)
	}
	at, err := repo.At(ctx, "HEAD", []string{"a", "b", "nowhere"})
	if names := slices.Sorted(maps.Keys(at)); err != nil || !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("at HEAD is %v (%v)", at, err)
	}
}

// Promise: a HEAD that is broken is no branch without a commit, against which
// everything would be new and no rule old.
func TestBrokenHead(t *testing.T) {
	alone(t)
	ctx := context.Background()
	dir := initRepo(t, physicalTemp(t)+"/r")
	repo := discover(t, dir)
	asked := func() []error {
		_, staged := repo.StagedChanges(ctx)
		_, at := repo.At(ctx, "HEAD", []string{"a"})
		_, links := repo.Links(ctx, "HEAD")
		return []error{staged, at, links}
	}
	if errs := asked(); errors.Join(errs...) != nil {
		t.Errorf("a branch without a commit: %v", errs)
	}
	write(t, dir+"/a", "1\n")
	commit(t, dir)
	for name, content := range map[string]string{
		"a commit that is gone": strings.Repeat("1", 40) + "\n", "nothing": "", "nonsense": "x\n",
	} {
		write(t, dir+"/.git/refs/heads/main", content)
		if errs := asked(); slices.Contains(errs, nil) {
			t.Errorf("%s passes: %v", name, errs)
		}
	}
	write(t, dir+"/.git/refs/heads/main", git(t, dir, "write-tree")+"\n")
	if _, err := repo.StagedChanges(ctx); err == nil {
		t.Error("a tree passes for a commit")
	}
}

func TestBlobs(t *testing.T) {
	alone(t)
	ctx := context.Background()
	dir := initRepo(t, physicalTemp(t)+"/r")
	repo := discover(t, dir)
	hash := func(content string) string { return gitInput(t, dir, content, "hash-object", "-w", "--stdin") }
	empty, lines, large := hash(""), hash("a\n\nb"), hash(strings.Repeat("x", 101))
	got, err := repo.Blobs(ctx, []string{lines, large, empty}, 100)
	if err != nil || string(got[lines]) != "a\n\nb" || string(got[empty]) != "" || len(got[large]) != 101 || got[large][0] != 0 {
		t.Errorf("got %q (%v)", got, err)
	}
	if got, err := repo.Blobs(ctx, nil, 100); err != nil || len(got) != 0 {
		t.Errorf("nothing is %q (%v)", got, err)
	}
	if _, err := repo.Blobs(ctx, []string{lines, strings.Repeat("1", 40)}, 100); !errors.Is(err, ErrMissing) {
		t.Errorf("a missing blob: %v", err)
	}
	tree := git(t, dir, "write-tree")
	if _, err := repo.Blobs(ctx, []string{tree}, 100); err == nil || errors.Is(err, ErrMissing) {
		t.Errorf("a tree for a blob: %v", err)
	}
}
