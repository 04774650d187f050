package gitrepo

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cage/internal/program"
)

// alone gives the test a home of its own and takes away what the caller's
// environment would tell git.
func alone(t testing.TB) (home string) {
	t.Helper()
	for _, entry := range os.Environ() {
		if name, value, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "GIT_") {
			// Setenv first, so that the value comes back after the test.
			t.Setenv(name, value)
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	home = physicalTemp(t)
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	return home
}

// physicalTemp returns a temporary directory by its physical name.
func physicalTemp(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// realGit returns the git of this machine.
func realGit(t testing.TB) string {
	t.Helper()
	git, err := program.Find("git", os.Getenv("PATH"), "")
	if err != nil {
		t.Fatal(err)
	}
	return git
}

// git runs git in dir as a user would and returns its output.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	return gitInput(t, dir, "", args...)
}

// gitInput is git with something on its standard input.
func gitInput(t testing.TB, dir, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command(realGit(t), append([]string{"-c", "user.name=T", "-c", "user.email=t@example.org",
		"-c", "protocol.file.allow=always", "-c", "commit.gpgSign=false"}, args...)...)
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %q in %s: %v: %s", args, dir, err, stderr.Bytes())
	}
	return strings.TrimSuffix(string(out), "\n")
}

// write writes a file and the directories above it.
func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// mkdir makes a directory and those above it, and returns it.
func mkdir(t testing.TB, path string) string {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// link makes a symlink.
func link(t testing.TB, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

// initRepo makes an empty repository in dir and returns dir.
func initRepo(t testing.TB, dir string, args ...string) string {
	t.Helper()
	git(t, mkdir(t, dir), append([]string{"init", "-q", "-b", "main"}, args...)...)
	return dir
}

// commit commits everything in dir and returns the commit.
func commit(t testing.TB, dir string) string {
	t.Helper()
	git(t, dir, "add", "-A", "-f")
	git(t, dir, "commit", "-q", "--allow-empty", "-m", "change")
	return git(t, dir, "rev-parse", "HEAD")
}

// discover is Discover with the machine's git and a plain Runner.
func discover(t testing.TB, dir string) *Repo {
	t.Helper()
	found, err := Discover(context.Background(), program.Exec, realGit(t), dir)
	if err != nil {
		t.Fatal(err)
	}
	return found.Repo
}
