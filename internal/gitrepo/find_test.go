package gitrepo

import (
	"strings"
	"testing"
)

func TestDotGitAbove(t *testing.T) {
	base := physicalTemp(t)
	mkdir(t, base+"/folder/.git")
	mkdir(t, base+"/folder/a/b")
	write(t, base+"/file/.git", "gitdir: x\n")
	link(t, "nowhere", mkdir(t, base+"/link")+"/.git")
	link(t, base+"/folder/a", base+"/link/in")
	write(t, base+"/link/leaf", "")
	for dir, want := range map[string]string{
		base + "/folder/a/b":  base + "/folder/.git",
		base + "/folder":      base + "/folder/.git",
		base + "/folder/.git": base + "/folder/.git",
		base + "/file":        base + "/file/.git",
		base + "/link":        base + "/link/.git",
		base + "/link/in":     base + "/folder/.git",
		base + "/link/leaf":   base + "/link/.git",
	} {
		if got, found, err := DotGitAbove(dir); got != want || !found || err != nil {
			t.Errorf("above %s: %q, %v, %v; want %q", dir, got, found, err, want)
		}
	}
	if got, found, err := DotGitAbove(base); found && strings.HasPrefix(got, base) || err != nil {
		t.Errorf("above %s: %q, %v, %v", base, got, found, err)
	}
	if _, _, err := DotGitAbove("relative"); err == nil {
		t.Error("a relative directory is accepted")
	}
}
