package watch

import (
	"io/fs"
	"strings"
	"testing"

	"cage/rules"
)

func TestMountTable(t *testing.T) {
	const table = `21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 21 0:40 / /home/u/my\040work rw - 9p host rw
31 30 0:41 / /home/u/my\040work/data rw - fuse.sshfs x rw
32 30 0:42 / /home/u/my\040work/disk rw - ext4 /dev/sdb1 rw
33 21 0:43 / /home/u/my\040workshop rw - nfs4 x rw
34 21 0:44 / /srv rw - nfs4 x rw
broken line
`
	l := rules.Layout{Root: "/home/u/my work", CommonDir: "/home/u/my work/.git"}
	found := concerning([]byte(table), l)
	var points []string
	for _, m := range found {
		if m.anchor == rules.Root {
			points = append(points, m.point)
		}
	}
	if got := strings.Join(points, ":"); got != "/:/home/u/my work:/home/u/my work/data:/home/u/my work/disk" {
		t.Errorf("mounts of the root: %s", got)
	}
	reasons := strings.Join(unseen(found, l), "\n")
	for _, want := range []string{`"/home/u/my work" is a 9p`, `"/home/u/my work/data" is a fuse.sshfs`} {
		if !strings.Contains(reasons, want) {
			t.Errorf("%q lacks %q", reasons, want)
		}
	}
	if strings.Contains(reasons, "disk") || strings.Contains(reasons, "nfs") {
		t.Errorf("%q names mounts that concern nothing", reasons)
	}
	// A mount on top decides.
	found = concerning([]byte(table+"40 30 0:50 / /home/u/my\\040work rw - tmpfs x rw\n"), l)
	if reasons := unseen(found, l); len(reasons) != 1 || !strings.Contains(reasons[0], "sshfs") {
		t.Errorf("%q", reasons)
	}
}

// A look at the table that failed was a look: the next one may show what changed
// since the watches were set.
func TestFailedLookAtMounts(t *testing.T) {
	const table = "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
	for _, failed := range []bool{false, true} {
		w := &Watcher{layout: rules.Layout{Root: "/r", CommonDir: "/r/.git"}, mounts: new(mounts)}
		w.hints.init(systemLimits().pending)
		if failed {
			w.noteMounts(nil, fs.ErrPermission)
			if b := w.hints.take(); !b.Rescan || len(b.Errs) != 1 {
				t.Errorf("it is not told: %+v", b)
			}
		}
		w.noteMounts([]byte(table), nil)
		if b := w.hints.take(); b.Remounted != failed {
			t.Errorf("where a look has failed (%v), the next one says %+v", failed, b)
		}
	}
}
