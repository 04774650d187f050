package gitrepo

import (
	"context"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// Whatever stands at `.git`, the early answer is the one that the repository
// gives, and where it is the plain one nothing is asked twice.
func TestEarlyAnswerIsTheRepositorys(t *testing.T) {
	alone(t)
	base := physicalTemp(t)
	main := initRepo(t, base+"/main")
	write(t, main+"/a", "1\n")
	commit(t, main)
	write(t, base+"/extra", "[core]\n\tautocrlf = false\n")
	git(t, main, "config", "include.path", base+"/extra")
	git(t, main, "branch", "other")
	git(t, main, "worktree", "add", "-q", base+"/linked")
	git(t, base, "init", "-q", "--separate-git-dir", base+"/apart.git", base+"/apart")
	for name, want := range map[string]struct {
		dir   string
		calls int64
	}{
		"plain":                   {main, 2},
		"below the top":           {mkdir(t, main+"/x/y"), 2},
		"worktree":                {base + "/linked", 2},
		"git directory elsewhere": {base + "/apart", 2},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int64
			count := func(ctx context.Context, c Call) (Result, error) {
				calls.Add(1)
				return Exec(ctx, c)
			}
			ctx := context.Background()
			dotGit, found, err := DotGitAbove(want.dir)
			if err != nil || !found {
				t.Fatalf("%v, found %v", err, found)
			}
			early := AskEarly(ctx, count, realGit(t), dotGit)
			defer early.Forget()
			repo, err := Discover(ctx, count, realGit(t), want.dir)
			if err != nil {
				t.Fatal(err)
			}
			config, err := early.Config(ctx, repo)
			if err != nil {
				t.Fatal(err)
			}
			if got := calls.Load(); got != want.calls {
				t.Errorf("%d calls, want %d", got, want.calls)
			}
			wantConfig, err := repo.Config(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(config, wantConfig) {
				t.Errorf("got %+v, want %+v", config, wantConfig)
			}
		})
	}
}

// What was asked of one repository is not taken for the answer of another.
func TestEarlyAnswerOfAnotherRepositoryDoesNotCount(t *testing.T) {
	alone(t)
	base := physicalTemp(t)
	asked, other := initRepo(t, base+"/asked"), initRepo(t, base+"/other")
	write(t, base+"/extra", "")
	git(t, asked, "config", "include.path", base+"/extra")
	ctx := context.Background()
	early := AskEarly(ctx, Exec, realGit(t), asked+"/.git")
	defer early.Forget()
	repo, err := Discover(ctx, Exec, realGit(t), other)
	if err != nil {
		t.Fatal(err)
	}
	config, err := early.Config(ctx, repo)
	if err != nil {
		t.Fatal(err)
	}
	if len(config.Includes) > 0 {
		t.Errorf("includes %q come from the other repository", config.Includes)
	}
}

// What nobody waits for any more is ended: git would read this configuration
// for ever.
func TestForgetEndsTheQuestion(t *testing.T) {
	alone(t)
	r := initRepo(t, physicalTemp(t))
	fifo := filepath.Join(r, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	git(t, r, "config", "include.path", fifo)
	var running atomic.Int64
	count := func(ctx context.Context, c Call) (Result, error) {
		running.Add(1)
		defer running.Add(-1)
		return Exec(ctx, c)
	}
	early := AskEarly(context.Background(), count, realGit(t), r+"/.git")
	early.Forget()
	if n := running.Load(); n != 0 {
		t.Errorf("%d questions still run", n)
	}
	early.Forget()
}

// The early question has the environment of every other.
func TestEarlyQuestionIsQuiet(t *testing.T) {
	alone(t)
	r := initRepo(t, physicalTemp(t))
	t.Setenv("GIT_DIR", "/nowhere")
	var env string
	early := AskEarly(context.Background(), func(ctx context.Context, c Call) (Result, error) {
		env = strings.Join(c.Env, "\n")
		return Exec(ctx, c)
	}, realGit(t), r+"/.git")
	defer early.Forget()
	if _, err := early.Config(context.Background(), &Repo{Root: r, GitDir: r + "/.git", CommonDir: r + "/.git"}); err != nil {
		t.Error(err)
	}
	if strings.Contains(env, "/nowhere") || !strings.Contains(env, "GIT_DIR="+r+"/.git") || !strings.Contains(env, "GIT_NO_LAZY_FETCH=1") {
		t.Errorf("git is asked in the environment %q", env)
	}
}
