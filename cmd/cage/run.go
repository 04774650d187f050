package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"cage/report"
	"cage/session"
	"cage/snapshot"
	"cage/spawn"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// runFlags are the session's flags as they were given.
type runFlags struct {
	json             bool
	reportFile       file
	reportOnly       bool
	noWatch          bool
	interval         interval
	grace            delay
	contestLimit     optionalCount
	ruleContestLimit optionalCount
	overrides        paths
	maxFileBytes     count
	maxFiles         count
	maxTotalBytes    count
	oversize         choice
	keepDisplaced    choice
	bell             choice
	env              choice
	passEnv          names
	denyEnv          names
	setEnv           settings
	passFD           descriptors
	rlimit           rlimits
}

// defaultLimits are the caps of what is protected.
func defaultLimits() snapshot.Limits {
	return snapshot.Limits{FileBytes: 5 << 20, Files: 5000, TotalBytes: 64 << 20}
}

func newRun(stage spawn.Stage, code *int) *cobra.Command {
	limits := defaultLimits()
	f := runFlags{
		interval: interval(time.Second), grace: delay(2 * time.Second),
		maxFileBytes: count(limits.FileBytes), maxFiles: count(limits.Files), maxTotalBytes: count(limits.TotalBytes),
		oversize:      choice{value: "refuse", allowed: []string{"refuse", "detect"}},
		keepDisplaced: choice{value: "on", allowed: []string{"on", "off"}},
		bell:          choice{value: "auto", allowed: []string{"auto", "always", "never"}},
		env:           choice{value: "inherit", allowed: []string{"inherit", "passthrough", "allowlist"}},
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
  3            a protected file was changed; the report says whether all is back
  2            the command did not run
  128+n        the command was killed by signal n
  its own      no protected file was changed
`

// register adds the flags, in the order and the groups in which help shows
// them.
func (f *runFlags) register(c *cobra.Command) {
	c.Flags().SortFlags = false
	c.Flags().SetInterspersed(false)
	add := func(group string, v pflag.Value, name, usage string) *pflag.Flag {
		flag := c.Flags().VarPF(v, name, "", usage)
		flag.Annotations = map[string][]string{groupKey: {group}}
		return flag
	}
	const protected = "What is protected"
	add(protected, &f.overrides, "allow-override", "only list changes to this path and below it, in this run; repeatable")
	add(protected, &f.maxFiles, "max-files", "most protected files")
	add(protected, &f.maxFileBytes, "max-file-bytes", "largest protected file").DefValue = "5 MiB"
	add(protected, &f.maxTotalBytes, "max-total-bytes", "all protected files together").DefValue = "64 MiB"
	add(protected, &f.oversize, "oversize", "what is larger: refuse to start, or detect changes without undoing them")

	const done = "What is done"
	addSwitch := func(group string, to *bool, name, usage string) {
		c.Flags().BoolVar(to, name, false, usage)
		c.Flags().Lookup(name).Annotations = map[string][]string{groupKey: {group}}
	}
	addSwitch(done, &f.reportOnly, "report-only", "list changes, undo nothing")
	addSwitch(done, &f.noWatch, "no-watch", "undo changes once, when the command has ended")
	add(done, &f.interval, "watch-interval", "time between two comparisons of everything")
	add(done, (*milliseconds)(&f.interval), "watch-interval-ms", "the same in milliseconds").DefValue = ""
	add(done, &f.keepDisplaced, "keep-displaced", "keep the files that a restore displaced")

	const fights = "When the command fights"
	add(fights, &f.contestLimit, "contest-limit", "rounds of one path before it is halted, 0 never halts (default .cage.yaml, then 3)")
	add(fights, &f.ruleContestLimit, "rule-contest-limit", "rounds of one rule before it is halted, 0 counts none (default .cage.yaml, then 10)")
	add(fights, &f.grace, "grace", "time between SIGTERM and SIGKILL")

	const reaches = "What reaches the command"
	add(reaches, &f.env, "env", "of your environment: all, all but secrets by name, or what --pass-env names")
	add(reaches, &f.passEnv, "pass-env", "let this variable through, with --env allowlist; repeatable")
	add(reaches, &f.denyEnv, "deny-env", "keep this variable back; repeatable")
	add(reaches, &f.setEnv, "set-env", "give the command this variable, whatever else holds; repeatable")
	add(reaches, &f.rlimit, "rlimit", "bound the command and each of its processes: nproc, cpu (seconds), fsize (bytes), nofile, core (bytes)")
	add(reaches, &f.passFD, "pass-fd", "let this open file through, at the same number; repeatable")

	const told = "What you are told"
	addSwitch(told, &f.json, "json", "print the report on stdout when the command has ended")
	add(told, &f.reportFile, "report-file", "write the same report into this file")
	add(told, &f.bell, "bell", "ring for every event; auto where stderr is a terminal")

	completeValues(c)
}

// completeValues lets shells complete what the flags of a command take: words
// for a choice, files where one is named, and nothing for a number.
func completeValues(c *cobra.Command) {
	c.Flags().VisitAll(func(flag *pflag.Flag) {
		words, directive := []string(nil), cobra.ShellCompDirectiveNoFileComp
		switch v := flag.Value.(type) {
		case *choice:
			words = v.allowed
		case *file, *paths:
			directive = cobra.ShellCompDirectiveDefault
		}
		// It fails only for a flag that is not there or came twice.
		_ = c.RegisterFlagCompletionFunc(flag.Name, cobra.FixedCompletions(words, directive))
	})
}

// run runs the session and prints its report. The error is a usage error or a
// *session.Refusal.
func (f *runFlags) run(ctx context.Context, stage spawn.Stage, args []string) (int, error) {
	command, err := asked(args)
	if err != nil {
		return 0, err
	}
	if len(f.passEnv) > 0 && f.env.value != spawn.AllowList.String() {
		return 0, usage("--pass-env goes with --env allowlist; see cage --help")
	}
	over := takeSignals()
	doc, err := session.Run(ctx, f.options(stage, command))
	if doc == nil {
		over(exitUsage)
		f.printFailure(err)
		return 0, err
	}
	over(doc.ExitCode)
	return doc.ExitCode, errors.Join(err, f.print(doc))
}

// takeSignals keeps signals from ending the program. Once the session is over,
// which takes them too, one ends the program with the session's exit code: it
// can only be meant for whoever keeps the report from being printed.
func takeSignals() (over func(code int)) {
	signals := make(chan os.Signal, 1)
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if !signal.Ignored(sig) {
			signal.Notify(signals, sig)
		}
	}
	return func(code int) {
		select {
		case <-signals: // was the session's
		default:
		}
		go func() {
			<-signals
			os.Exit(code)
		}()
	}
}

func (f *runFlags) options(stage spawn.Stage, command []string) session.Options {
	return session.Options{
		Stage: stage, Command: command, Env: os.Environ(), Environment: f.environment(), Descriptors: f.passFD, Rlimits: f.rlimit.Limits,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Messages: os.Stderr,
		Bell:       f.bell.value == "always" || f.bell.value == "auto" && isTerminal(os.Stderr),
		ReportOnly: f.reportOnly, NoWatch: f.noWatch,
		Interval: time.Duration(f.interval), Grace: time.Duration(f.grace),
		ContestLimit: f.contestLimit.value, RuleContestLimit: f.ruleContestLimit.value,
		Overrides: f.overrides,
		Limits: snapshot.Limits{
			FileBytes: int64(f.maxFileBytes), Files: int(f.maxFiles), TotalBytes: int64(f.maxTotalBytes),
			DetectOversize: f.oversize.value == "detect", KeepNothing: f.reportOnly,
		},
		DropDisplaced: f.keepDisplaced.value == "off",
		ReportFile:    string(f.reportFile),
	}
}

func (f *runFlags) environment() spawn.Environment {
	policy, _ := spawn.ParsePolicy(f.env.value) // the flag takes no other
	return spawn.Environment{Policy: policy, Allow: f.passEnv, Deny: f.denyEnv, Set: f.setEnv}
}

func isTerminal(file *os.File) bool { return term.IsTerminal(int(file.Fd())) }

// colours reports whether a person's terminal wants colours.
func colours() bool {
	return isTerminal(os.Stderr) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// print shows the report to people, and to programs where they asked for it.
func (f *runFlags) print(doc *report.Document) error {
	if doc.TrappedSignal != nil {
		fmt.Fprint(os.Stderr, report.TrappedLine(*doc.TrappedSignal))
	}
	fmt.Fprint(os.Stderr, report.Summary(*doc, colours()))
	return f.printJSON(doc)
}

// printFailure shows a refusal to programs. If that fails, complain's line for
// people still says it.
func (f *runFlags) printFailure(err error) {
	var refusal *session.Refusal
	if errors.As(err, &refusal) {
		_ = f.printJSON(refusal)
	}
}

// printJSON puts a document on stdout, where one was asked for.
func (f *runFlags) printJSON(document interface{ JSON() ([]byte, error) }) error {
	if !f.json {
		return nil
	}
	data, err := document.JSON()
	if err == nil {
		_, err = os.Stdout.Write(data)
	}
	if err != nil {
		return fmt.Errorf("print the report: %w", err)
	}
	return nil
}
