package gitrepo

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cage/internal/program"
)

// place is where Discover is asked and what it has to answer.
type place struct{ dir, root, gitDir, commonDir, hooks, format string }

func TestDiscoverLayouts(t *testing.T) {
	layouts := map[string]func(t *testing.T, base string) place{
		"plain, from a folder below": func(t *testing.T, base string) place {
			r := initRepo(t, base+"/r")
			return place{dir: mkdir(t, r+"/a/b"), root: r, gitDir: r + "/.git"}
		},
		"reached through a link": func(t *testing.T, base string) place {
			r := initRepo(t, base+"/r")
			link(t, "r", base+"/l")
			return place{dir: base + "/l", root: r, gitDir: r + "/.git"}
		},
		"linked worktree": func(t *testing.T, base string) place {
			r := initRepo(t, base+"/r")
			commit(t, r)
			git(t, r, "worktree", "add", "-q", base+"/w")
			return place{dir: mkdir(t, base+"/w/sub"), root: base + "/w", gitDir: r + "/.git/worktrees/w", commonDir: r + "/.git"}
		},
		"submodule": func(t *testing.T, base string) place {
			s := initRepo(t, base+"/s")
			commit(t, s)
			r := initRepo(t, base+"/r")
			git(t, r, "submodule", "--quiet", "add", s, "sub")
			return place{dir: r + "/sub", root: r + "/sub", gitDir: r + "/.git/modules/sub"}
		},
		"git directory elsewhere": func(t *testing.T, base string) place {
			r := initRepo(t, base+"/r", "--separate-git-dir", base+"/store")
			return place{dir: r, root: r, gitDir: base + "/store"}
		},
		"git directory behind a link": func(t *testing.T, base string) place {
			r := initRepo(t, base+"/r")
			if err := os.Rename(r+"/.git", base+"/store"); err != nil {
				t.Fatal(err)
			}
			link(t, "../store", r+"/.git")
			return place{dir: mkdir(t, r+"/a"), root: r, gitDir: base + "/store"}
		},
		"SHA-256": func(t *testing.T, base string) place {
			r := initRepo(t, base+"/r", "--object-format=sha256")
			return place{dir: r, root: r, gitDir: r + "/.git", format: SHA256}
		},
		"newlines in the path": func(t *testing.T, base string) place {
			r := initRepo(t, base+"/r\n\nx\n")
			return place{dir: mkdir(t, r+"/a\nb"), root: r, gitDir: r + "/.git"}
		},
		"invalid UTF-8 and quotes in the path": func(t *testing.T, base string) place {
			r := initRepo(t, base+"/r\xff\"'\\ $(x)")
			return place{dir: r, root: r, gitDir: r + "/.git"}
		},
		"repository inside a repository": func(t *testing.T, base string) place {
			r := initRepo(t, initRepo(t, base+"/o")+"/r")
			return place{dir: r, root: r, gitDir: r + "/.git"}
		},
		"hooks by a relative path": func(t *testing.T, base string) place {
			r := initRepo(t, base+"/r")
			git(t, r, "config", "core.hooksPath", ".husky/_")
			return place{dir: mkdir(t, r+"/a/b"), root: r, gitDir: r + "/.git", hooks: r + "/.husky/_"}
		},
		"hooks by an absolute path outside": func(t *testing.T, base string) place {
			r := initRepo(t, base+"/r")
			git(t, r, "config", "core.hooksPath", base+"/shared")
			return place{dir: r, root: r, gitDir: r + "/.git", hooks: base + "/shared"}
		},
		"hooks at home": func(t *testing.T, base string) place {
			r := initRepo(t, base+"/r")
			git(t, r, "config", "core.hooksPath", "~/.githooks")
			return place{dir: r, root: r, gitDir: r + "/.git", hooks: os.Getenv("HOME") + "/.githooks"}
		},
		"hooks set for the user": func(t *testing.T, base string) place {
			r := initRepo(t, base+"/r")
			git(t, r, "config", "--global", "core.hooksPath", base+"/everybody")
			return place{dir: r, root: r, gitDir: r + "/.git", hooks: base + "/everybody"}
		},
		"hooks elsewhere in the git directory": func(t *testing.T, base string) place {
			r := initRepo(t, base+"/r")
			git(t, r, "config", "core.hooksPath", ".git/other")
			return place{dir: mkdir(t, r+"/a"), root: r, gitDir: r + "/.git", hooks: r + "/.git/other"}
		},
		"hooks at the root": func(t *testing.T, base string) place {
			r := initRepo(t, base+"/r")
			git(t, r, "config", "core.hooksPath", ".")
			return place{dir: mkdir(t, r+"/a"), root: r, gitDir: r + "/.git", hooks: r}
		},
		"hooks above the root": func(t *testing.T, base string) place {
			r := initRepo(t, base+"/r")
			git(t, r, "config", "core.hooksPath", "..")
			return place{dir: mkdir(t, r+"/a"), root: r, gitDir: r + "/.git", hooks: base}
		},
		"hooks behind a link": func(t *testing.T, base string) place {
			r := initRepo(t, base+"/r")
			link(t, mkdir(t, base+"/shared"), r+"/.githooks")
			git(t, r, "config", "core.hooksPath", ".githooks")
			return place{dir: r, root: r, gitDir: r + "/.git", hooks: base + "/shared"}
		},
		"hooks turned off": func(t *testing.T, base string) place {
			r := initRepo(t, base+"/r")
			git(t, r, "config", "core.hooksPath", "/dev/null")
			return place{dir: r, root: r, gitDir: r + "/.git", hooks: "/dev/null"}
		},
		"hooks by an empty path": func(t *testing.T, base string) place {
			// git then looks for /pre-commit and its like.
			r := initRepo(t, base+"/r")
			git(t, r, "config", "core.hooksPath", "")
			return place{dir: r, root: r, gitDir: r + "/.git", hooks: "/"}
		},
		"hooks of a linked worktree": func(t *testing.T, base string) place {
			r := initRepo(t, base+"/r")
			commit(t, r)
			git(t, r, "worktree", "add", "-q", base+"/w")
			git(t, r, "config", "core.hooksPath", "hk")
			return place{dir: base + "/w", root: base + "/w", gitDir: r + "/.git/worktrees/w", commonDir: r + "/.git", hooks: base + "/w/hk"}
		},
	}
	for name, build := range layouts {
		t.Run(name, func(t *testing.T) {
			alone(t)
			want := build(t, physicalTemp(t))
			// What the caller's environment says must not count.
			decoy := initRepo(t, physicalTemp(t))
			t.Setenv("GIT_DIR", decoy+"/.git")
			t.Setenv("GIT_WORK_TREE", decoy)
			t.Setenv("GIT_COMMON_DIR", decoy+"/.git")
			t.Setenv("GIT_CEILING_DIRECTORIES", want.dir)
			t.Setenv("GIT_CONFIG_COUNT", "1")
			t.Setenv("GIT_CONFIG_KEY_0", "core.hooksPath")
			t.Setenv("GIT_CONFIG_VALUE_0", "/planted")
			want.commonDir = or(want.commonDir, want.gitDir)
			want.hooks = or(want.hooks, want.commonDir+"/hooks")
			want.format = or(want.format, SHA1)
			for _, version := range []string{"this git", "an old git"} {
				run := program.Exec
				if version == "an old git" {
					run = oldGit
				}
				repo, err := Discover(context.Background(), run, realGit(t), want.dir)
				if err != nil {
					t.Fatalf("%s: %v", version, err)
				}
				if version == "an old git" {
					// It knows one format only.
					want.format = SHA1
				}
				got := place{want.dir, repo.Root, repo.GitDir, repo.CommonDir, repo.HooksDir, repo.ObjectFormat}
				if got != want {
					t.Errorf("%s:\n got %q\nwant %q", version, got, want)
				}
			}
		})
	}
}

