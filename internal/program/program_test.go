package program

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// executable writes one.
func executable(t *testing.T, path string) string {
	t.Helper()
	write(t, path, "#!/bin/sh\nexit 0\n")
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// Promise: nothing that an agent could have put there is found.
func TestFind(t *testing.T) {
	base := physicalTemp(t)
	good := executable(t, base+"/usr/git")
	root := mkdir(t, base+"/root")
	executable(t, root+"/.venv/bin/git")
	executable(t, root+"/tool")
	link(t, root+"/.venv/bin", base+"/into")
	link(t, root+"/tool", mkdir(t, base+"/linked")+"/git")
	link(t, base+"/usr", root+"/out")
	link(t, root+"/out", base+"/through")
	link(t, "usr", base+"/alias")
	mkdir(t, base+"/folder/git")
	write(t, base+"/plain/git", "no program")
	executable(t, base+"/shims/tool")
	link(t, "tool", base+"/shims/git")
	link(t, "git", mkdir(t, base+"/loop")+"/git")
	executable(t, base+"/root-sibling/git")
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
			got, err := Find("git", c.path, c.outside)
			if got != c.want || (c.want == "") != errors.Is(err, ErrNotFound) {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
}

// Promise: what a program said cannot harm a terminal or drown the rest.
func TestWordsAreOneHarmlessLine(t *testing.T) {
	if got := Words([]byte("fatal: a\x1b[31mb\xff\n\n\thint: c\n")); got != "fatal: a?[31mb\uFFFD hint: c" {
		t.Errorf("%q", got)
	}
	if got := Words([]byte(strings.Repeat("x", 1<<20))); len(got) > maxWords {
		t.Errorf("%d bytes", len(got))
	}
}

func TestExecEndsWithTheContext(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip("no sleep here")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Exec(ctx, Call{Path: sleep, Args: []string{"600"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the end of the context", err)
	}
}

func TestExecReportsASignal(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh here")
	}
	if _, err := Exec(context.Background(), Call{Path: sh, Args: []string{"-c", "kill -9 $$"}}); err == nil {
		t.Error("a killed process gave no error")
	}
	result, err := Exec(context.Background(), Call{Path: sh, Args: []string{"-c", "cat; echo no >&2; exit 7"}, Stdin: []byte("in")})
	if err != nil || result.ExitCode != 7 || string(result.Stdout) != "in" || string(result.Stderr) != "no\n" {
		t.Errorf("%+v, %v", result, err)
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

func write(t *testing.T, path, text string) {
	t.Helper()
	mkdir(t, filepath.Dir(path))
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
