package gitrepo

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

// program writes an executable.
func program(t *testing.T, path string) string {
	t.Helper()
	write(t, path, "#!/bin/sh\nexit 0\n")
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFindGit(t *testing.T) {
	base := physicalTemp(t)
	good := program(t, base+"/usr/git")
	root := mkdir(t, base+"/root")
	program(t, root+"/.venv/bin/git")
	program(t, root+"/tool")
	link(t, root+"/.venv/bin", base+"/into")
	link(t, root+"/tool", mkdir(t, base+"/linked")+"/git")
	link(t, base+"/usr", root+"/out")
	link(t, root+"/out", base+"/through")
	link(t, "usr", base+"/alias")
	mkdir(t, base+"/folder/git")
	write(t, base+"/plain/git", "no program")
	program(t, base+"/shims/tool")
	link(t, "tool", base+"/shims/git")
	link(t, "git", mkdir(t, base+"/loop")+"/git")
	program(t, base+"/root-sibling/git")
	link(t, root, base+"/rootlink")

	for name, c := range map[string]struct{ path, outside, want string }{
		"plain":                         {base + "/usr", root, good},
		"planted in the root":           {root + "/.venv/bin:" + base + "/usr", root, good},
		"root named by a link":          {root + "/.venv/bin:" + base + "/usr", base + "/rootlink", good},
		"entry named through a link":    {base + "/rootlink/.venv/bin:" + base + "/usr", root, good},
		"spelled in a roundabout way":   {base + "/usr/../root/.venv//bin/.:" + base + "/usr", root, good},
		"folder that leads in":          {base + "/into:" + base + "/usr", root, good},
		"program that leads in":         {base + "/linked:" + base + "/usr", root, good},
		"folder in the root, leads out": {root + "/out:" + base + "/usr", root, good},
		"way through the root":          {base + "/through:" + base + "/usr", root, good},
		"only ways through the root":    {base + "/through:" + base + "/into:" + base + "/linked", root, ""},
		"empty and relative entries":    {":.:bin:" + base + "/usr", root, good},
		"nothing but relative":          {":.:bin", root, ""},
		"no PATH":                       {"", root, ""},
		"folder, plain file, loop":      {base + "/folder:" + base + "/plain:" + base + "/loop:" + base + "/usr", root, good},
		"missing folder":                {base + "/missing:" + base + "/usr", root, good},
		"folder alias":                  {base + "/alias", root, good},
		"link keeps its name":           {base + "/shims", root, base + "/shims/git"},
		"sibling with the root's name":  {base + "/root-sibling", root, base + "/root-sibling/git"},
		"nothing forbidden":             {root + "/.venv/bin", "", root + "/.venv/bin/git"},
		"everything forbidden":          {base + "/usr", "/", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(root + "/.venv")
			got, err := FindGit(c.path, c.outside)
			if got != c.want || (c.want == "") != errors.Is(err, ErrNoGit) {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
}

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

func TestResolve(t *testing.T) {
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
		if got, _, err := resolve(path); got != want || err != nil {
			t.Errorf("%q: %q, %v; want %q", path, got, err, want)
		}
	}
	if _, links, _ := resolve(base + "/m"); len(links) != 2 || links[0] != base+"/m" || links[1] != base+"/l" {
		t.Errorf("links %q", links)
	}
	if _, _, err := resolve(base + "/n"); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a loop: %v", err)
	}
	if _, _, err := resolve("a"); err == nil {
		t.Error("a relative path is accepted")
	}
}
