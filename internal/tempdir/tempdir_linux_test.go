package tempdir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A mount in the directory is left, what is mounted is whole, and everything
// beside it is removed.
func TestRemoveCrossesNoMount(t *testing.T) {
	d, _, outside := begin(t)
	point := filepath.Join(d.Path(), "a", "point")
	must(t, os.MkdirAll(point, 0o700))
	must(t, os.WriteFile(filepath.Join(d.Path(), "a", "beside"), nil, 0o600))
	if err := unix.Mount(outside, point, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(point, unix.MNT_DETACH) })
	err := d.Remove()
	if err == nil || !strings.Contains(err.Error(), "something is mounted there") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Lstat(filepath.Join(d.Path(), "a", "beside")); !os.IsNotExist(err) {
		t.Errorf("what lay beside: %v", err)
	}
	must(t, unix.Unmount(point, unix.MNT_DETACH))
	untouched(t, outside)
	must(t, Remove(filepath.Dir(d.Path()), id))
}

// What is mounted over a folder, or in it, is whole afterwards.
func TestFolderCrossesNoMount(t *testing.T) {
	for _, name := range []string{".", "inner"} {
		f, path, outside := beginFolder(t)
		point := filepath.Join(path, name)
		if name != "." {
			must(t, os.Mkdir(point, 0o700))
		}
		if err := unix.Mount(outside, point, "", unix.MS_BIND, ""); err != nil {
			t.Skipf("nothing can be mounted here: %v", err)
		}
		t.Cleanup(func() { unix.Unmount(point, unix.MNT_DETACH) })
		stays(t, f)
		if place, err := f.SetAside("inner"); name == "inner" && err == nil {
			t.Errorf("it was set aside, at %q", place)
		}
		untouched(t, outside)
		must(t, unix.Unmount(point, unix.MNT_DETACH))
		gone(t, filepath.Join(path, "part"))
	}
}
