// Package gitrepo holds the few questions that are asked of git: where a
// repository's parts stand, which files its configuration is read from, what a
// configuration says, and whether a state of a file is one that git itself
// knows.
//
// It promises that no question runs anything that the repository configures
// (fsmonitor, hooks, filters, textconv, external diff, pager, aliases,
// credential helpers, transports) and that none writes: index, references and
// objects stay as they are. Every question is plumbing, asked with paths taken
// literally and with an environment of the package's own making. Processes are
// started only through the program.Runner that the caller gives.
//
// It does not defend against a forged object store: whoever may write into the
// git directory can place an object under a name that its content does not
// have, and git believes it.
package gitrepo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"cage/internal/physical"
	"cage/internal/program"
)

// Object formats as git names them.
const (
	SHA1   = "sha1"
	SHA256 = "sha256"
)

// Repo is a repository with a work tree, as it stood when it was discovered.
// Later questions are put to exactly these directories, whatever `.git` or the
// configuration has been made to say since. All paths are absolute and free of
// symlinks. A Repo is immutable and may be used by several goroutines.
type Repo struct {
	// Root is the top level of the work tree.
	Root string
	// GitDir is the work tree's own git directory.
	GitDir string
	// CommonDir is the git directory that linked worktrees share; it equals
	// GitDir where there are none.
	CommonDir string
	// HooksDir is where git looks for hooks. It need neither exist nor be a
	// directory: core.hooksPath=/dev/null is a common way to turn hooks off.
	HooksDir string
	// ObjectFormat is SHA1 or SHA256.
	ObjectFormat string
	// Git is the git binary that answers.
	Git string

	run program.Runner
	env []string
	// cameBy says that HEAD's log counts from the byte logged on.
	cameBy bool
	logged int64
}

// Discover asks git which repository holds dir, an absolute path of an existing
// directory. The caller's environment decides which configuration files of the
// user are read, and nothing else about the answer. Where git refuses
// (ownership, broken configuration, a bare repository, a place inside a git
// directory, no repository at all) the error is an *Error with git's own words.
func Discover(ctx context.Context, run program.Runner, git, dir string) (*Found, error) {
	return asker{run: run, git: git, dir: dir, env: cleanEnv(os.Environ()), refs: true}.discover(ctx)
}

// DiscoverCalled is Discover for a program that git may have called itself, as
// it calls hooks: which repository, which work tree, which index and which
// objects are meant is what the caller's environment says of them.
func DiscoverCalled(ctx context.Context, run program.Runner, git, dir string) (*Found, error) {
	asker := asker{run: run, git: git, dir: dir, env: cleanEnv(os.Environ())}
	var kept []string
	for _, name := range []string{"GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE",
		"GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES"} {
		if value, set := os.LookupEnv(name); set {
			kept = append(kept, name+"="+value)
		}
	}
	asker.env = append(asker.env, kept...)
	found, err := asker.discover(ctx)
	if err != nil {
		return nil, err
	}
	// git takes a relative name from the top of the work tree, where it goes
	// before it reads the index.
	if index := os.Getenv("GIT_INDEX_FILE"); index != "" {
		found.env = append(found.env, "GIT_INDEX_FILE="+join(found.Root, index))
	}
	if objects := os.Getenv("GIT_OBJECT_DIRECTORY"); objects != "" {
		found.env = append(found.env, "GIT_OBJECT_DIRECTORY="+join(dir, objects))
	}
	return found, nil
}

func (a asker) discover(ctx context.Context) (*Found, error) {
	said, err := a.together(ctx)
	if err != nil {
		// Alone every question gets its own answer, and git's words are its own.
		said, err = a.oneByOne(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("find the repository of %q: %w", a.dir, err)
	}
	repo := &Repo{ObjectFormat: said.layout[4], Git: a.git, run: a.run}
	for i, to := range []*string{&repo.Root, &repo.GitDir, &repo.CommonDir, &repo.HooksDir} {
		if *to, err = physical.Path(said.layout[i]); err != nil {
			return nil, fmt.Errorf("find the repository of %q: %w", a.dir, err)
		}
	}
	if repo.ObjectFormat != SHA1 && repo.ObjectFormat != SHA256 {
		return nil, fmt.Errorf("find the repository of %q: unknown object format %q", a.dir, repo.ObjectFormat)
	}
	repo.env = repo.placed(a.env)
	return &Found{Repo: repo, said: said}, nil
}

// placed returns an environment in which git asks nobody where the repository
// is.
func (r *Repo) placed(env []string) []string {
	return append(env, "GIT_DIR="+r.GitDir, "GIT_COMMON_DIR="+r.CommonDir, "GIT_WORK_TREE="+r.Root)
}

// questions are what Discover asks about the layout, in the order of its
// answers. "hooks/." rather than "hooks", because git cannot make an absolute
// path of an empty core.hooksPath, which sends it to "/".
func questions() [5][]string {
	return [5][]string{
		{"--show-toplevel"},
		{"--git-dir"},
		{"--git-common-dir"},
		{"--git-path", "hooks/."},
		{"--show-object-format"},
	}
}

// asker asks git rev-parse before the repository is known.
type asker struct {
	run      program.Runner
	git, dir string
	env      []string
	// refs has the references told too, which takes its time where there are many.
	refs bool
}

// oneByOne asks every question about the layout in a call of its own and needs
// nothing of git that is newer than 2.5. Relative answers are relative to the
// top level, since that is where all questions but the first are asked.
func (a asker) oneByOne(ctx context.Context) (said, error) {
	answers := make([]string, 0, len(questions()))
	dir := a.dir
	for i, question := range questions() {
		result, err := a.ask(ctx, dir, question...)
		if err != nil {
			return said{}, err
		}
		answer := strings.TrimSuffix(string(result.Stdout), "\n")
		if i == 0 {
			dir = answer
		}
		answers = append(answers, answer)
	}
	for i, answer := range answers[:4] {
		answers[i] = join(dir, answer)
	}
	if answers[4] == questions()[4][0] {
		// A git that does not know the question repeats it, and knows one format.
		answers[4] = SHA1
	}
	return said{layout: answers}, nil
}

// ask runs one git rev-parse in dir.
func (a asker) ask(ctx context.Context, dir string, args ...string) (program.Result, error) {
	return query{
		run: a.run, git: a.git, dir: dir, env: a.env,
		// No override of core.hooksPath: it would be the answer.
		args: append([]string{"--no-pager", "-c", "core.fsmonitor=false", "rev-parse"}, args...),
	}.result(ctx)
}

// join returns path, taken relative to dir unless it is absolute. It does not
// clean: ".." behind a symlink is not the directory that its spelling says.
func join(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return strings.TrimSuffix(dir, "/") + "/" + path
}
