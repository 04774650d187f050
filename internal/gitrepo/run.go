package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"cage/internal/program"
)

// Error is git's refusal to answer.
type Error struct {
	// Command is the git command that refused, such as "rev-parse".
	Command string
	// ExitCode is git's.
	ExitCode int
	// Words are what git wrote to its standard error, on one line, without
	// control bytes, and cut where they are long.
	Words string
}

// Error returns git's words, or its exit code where it had none.
func (e *Error) Error() string {
	if e.Words == "" {
		return fmt.Sprintf("git %s: exit code %d", e.Command, e.ExitCode)
	}
	return fmt.Sprintf("git %s: %s", e.Command, e.Words)
}

// Hint says what a person can do about an error with which git refused.
func Hint(err error) string {
	var words *Error
	if errors.As(err, &words) && strings.Contains(words.Words, "safe.directory") {
		return "make yourself the owner of the repository, or add it to safe.directory"
	}
	return "run `git status` here and follow what it says"
}

// Is reports whether git refused for an object that it would have had to fetch:
// that is ErrMissing too.
func (e *Error) Is(target error) bool {
	return target == ErrMissing && strings.Contains(e.Words, "from promisor remote")
}

// query is one call of git.
type query struct {
	run      program.Runner
	git, dir string
	env      []string
	args     []string
	stdin    []byte
}

// output returns the standard output of a call that succeeded.
func (q query) output(ctx context.Context) ([]byte, error) {
	result, err := q.result(ctx)
	return result.Stdout, err
}

// result returns what a call that succeeded left.
func (q query) result(ctx context.Context) (program.Result, error) {
	result, err := q.run(ctx, program.Call{Path: q.git, Args: q.args, Env: q.env, Dir: q.dir, Stdin: q.stdin})
	if err != nil {
		return program.Result{}, err
	}
	if result.ExitCode != 0 {
		return program.Result{}, &Error{Command: command(q.args), ExitCode: result.ExitCode, Words: program.Words(result.Stderr)}
	}
	return result, nil
}

// command returns the first argument that is neither an option of git itself
// nor the setting that follows -c.
func command(args []string) string {
	for i := 0; i < len(args); i++ {
		if args[i] == "-c" {
			i++
		} else if !strings.HasPrefix(args[i], "-") {
			return args[i]
		}
	}
	return ""
}

// cleanEnv returns the environment that git is asked in: environ without
// anything that git reads, save the names of the user's configuration files,
// and with what keeps git from prompting, fetching, locking, and believing
// replacements and grafts. A replacement or a graft is an easy way to give an
// old commit another content or another past.
func cleanEnv(environ []string) []string {
	env := make([]string, 0, len(environ)+8)
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		switch {
		case name == "GIT_CONFIG_GLOBAL", name == "GIT_CONFIG_SYSTEM", name == "GIT_CONFIG_NOSYSTEM":
			env = append(env, entry)
		case strings.HasPrefix(name, "GIT_"), strings.HasPrefix(name, "LC_"), name == "LANG", name == "LANGUAGE":
		default:
			env = append(env, entry)
		}
	}
	return append(env,
		"LC_ALL=C",
		"GIT_OPTIONAL_LOCKS=0",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_NO_LAZY_FETCH=1",
		// A git too old for the line above starts a fetch for a missing object
		// of a partial clone; this list beats every protocol.*.allow setting,
		// so that the fetch reaches no transport.
		"GIT_ALLOW_PROTOCOL=none",
		"GIT_NO_REPLACE_OBJECTS=1",
		"GIT_GRAFT_FILE=/dev/null/none",
	)
}

// isolatedEnv is cleanEnv for a question that concerns no repository and no
// configuration file: a broken one must not fail it.
func isolatedEnv(environ []string) []string {
	env := make([]string, 0, len(environ)+5)
	for _, entry := range cleanEnv(environ) {
		name, _, _ := strings.Cut(entry, "=")
		switch name {
		case "HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM":
		default:
			env = append(env, entry)
		}
	}
	return append(env,
		"HOME=/dev/null/none", "XDG_CONFIG_HOME=/dev/null/none",
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_DIR=/dev/null/none",
	)
}

// quiet are the options of every question about objects and index. A setting
// on the command line beats every file.
func quiet() []string {
	return []string{
		"--no-pager", "--literal-pathspecs",
		"-c", "core.fsmonitor=false",
		"-c", "core.untrackedCache=false",
		"-c", "core.hooksPath=/dev/null",
		"-c", "core.sshCommand=false",
		"-c", "core.gitProxy=",
		"-c", "credential.helper=",
		"-c", "diff.external=",
		"-c", "log.showSignature=false",
		"-c", "gc.auto=0",
		"-c", "maintenance.auto=false",
	}
}

// bare are the settings of a question that attributes have no say in.
func bare() []string { return append(quiet(), "-c", "core.attributesFile=/dev/null") }

// ask puts one question about objects or index.
func (r *Repo) ask(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	return r.put(ctx, stdin, append(bare(), args...))
}

// askConverting puts one question whose answer depends on how git converts what
// stands in the work tree: there the user's own attributes count.
func (r *Repo) askConverting(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	return r.put(ctx, stdin, append(quiet(), args...))
}

func (r *Repo) put(ctx context.Context, stdin []byte, args []string) ([]byte, error) {
	return query{
		run: r.run, git: r.Git, dir: r.Root, env: r.env,
		args: args, stdin: stdin,
	}.output(ctx)
}
