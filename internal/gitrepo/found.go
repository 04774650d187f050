package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// Found is a repository and what git said of it in the call that found it. A
// git that starts takes as long as much of what a session does before its
// command, so one call answers what it can.
type Found struct {
	*Repo
	said said
}

// said is what one call of git said.
type said struct {
	// layout has the answers to questions.
	layout []string
	// refs are what StartRefs returns, where refsTold.
	refs     Refs
	refsTold bool
	// plain says that no setting that was read includes a file or names a hooks
	// folder.
	plain bool
}

// Modern reports whether git is known to be 2.31 or later. It may be where it is
// not known.
func (f *Found) Modern() bool { return f.said.refsTold }

// StartRefs returns what Repo.StartRefs would have returned when the repository
// was found, or, where git did not say, what it returns now.
func (f *Found) StartRefs(ctx context.Context) (Refs, error) {
	if f.said.refsTold {
		return f.said.refs, nil
	}
	return f.Repo.StartRefs(ctx)
}

// Config returns what Repo.Config returns, and asks git only where there is
// more to say than that nothing is included and the hooks are where they always
// are.
func (f *Found) Config(ctx context.Context) (*Config, error) {
	if f.said.plain && f.noWorktreeConfig() {
		config, _, err := f.sort(nil)
		return config, err
	}
	return f.Repo.Config(ctx)
}

// noWorktreeConfig reports whether there is no config.worktree: what that says
// git reads only once it knows the repository, after the moment of the trace.
func (f *Found) noWorktreeConfig() bool {
	_, err := os.Lstat(join(f.GitDir, "config.worktree"))
	return errors.Is(err, fs.ErrNotExist)
}

// errTogether is returned where the answers cannot be told apart: one of them
// holds a newline, or this git is older than 2.31 and repeats the option that
// it does not know.
var errTogether = errors.New("answers of git rev-parse that cannot be told apart")

// together puts all questions about the layout in one call, and where the
// references are wanted asks for the object ids of them and of HEAD, which fails
// for no HEAD without a commit.
func (a asker) together(ctx context.Context) (said, error) {
	args := []string{"--path-format=absolute"}
	for _, question := range questions() {
		args = append(args, question...)
	}
	if a.refs {
		args = append(args, "--all", "--revs-only", "HEAD")
	}
	a.env = append(slices.Clone(a.env), tracing()...)
	result, err := a.ask(ctx, a.dir, args...)
	if err != nil {
		return said{}, err
	}
	lines := strings.Split(strings.TrimSuffix(string(result.Stdout), "\n"), "\n")
	if len(lines) < len(questions()) {
		return said{}, errTogether
	}
	s := said{layout: lines[:len(questions())], refs: lines[len(questions()):], refsTold: a.refs, plain: tracedPlain(result.Stderr)}
	// A newline in a path would push the object format, which is no id, in here.
	format := Repo{ObjectFormat: s.layout[len(questions())-1]}
	if !a.refs && len(s.refs) > 0 || slices.ContainsFunc(s.refs, func(line string) bool { return !format.IsID(line) }) {
		return said{}, errTogether
	}
	slices.Sort(s.refs)
	s.refs = slices.Compact(s.refs)
	return s, nil
}

// tracing makes git (2.22 and later) write to its standard error, beside what
// it does, which of these settings it reads in any of its configuration files,
// in whatever file and under whatever condition.
func tracing() []string {
	return []string{
		"GIT_TRACE2=2", "GIT_TRACE2_BRIEF=1",
		"GIT_TRACE2_CONFIG_PARAMS=include.path,includeif.*.path,core.hookspath",
	}
}

// tracedPlain reports whether git traced its work and read none of the settings
// that it was to tell of. What else stands in the trace can only make it say
// no: a setting that was read is named before anything that a repository has
// influence on.
func tracedPlain(trace []byte) bool {
	const began, setting = "cmd_name rev-parse", "def_param"
	return bytes.Contains(trace, []byte(began)) && !bytes.Contains(trace, []byte(setting))
}