// or returns s, or other where s is empty.
func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// oldGit answers as a git before 2.25 does: options of rev-parse that it does
// not know are printed.
func oldGit(ctx context.Context, c program.Call) (program.Result, error) {
	var echo strings.Builder
	args := slices.DeleteFunc(slices.Clone(c.Args), func(arg string) bool {
		unknown := arg == "--path-format=absolute" || arg == "--show-object-format"
		if unknown {
			echo.WriteString(arg + "\n")
		}
		return unknown
	})
	c.Args = args
	result, err := program.Exec(ctx, c)
	result.Stdout = append(result.Stdout, echo.String()...)
	return result, err
}

func TestDiscoverRefusals(t *testing.T) {
	refusals := map[string]struct {
		build func(t *testing.T, base string) (dir string)
		words string
	}{
		"no repository": {func(_ *testing.T, base string) string { return base }, "not a git repository"},
		"bare": {func(t *testing.T, base string) string {
			return initRepo(t, base+"/r", "--bare")
		}, "must be run in a work tree"},
		"inside the git directory": {func(t *testing.T, base string) string {
			return initRepo(t, base+"/r") + "/.git/hooks"
		}, "must be run in a work tree"},
		"broken configuration": {func(t *testing.T, base string) string {
			r := initRepo(t, base+"/r")
			write(t, r+"/.git/config", "[core\n")
			return r
		}, "bad config line 1"},
		"a .git that is no repository": {func(t *testing.T, base string) string {
			mkdir(t, base+"/r/.git")
			return base + "/r"
		}, "not a git repository"},
		"a .git file that leads nowhere": {func(t *testing.T, base string) string {
			write(t, base+"/r/.git", "gitdir: /nowhere\n")
			return base + "/r"
		}, "not a git repository"},
		"a repository of the future": {func(t *testing.T, base string) string {
			r := initRepo(t, base+"/r")
			git(t, r, "config", "core.repositoryFormatVersion", "99")
			return r
		}, "99"},
	}
	for name, refusal := range refusals {
		t.Run(name, func(t *testing.T) {
			alone(t)
			dir := refusal.build(t, physicalTemp(t))
			_, err := Discover(context.Background(), program.Exec, realGit(t), dir)
			var refused *Error
			if !errors.As(err, &refused) || !strings.Contains(refused.Words, refusal.words) {
				t.Fatalf("%v, want git's words %q", err, refusal.words)
			}
			if strings.ContainsFunc(err.Error(), control) {
				t.Errorf("control bytes in %q", err)
			}
		})
	}
}

