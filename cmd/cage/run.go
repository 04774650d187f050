package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"cage/report"
	"cage/session"
	"cage/spawn"

	"github.com/spf13/cobra"
)

// runFlags are the session's flags as they were given.
type runFlags struct {
	guardFlags
	resourceFlags
	noWatch  bool
	lifetime choice
	tty      choice
	private  bool
	env      choice
	passEnv  names
	denyEnv  names
	setEnv   settings
	passFD   descriptors
	rlimit   rlimits
}

func newRun(stage spawn.Stage, code *int) *cobra.Command {
	f := runFlags{
		guardFlags: newGuardFlags(), resourceFlags: newResourceFlags(),
		lifetime: choice{value: "tree", allowed: []string{"run", "tree", "leave"}},
		tty:      choice{value: "foreground", allowed: []string{"foreground", "inherit", "none", "pty"}},
		env:      choice{value: "inherit", allowed: []string{"inherit", "passthrough", "allowlist"}},
	}
	c := &cobra.Command{
		Short:       "Run a command under guard",
		Args:        cobra.ArbitraryArgs,
		Annotations: map[string]string{endingKey: exitCodes},
		RunE: func(c *cobra.Command, args []string) (err error) {
			*code, err = f.run(c.Context(), stage, args)
			return err
		},
	}
	f.register(c)
	return c
}

// exitCodes ends the help of the commands that run something.
const exitCodes = `Exit codes, decided from the top:
  4            the command was halted
  3            a protected file was changed, or a process of the run lives on;
               the report says whether all is back
  2            the command did not run
  128+n        the command was killed by signal n
  its own      no protected file was changed
`

// register adds the flags.
func (f *runFlags) register(c *cobra.Command) {
	c.Flags().SetInterspersed(false)
	a := addTo(c)
	f.addGuarding(a)
	a.addSwitch(groupDone, &f.noWatch, "no-watch", "undo changes once, when the command has ended")

	const fights = "When the command fights"
	a.add(fights, &f.contestLimit, "contest-limit", "rounds of one path before it is halted, 0 never halts (default .cage.yaml, then 3)")
	a.add(fights, &f.ruleContestLimit, "rule-contest-limit", "rounds of one rule before it is halted, 0 counts none (default .cage.yaml, then 10)")
	a.add(fights, &f.grace, "grace", "time between SIGTERM and SIGKILL")

	const outlives = "What outlives the command"
	a.add(outlives, &f.lifetime, "lifetime", "nothing, and nothing makes itself a daemon; nothing; or all that the command leaves when it ends by itself")

	const reaches = "What reaches the command"
	a.add(reaches, &f.tty, "tty", "your terminal: as yours, in its background, not at all; or a new one of its own")
	a.add(reaches, &f.env, "env", "of your environment: all, all but secrets by name, or what --pass-env names")
	a.add(reaches, &f.passEnv, "pass-env", "let this variable through, with --env allowlist; repeatable")
	a.add(reaches, &f.denyEnv, "deny-env", "keep this variable back; repeatable")
	a.add(reaches, &f.setEnv, "set-env", "give the command this variable, whatever else holds; repeatable")
	a.addSwitch(reaches, &f.private, "private-tmp", "a TMPDIR of its own, removed at the end")
	a.add(reaches, &f.rlimit, "rlimit", "bound the command and each of its processes: nproc, cpu (seconds), fsize (bytes), nofile, core (bytes)")
	a.add(reaches, &f.passFD, "pass-fd", "let this open file through, at the same number; repeatable")

	f.resourceFlags.addTo(a)
	f.addTelling(a, "print the report on stdout when the command has ended")
	completeValues(c)
}

// run runs the session and prints its report. Without a report the error is a
// usage error or a *session.Refusal.
func (f *runFlags) run(ctx context.Context, stage spawn.Stage, args []string) (int, error) {
	command, err := asked(args)
	if err != nil {
		return 0, err
	}
	if err := f.contradiction(); err != nil {
		return 0, err
	}
	options := f.options(stage, command)
	if options.Resources, err = f.resourceFlags.asked(options.Lifetime); err != nil {
		return 0, err
	}
	over := takeSignals()
	doc, err := session.Run(ctx, options)
	if doc == nil {
		over(report.ExitRefused)
		printRefusal(f.json, err)
		return 0, err
	}
	over(doc.ExitCode)
	printSummary(doc)
	if f.json {
		err = errors.Join(err, printDocument(doc))
	}
	return doc.ExitCode, err
}

// contradiction refuses flags that do not go together.
func (f *runFlags) contradiction() error {
	leaves := f.lifetime.value == spawn.LifetimeLeave.String()
	switch {
	case len(f.passEnv) > 0 && f.env.value != spawn.AllowList.String():
		return usage("--pass-env goes with --env allowlist; see cage --help")
	case leaves && f.tty.value == spawn.NewPTY.String():
		return usage("--lifetime leave does not go with --tty pty, whose terminal ends with the run; see cage --help")
	case leaves && f.private:
		return usage("--lifetime leave does not go with --private-tmp, which is removed at the end; see cage --help")
	case f.private && f.setEnv.has("TMPDIR"):
		return usage("--set-env TMPDIR does not go with --private-tmp, which sets it; see cage --help")
	}
	return nil
}

// printSummary shows the report to people.
func printSummary(doc *report.Document) {
	if doc.TrappedSignal != nil {
		fmt.Fprint(os.Stderr, report.TrappedLine(*doc.TrappedSignal))
	}
	fmt.Fprint(os.Stderr, report.Summary(*doc, colours(os.Stderr)))
}

func (f *runFlags) options(stage spawn.Stage, command []string) session.Options {
	lifetime, _ := spawn.ParseLifetime(f.lifetime.value) // the flag takes no other
	terminal, _ := spawn.ParseTerminal(f.tty.value)
	return session.Options{
		Guarding: f.guarding(), NoWatch: f.noWatch,
		Stage: stage, Command: command, Lifetime: lifetime, Terminal: terminal, PrivateTmp: f.private, Environment: f.environment(), Descriptors: f.passFD, Rlimits: f.rlimit.Limits,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
	}
}

func (f *runFlags) environment() spawn.Environment {
	policy, _ := spawn.ParsePolicy(f.env.value) // the flag takes no other
	return spawn.Environment{Policy: policy, Allow: f.passEnv, Deny: f.denyEnv, Set: f.setEnv}
}
