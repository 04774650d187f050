package snapshot

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"cage/internal/safefile"
	"cage/rules"
)

// What goes while the baseline is taken is no part of it, whatever it was.
func TestGoneBeforeItIsRead(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	for _, name := range []string{"file", "link", "in a file's directory", "in a link's directory"} {
		must(os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	secret := func(in string) string { return filepath.Join(dir, in, ".env") }
	must(os.WriteFile(secret("file"), nil, 0o600))
	must(os.Symlink("nowhere", secret("link")))
	must(os.WriteFile(secret("in a file's directory"), nil, 0o600))
	must(os.Symlink("nowhere", secret("in a link's directory")))
	layout := rules.Layout{Root: dir}
	plan, err := rules.New(rules.Inputs{Layout: layout})
	must(err)
	trees, err := OpenTrees(layout)
	must(err)
	defer trees.Close()
	b := &baseline{
		ctx: t.Context(), trees: trees, plan: plan, store: NewStore(), deadline: time.Now().Add(settleFor),
		limits:   Limits{FileBytes: 1 << 20, Files: 100, TotalBytes: 1 << 20},
		manifest: NewManifest(make(map[rules.Path]safefile.Info)), parents: parents{trees: trees},
	}
	defer b.parents.leave()
	set, err := b.measure(Look(trees, plan, nil, nil).Found)
	must(err)
	if len(set) != 4 {
		t.Fatalf("%d paths are protected", len(set))
	}
	must(os.Remove(secret("file")))
	must(os.Remove(secret("link")))
	must(os.RemoveAll(filepath.Dir(secret("in a file's directory"))))
	must(os.RemoveAll(filepath.Dir(secret("in a link's directory"))))
	for _, m := range set {
		if err := b.capture(m); err != nil {
			t.Errorf("%s: %v", m.path.Rel, err)
		}
	}
	if n := b.manifest.Len(); n != 0 {
		t.Errorf("%d paths that are gone are in the baseline", n)
	}
}

// Promise: an entry that no look tells anything of hides none of the others, and
// is itself what the walk did not see, unless nothing is looked for there.
func TestEntryThatCannotBeLookedAt(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	layout := rules.Layout{Root: dir}
	plan, err := rules.New(rules.Inputs{Layout: layout})
	if err != nil {
		t.Fatal(err)
	}
	plan = plan.Sparing([]rules.Path{{Rel: "spared"}})
	trees, err := OpenTrees(layout)
	if err != nil {
		t.Fatal(err)
	}
	defer trees.Close()
	var found, unseen []string
	w := walker{trees: trees, plan: plan, Visitor: Visitor{
		Found:  func(p rules.Path, _ safefile.Kind, _ rules.Verdict) { found = append(found, p.Rel) },
		Unseen: func(p rules.Path, _ error) { unseen = append(unseen, p.Rel) },
	}}
	w.meet(rules.Path{}, nil, 0, []safefile.DirEntry{
		{Name: "share", Err: syscall.EIO}, {Name: "spared", Err: syscall.ESTALE}, {Name: ".env.old", Err: syscall.EIO},
		{Name: "mounted"}, {Name: ".env", Kind: safefile.Regular}, {Name: ".github", Err: syscall.ETIMEDOUT},
	})
	if want := []string{".env.old", ".env"}; !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
	if want := []string{"share", ".github"}; !slices.Equal(unseen, want) {
		t.Errorf("not seen %q, want %q", unseen, want)
	}
}
