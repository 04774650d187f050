package gitrepo

import (
	"context"
	"os"
	"path/filepath"
)

// Early asks what a session wants to know at its start before it is settled
// which repository that is: of the one that the directory called `.git` makes
// by the look of it, which is nearly always the one that Discover then finds.
// An answer counts only for a Repo that stands in exactly the directories that
// were asked, so that it is the answer to the same question; for any other the
// question is put again.
//
// git is told those directories and so does not check who owns them, as it
// does for Discover. Nothing runs that is configured there, and if Discover
// refuses the repository nothing that was read of it is used.
type Early struct {
	presumed *Repo // nil where `.git` is no directory
	config   chan early[*Config]
	refs     chan early[Refs]
	forget   context.CancelFunc
}

type early[T any] struct {
	value T
	err   error
}

// AskEarly puts the questions, beside the caller. dotGit is what DotGitAbove
// returned.
func AskEarly(ctx context.Context, run Runner, git, dotGit string) *Early {
	ctx, cancel := context.WithCancel(ctx)
	e := &Early{forget: cancel}
	if info, err := os.Lstat(dotGit); err != nil || !info.IsDir() {
		return e
	}
	e.presumed = &Repo{Root: filepath.Dir(dotGit), GitDir: dotGit, CommonDir: dotGit, Git: git, run: run}
	e.presumed.env = e.presumed.placed(cleanEnv(os.Environ()))
	e.config, e.refs = inTheBackground(ctx, e.presumed.Config), inTheBackground(ctx, e.presumed.StartRefs)
	return e
}

func inTheBackground[T any](ctx context.Context, ask func(context.Context) (T, error)) chan early[T] {
	answer := make(chan early[T], 1)
	go func() {
		value, err := ask(ctx)
		answer <- early[T]{value, err}
	}()
	return answer
}

// Config returns what repo.Config returns. It may be called once.
func (e *Early) Config(ctx context.Context, repo *Repo) (*Config, error) {
	if !e.asked(repo) {
		return repo.Config(ctx)
	}
	return take(ctx, &e.config)
}

// StartRefs returns what repo.StartRefs returned a moment ago. It may be called
// once.
func (e *Early) StartRefs(ctx context.Context, repo *Repo) (Refs, error) {
	if !e.asked(repo) {
		return repo.StartRefs(ctx)
	}
	return take(ctx, &e.refs)
}

func (e *Early) asked(repo *Repo) bool {
	return e.presumed != nil &&
		e.presumed.Root == repo.Root && e.presumed.GitDir == repo.GitDir && e.presumed.CommonDir == repo.CommonDir
}

func take[T any](ctx context.Context, from *chan early[T]) (T, error) {
	select {
	case answer := <-*from:
		*from = nil
		return answer.value, answer.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// Forget ends the questions whose answers nobody took, and returns when nothing
// of them runs any more.
func (e *Early) Forget() {
	e.forget()
	if e.config != nil {
		<-e.config
	}
	if e.refs != nil {
		<-e.refs
	}
	e.config, e.refs = nil, nil
}
