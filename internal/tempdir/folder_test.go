//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package tempdir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// made says what the cage makes in the folders of these tests.
func made(name string) bool { return name == "part" || name == "inner" }

// beginFolder makes a folder that holds a part, beside a directory that nothing
// may touch.
func beginFolder(t *testing.T) (f *Folder, path, outside string) {
	t.Helper()
	_, parent, outside := begin(t)
	path = filepath.Join(parent, "folder")
	must(t, os.Mkdir(path, 0o700))
	must(t, os.WriteFile(filepath.Join(path, "part"), []byte("part"), 0o600))
	f, err := Hold(path)
	must(t, err)
	t.Cleanup(func() { f.Close() })
	return f, path, outside
}

func gone(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", path, err)
	}
}

func stays(t *testing.T, f *Folder) {
	t.Helper()
	if err := f.Clear(made); err == nil || !strings.Contains(err.Error(), "folder") {
		t.Errorf("got %v", err)
	}
}

// Of a folder only what was made there is removed, wherever it lies by now, and
// nothing that stands in its place.
func TestFolder(t *testing.T) {
	t.Run("as it was", func(t *testing.T) {
		f, path, _ := beginFolder(t)
		must(t, f.Clear(made))
		gone(t, path)
	})
	t.Run("gone", func(t *testing.T) {
		f, path, _ := beginFolder(t)
		must(t, os.RemoveAll(path))
		must(t, f.Clear(made))
	})
	t.Run("another directory in it", func(t *testing.T) {
		f, path, outside := beginFolder(t)
		must(t, os.Rename(outside, filepath.Join(path, "inner")))
		stays(t, f)
		untouched(t, filepath.Join(path, "inner"))
		gone(t, filepath.Join(path, "part"))
	})
	t.Run("another file in it", func(t *testing.T) {
		f, path, _ := beginFolder(t)
		must(t, os.WriteFile(filepath.Join(path, "other"), nil, 0o600))
		stays(t, f)
		if _, err := os.Lstat(filepath.Join(path, "other")); err != nil {
			t.Error(err)
		}
	})
	t.Run("another directory in its place", func(t *testing.T) {
		f, path, outside := beginFolder(t)
		must(t, os.Rename(path, path+".away"))
		must(t, os.Rename(outside, path))
		stays(t, f)
		untouched(t, path)
		gone(t, filepath.Join(path+".away", "part"))
	})
	t.Run("a link in its place", func(t *testing.T) {
		f, path, outside := beginFolder(t)
		must(t, os.Rename(path, path+".away"))
		must(t, os.Symlink(outside, path))
		stays(t, f)
		untouched(t, outside)
	})
	t.Run("moved with the directory above", func(t *testing.T) {
		f, path, _ := beginFolder(t)
		parent := filepath.Dir(path)
		must(t, os.Rename(parent, parent+".away"))
		t.Cleanup(func() { os.Rename(parent+".away", parent) })
		must(t, f.Clear(made))
		gone(t, filepath.Join(parent+".away", "folder"))
	})
	t.Run("a link to hold", func(t *testing.T) {
		_, path, outside := beginFolder(t)
		must(t, os.Symlink(outside, path+".link"))
		if _, err := Hold(path + ".link"); err == nil {
			t.Error("a link is held")
		}
	})
}

// What was put into a folder leaves it whole, and nothing is left of what holds
// nothing.
func TestSetAside(t *testing.T) {
	f, path, outside := beginFolder(t)
	must(t, os.Rename(outside, filepath.Join(path, "inner")))
	must(t, os.Symlink(path, filepath.Join(path, "link")))
	must(t, os.Mkdir(filepath.Join(path, "empty"), 0o700))
	for _, name := range []string{"link", "empty", "none"} {
		if place, err := f.SetAside(name); place != "" || err != nil {
			t.Errorf("%s is at %q, %v", name, place, err)
		}
		gone(t, filepath.Join(path, name))
	}
	place, err := f.SetAside("inner")
	must(t, err)
	if filepath.Dir(place) != filepath.Dir(path) {
		t.Errorf("it is at %s", place)
	}
	untouched(t, place)
	must(t, f.Clear(made))
	gone(t, path)
}

// A directory that was moved to where the run's own one was stays; an empty one,
// which a command may have made anew, does not.
func TestRemoveNoReplacement(t *testing.T) {
	d, _, outside := begin(t)
	must(t, os.Rename(d.Path(), d.Path()+"away"))
	must(t, os.Rename(outside, d.Path()))
	if err := d.Remove(); err == nil || !strings.Contains(err.Error(), "another directory stands in its place") {
		t.Errorf("got %v", err)
	}
	untouched(t, d.Path())
	d, _, _ = begin(t)
	must(t, os.Remove(d.Path()))
	must(t, os.Mkdir(d.Path(), 0o700))
	must(t, d.Remove())
	gone(t, d.Path())
}

// Promise: a folder that somebody closed is known, and removed.
func TestClosedFolder(t *testing.T) {
	for _, mode := range []os.FileMode{0, 0o600} {
		f, path, _ := beginFolder(t)
		must(t, os.Chmod(path, mode))
		if !f.Stands() {
			t.Errorf("one of mode %o does not stand", mode)
		}
		must(t, f.Clear(made))
		gone(t, path)
	}
}
