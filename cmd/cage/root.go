package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"cage/report"
	"cage/session"
	"cage/spawn"

	"github.com/spf13/cobra"
)

// execute runs one call of the program and returns its exit code.
func execute(stage spawn.Stage, args []string) int {
	var code int
	root := newRoot(stage, &code)
	root.SetArgs(args)
	if err := root.Execute(); err != nil {
		return complain(err, code)
	}
	return code
}

// The exit codes that do not come from a report.
const (
	exitUsage    = 2
	exitInternal = 1
)

// complain is the one table of errors to lines and exit codes. A code that a
// session came to stands: what went wrong afterwards must not hide it.
func complain(err error, code int) int {
	var refusal *session.Refusal
	var usage *usageError
	switch {
	case errors.As(err, &refusal):
		fmt.Fprint(os.Stderr, refusal.Line())
		return refusal.ExitCode
	case errors.As(err, &usage):
		fmt.Fprint(os.Stderr, report.Complaint(usage))
		return exitUsage
	}
	fmt.Fprint(os.Stderr, report.Complaint(err))
	if code != 0 {
		return code
	}
	return exitInternal
}

func newRoot(stage spawn.Stage, code *int) *cobra.Command {
	root := newRun(stage, code)
	root.Use = "cage [flags] -- <command> [args]"
	root.Long = `cage runs a command and guards the files it must not change: CI configuration,
.env files, git's hooks and config, .cage.yaml and what that adds. A change is
undone within milliseconds, a command that keeps fighting is ended with
everything it started, and a report says what happened.`
	root.Example = `  cage -- claude
  cage --allow-override .github/workflows/ci.yml -- codex
  cage --json --report-only -- make test`
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(flagError)
	root.SetHelpFunc(printHelp)
	root.SetHelpCommand(newHelp())
	root.CompletionOptions.DisableDefaultCmd = true
	run := newRun(stage, code)
	run.Use = "run [flags] -- <command> [args]"
	root.AddCommand(run, newWatch(code), newCheck(code), newSuggest(), newReview(), newDoctor(stage, code), newDemo(), newVersion(), newCompletion())
	root.AddCommand(manual()...)
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
		return usage("%s takes no arguments; a program of that name is run by cage -- %[1]s", c.Name())
	}
	return nil
}

// oneOf refuses anything but one of a few words.
func oneOf(words []string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != 1 || !slices.Contains(words, args[0]) {
			return usage("%s takes one of %s", c.Name(), strings.Join(words, ", "))
		}
		return nil
	}
}