func TestDiscoverDubiousOwnership(t *testing.T) {
	alone(t)
	r := initRepo(t, physicalTemp(t))
	other := func(ctx context.Context, c program.Call) (program.Result, error) {
		c.Env = append(c.Env, "GIT_TEST_ASSUME_DIFFERENT_OWNER=1")
		return program.Exec(ctx, c)
	}
	_, err := Discover(context.Background(), other, realGit(t), r)
	var refused *Error
	if !errors.As(err, &refused) || !strings.Contains(refused.Words, "dubious ownership") || !strings.Contains(refused.Words, "safe.directory") {
		t.Fatalf("%v, want git's words about ownership", err)
	}
	git(t, r, "config", "--global", "safe.directory", r)
	if _, err := Discover(context.Background(), other, realGit(t), r); err != nil {
		t.Errorf("a directory that the user calls safe: %v", err)
	}
}

func TestDiscoverWithoutGit(t *testing.T) {
	_, err := Discover(context.Background(), program.Exec, filepath.Join(t.TempDir(), "git"), t.TempDir())
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, want a missing program", err)
	}
}

func TestEnvironmentHoldsNothingLocal(t *testing.T) {
	ours := map[string]string{}
	for _, entry := range cleanEnv(nil) {
		name, value, _ := strings.Cut(entry, "=")
		ours[name] = value
	}
	names := strings.Fields(git(t, t.TempDir(), "rev-parse", "--local-env-vars"))
	names = append(names, "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_EXTERNAL_DIFF",
		"GIT_SSH_COMMAND", "GIT_PAGER", "GIT_TRACE", "GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_0", "GIT_EXEC_PATH", "LC_MESSAGES")
	if len(names) < 20 {
		t.Fatalf("git names too few variables: %q", names)
	}
	for _, name := range names {
		for _, entry := range cleanEnv([]string{name + "=planted"}) {
			got, value, _ := strings.Cut(entry, "=")
			if got == name && value != ours[name] {
				t.Errorf("%s reaches git", name)
			}
		}
	}
	kept := cleanEnv([]string{"HOME=/h", "PATH=/p", "GIT_CONFIG_GLOBAL=/g", "XDG_CONFIG_HOME=/x"})
	for _, entry := range []string{"HOME=/h", "PATH=/p", "GIT_CONFIG_GLOBAL=/g", "XDG_CONFIG_HOME=/x"} {
		if !slices.Contains(kept, entry) {
			t.Errorf("%s does not reach git", entry)
		}
	}
}
