package restore

import (
	"os"
	"path/filepath"
	"testing"

	"cage/rules"
	"cage/snapshot"
)

// Promise: what could not be removed is forgotten when the directory that held it
// has gone, also where that was not held open.
func TestLitterGoesWithItsDirectory(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(root, "dir/own"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "dir/own/entry"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	trees, err := snapshot.OpenTrees(rules.Layout{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	defer trees.Close()
	r := New(trees, nil, nil, nil, nil, 0)
	at := rules.Path{Rel: "dir"}
	r.own[at.Join("own")] = r.own[at] // its zero: it stands
	r.litter = []litter{{at: at, name: "own", directory: true}}
	if r.Tidy(); len(r.litter) != 1 {
		t.Fatal("litter that is there was forgotten")
	}
	if err := os.RemoveAll(filepath.Join(root, "dir")); err != nil {
		t.Fatal(err)
	}
	if r.Tidy(); len(r.litter) > 0 || r.own[at.Join("own")].IsZero() {
		t.Errorf("remembered are %+v", r.litter)
	}
}
