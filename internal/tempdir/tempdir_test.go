//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package tempdir

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const id = "0123456789abcdef"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// begin makes a directory beside a folder that nothing may touch.
func begin(t *testing.T) (d *Dir, parent, outside string) {
	t.Helper()
	parent = t.TempDir()
	t.Cleanup(func() { openAll(parent) })
	outside = filepath.Join(parent, "outside")
	must(t, os.MkdirAll(filepath.Join(outside, "inner"), 0o755))
	must(t, os.WriteFile(filepath.Join(outside, "inner", "file"), []byte("whole"), 0o444))
	must(t, os.Chmod(filepath.Join(outside, "inner"), 0o555))
	d, err := Make(parent, id)
	must(t, err)
	return d, parent, outside
}

// openAll lets the test remove what lies below a directory, wherever it was moved.
func openAll(dir string) {
	filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if entry != nil && entry.IsDir() {
			os.Chmod(path, 0o755)
		}
		return nil
	})
}

func untouched(t *testing.T, outside string) {
	t.Helper()
	inner := filepath.Join(outside, "inner")
	info, err := os.Stat(inner)
	must(t, err)
	if data, err := os.ReadFile(filepath.Join(inner, "file")); err != nil || string(data) != "whole" || info.Mode().Perm() != 0o555 {
		t.Errorf("outside is %v, %q, %v", info.Mode(), data, err)
	}
}

// Whatever a command makes of its directory, it is removed, and nothing else is.
func TestRemove(t *testing.T) {
	for name, fill := range map[string]func(t *testing.T, dir, outside string){
		"nothing": func(*testing.T, string, string) {},
		"links": func(t *testing.T, dir, outside string) {
			must(t, os.Symlink(outside, filepath.Join(dir, "directory")))
			must(t, os.Symlink(filepath.Join(outside, "inner", "file"), filepath.Join(dir, "file")))
			must(t, os.Symlink("..", filepath.Join(dir, "above")))
			must(t, os.Mkdir(filepath.Join(dir, "deep"), 0o755))
			must(t, os.Symlink(filepath.Join(outside, "inner"), filepath.Join(dir, "deep", "directory")))
			must(t, os.Link(filepath.Join(outside, "inner", "file"), filepath.Join(dir, "hard")))
		},
		"no rights": func(t *testing.T, dir, _ string) {
			deep := filepath.Join(dir, "a", "b")
			must(t, os.MkdirAll(filepath.Join(deep, "c"), 0o755))
			must(t, os.WriteFile(filepath.Join(deep, "file"), nil, 0))
			for _, d := range []string{filepath.Join(deep, "c"), deep, filepath.Dir(deep), dir} {
				must(t, os.Chmod(d, 0))
			}
		},
		"names": func(t *testing.T, dir, _ string) {
			for _, name := range []string{"moved-1", "\xff\n", "-rf", strings.Repeat("x", 255)} {
				must(t, os.MkdirAll(filepath.Join(dir, "many", name, name), 0o755))
				must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
			}
			must(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
			must(t, os.MkdirAll(filepath.Join(dir, "moved-2", "x"), 0o700))
		},
		"depth": func(t *testing.T, dir, _ string) {
			at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
			must(t, err)
			for range 3000 { // longer than any path
				must(t, unix.Mkdirat(at, "d", 0o700))
				next, err := unix.Openat(at, "d", unix.O_RDONLY|unix.O_DIRECTORY, 0)
				must(t, err)
				must(t, unix.Close(at))
				at = next
			}
			must(t, unix.Close(at))
		},
		"breadth": func(t *testing.T, dir, _ string) {
			for i := range 300 {
				must(t, os.Mkdir(filepath.Join(dir, fmt.Sprint(i)), 0o500))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, parent, outside := begin(t)
			if info, err := os.Lstat(d.Path()); err != nil || info.Mode().Perm() != 0o700 || d.Path() != Path(parent, id) {
				t.Errorf("made is %v, %v", info, err)
			}
			fill(t, d.Path(), outside)
			must(t, d.Remove())
			if _, err := os.Lstat(d.Path()); !os.IsNotExist(err) {
				t.Errorf("it is still there: %v", err)
			}
			untouched(t, outside)
		})
	}
}

// What stands at the place of a run and is not its directory stays.
func TestRemoveNoOther(t *testing.T) {
	_, parent, outside := begin(t)
	for _, name := range []string{"", ".", "..", "../outside", "a/b", "a\x00"} {
		if err := Remove(parent, name); err == nil {
			t.Errorf("%q names a run", name)
		}
		if _, err := Make(parent, name); err == nil {
			t.Errorf("%q names a run", name)
		}
	}
	must(t, Remove(parent, "none"))
	must(t, Remove(filepath.Join(parent, "none"), id))
	must(t, os.Symlink(outside, Path(parent, "link")))
	must(t, os.WriteFile(Path(parent, "file"), nil, 0o600))
	for _, name := range []string{"link", "file"} {
		if err := Remove(parent, name); err == nil {
			t.Errorf("a %s was removed", name)
		}
		if _, err := os.Lstat(Path(parent, name)); err != nil {
			t.Errorf("the %s is gone", name)
		}
		if _, err := Make(parent, name); err == nil {
			t.Errorf("the %s was taken", name)
		}
	}
	untouched(t, outside)
}

// A directory is left when nobody holds it and nothing else has its name.
func TestLeft(t *testing.T) {
	held, parent, outside := begin(t)
	defer held.Remove()
	must(t, os.Mkdir(Path(parent, "left"), 0o700))
	must(t, os.Mkdir(filepath.Join(parent, "other"), 0o700))
	must(t, os.Symlink(outside, Path(parent, "link")))
	must(t, os.WriteFile(Path(parent, "file"), nil, 0o600))
	got, err := Left(parent)
	if err != nil || len(got) != 1 || got[0] != Path(parent, "left") {
		t.Errorf("left are %v, %v", got, err)
	}
	if got, err := Left(filepath.Join(parent, "none")); got != nil || err != nil {
		t.Errorf("nowhere is left %v, %v", got, err)
	}
}
