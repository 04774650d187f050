package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"cage/session"
	"cage/spawn"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// execute runs one call of the program and returns its exit code.
func execute(stage spawn.Stage, args []string) int {
	var code int
	root := newRoot(stage, &code)
	root.SetArgs(args)
	if err := root.Execute(); err != nil {
		return complain(err)
	}
	return code
}

// The exit codes that do not come from a report.
const (
	exitUsage    = 2
	exitInternal = 1
)

// complain is the one table of errors to lines and exit codes.
func complain(err error) int {
	var refusal *session.Refusal
	var usage *usageError
	switch {
	case errors.As(err, &refusal):
		fmt.Fprint(os.Stderr, refusal.Line())
		return refusal.ExitCode
	case errors.As(err, &usage):
		fmt.Fprintln(os.Stderr, "cage: "+usage.Error())
		return exitUsage
	default:
		fmt.Fprintln(os.Stderr, "cage: "+err.Error())
		return exitInternal
	}
}

// usageError is a call that cannot be understood: nothing runs.
type usageError struct{ error }

func usage(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

func newRoot(stage spawn.Stage, code *int) *cobra.Command {
	root := newRun(stage, code)
	root.Use = "cage [flags] -- <command> [args]"
	root.Short = "Guard the files a coding agent must not change"
	root.Long = `cage runs a command and guards the files it must not change: CI configuration,
.env files, git's hooks and config, .cage.yaml and what that adds. A change is
undone within milliseconds, a command that keeps fighting is ended with
everything it started, and a report says what happened.`
	root.Example = `  cage -- claude
  cage --allow-override .github/workflows/ci.yml -- codex
  cage --json --report-only -- make test`
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		if errors.Is(err, pflag.ErrHelp) {
			return err
		}
		return usage("%w; see cage --help", err)
	})
	run := newRun(stage, code)
	run.Use = "run [flags] -- <command> [args]"
	root.AddCommand(run, newDemo(), newVersion())
	return root
}

// asked turns positional arguments into a command line, or says what is
// missing.
func asked(args []string) ([]string, error) {
	if len(args) == 0 || args[0] == "" {
		return nil, usage("no command given: cage [flags] -- <command> [args]; see cage --help")
	}
	return args, nil
}

// noArguments refuses arguments in the words of this program.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("%s takes no arguments", c.CommandPath())
	}
	return nil
}

// exitHelp ends the help of the commands that run something.
func exitHelp() string {
	return strings.TrimPrefix(`
Exit codes:
  the command's own    nothing under a revert rule changed (128+n: killed by signal n)
  2                    the command did not run
  3                    something changed; all of it is back, or the report says what is not
  4                    the command was halted
`, "\n")
}
