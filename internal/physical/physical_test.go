package physical

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Promise: a path is resolved as the system would, whatever it leads through.
func TestPath(t *testing.T) {
	base := physicalTemp(t)
	mkdir(t, base+"/a/b")
	link(t, "a/b", base+"/l")
	link(t, base+"/l/../c", base+"/m")
	link(t, "n", base+"/n")
	for path, want := range map[string]string{
		"/":                        "/",
		"//../..":                  "/",
		base + "/l":                base + "/a/b",
		base + "/l/..":             base + "/a",
		base + "/m":                base + "/a/c",
		base + "/m/x//y/./z/":      base + "/a/c/x/y/z",
		base + "/missing/../l/q":   base + "/a/b/q",
		base + "/a/b/\n\xff/" + "": base + "/a/b/\n\xff",
	} {
		if got, err := Path(path); got != want || err != nil {
			t.Errorf("%q: %q, %v; want %q", path, got, err, want)
		}
	}
	if _, links, _ := Way(base + "/m"); len(links) != 2 || links[0] != base+"/m" || links[1] != base+"/l" {
		t.Errorf("links %q", links)
	}
	if _, err := Path(base + "/n"); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a loop: %v", err)
	}
	if _, err := Path("a"); err == nil {
		t.Error("a relative path is accepted")
	}
}

// physicalTemp returns a temporary directory by its physical name.
func physicalTemp(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func mkdir(t *testing.T, path string) string {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}
