package gitrepo

import (
	"context"
	"os"
	"path/filepath"
)

// Early asks for a repository's configuration before it is settled which
// repository that is: of the one that the directory called `.git` makes by the
// look of it, which is nearly always the one that Discover then finds. The
// answer counts only for a Repo that stands in exactly the directories that
// were asked, so that it is the answer to the same question; for any other the
// question is put again.
//
// git is told those directories and so does not check who owns them, as it
// does for Discover. Nothing runs that is configured there, and if Discover
// refuses the repository nothing that was read of it is used.
type Early struct {
	presumed *Repo // nil where `.git` is no directory
	forget   context.CancelFunc
	done     chan struct{}
	config   *Config
	err      error
}

// AskEarly puts the question, beside the caller. dotGit is what DotGitAbove
// returned.
func AskEarly(ctx context.Context, run Runner, git, dotGit string) *Early {
	ctx, cancel := context.WithCancel(ctx)
	e := &Early{forget: cancel, done: make(chan struct{})}
	if info, err := os.Lstat(dotGit); err != nil || !info.IsDir() {
		close(e.done)
		return e
	}
	e.presumed = &Repo{Root: filepath.Dir(dotGit), GitDir: dotGit, CommonDir: dotGit, Git: git, run: run}
	e.presumed.env = e.presumed.placed(cleanEnv(os.Environ()))
	go func() {
		defer close(e.done)
		e.config, e.err = e.presumed.Config(ctx)
	}()
	return e
}

// Config returns what repo.Config returns.
func (e *Early) Config(ctx context.Context, repo *Repo) (*Config, error) {
	asked := e.presumed
	if asked == nil || asked.Root != repo.Root || asked.GitDir != repo.GitDir || asked.CommonDir != repo.CommonDir {
		return repo.Config(ctx)
	}
	<-e.done
	return e.config, e.err
}

// Forget ends the question if it is still open, and returns when nothing of it
// runs any more.
func (e *Early) Forget() {
	e.forget()
	<-e.done
}
