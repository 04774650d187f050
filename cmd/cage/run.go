package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"cage/report"
	"cage/session"
	"cage/snapshot"
	"cage/spawn"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// runFlags are the session's flags as they were given.
type runFlags struct {
	json             bool
	reportFile       string
	reportOnly       bool
	noWatch          bool
	interval         positiveDuration
	grace            nonNegativeDuration
	contestLimit     optionalCount
	ruleContestLimit optionalCount
	overrides        []string
	maxFileBytes     count
	maxFiles         count
	maxTotalBytes    count
	oversize         choice
	keepDisplaced    choice
	bell             choice
}

func newRun(stage spawn.Stage, code *int) *cobra.Command {
	f := runFlags{
		interval: positiveDuration(time.Second), grace: nonNegativeDuration(2 * time.Second),
		maxFileBytes: 5 << 20, maxFiles: 5000, maxTotalBytes: 64 << 20,
		oversize:      choice{value: "refuse", allowed: []string{"refuse", "detect"}},
		keepDisplaced: choice{value: "on", allowed: []string{"on", "off"}},
		bell:          choice{value: "auto", allowed: []string{"auto", "always", "never"}},
	}
	c := &cobra.Command{
		Short: "Run a command under guard",
		Args:  cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) (err error) {
			*code, err = f.run(c.Context(), stage, args)
			return err
		},
	}
	c.SetUsageTemplate(c.UsageTemplate() + "\n" + exitHelp())
	f.register(c)
	return c
}

func (f *runFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.SortFlags = false
	flags.SetInterspersed(false)
	flags.BoolVar(&f.json, "json", false, "print the report on stdout when the command has ended")
	flags.StringVar(&f.reportFile, "report-file", "", "write the same JSON to a file")
	flags.BoolVar(&f.reportOnly, "report-only", false, "report changes and restore nothing")
	flags.BoolVar(&f.noWatch, "no-watch", false, "restore once, when the command has ended")
	flags.Var(&f.interval, "watch-interval", "time between two comparisons of everything")
	flags.Var((*milliseconds)(&f.interval), "watch-interval-ms", "the same in milliseconds")
	flags.Lookup("watch-interval-ms").DefValue = ""
	flags.Var(&f.contestLimit, "contest-limit", "rounds of one path before the halt, 0 never halts (default .cage.yaml, then 3)")
	flags.Var(&f.ruleContestLimit, "rule-contest-limit", "rounds of one rule before the halt, 0 counts none (default .cage.yaml, then 10)")
	flags.StringArrayVar(&f.overrides, "allow-override", nil, "only report changes to this path and below, for this run; repeatable")
	flags.Var(&f.maxFileBytes, "max-file-bytes", "largest protected file")
	flags.Var(&f.maxFiles, "max-files", "most protected files")
	flags.Var(&f.maxTotalBytes, "max-total-bytes", "most bytes in all protected files")
	flags.Var(&f.oversize, "oversize", "what becomes of larger files: refuse to start, or detect changes without undoing them")
	flags.Var(&f.grace, "grace", "time between SIGTERM and SIGKILL")
	flags.Var(&f.keepDisplaced, "keep-displaced", "keep what a restore displaced")
	flags.Var(&f.bell, "bell", "ring for every event; auto where stderr is a terminal")
}

// run runs the session and prints its report. The error is a usage error or a
// *session.Refusal.
func (f *runFlags) run(ctx context.Context, stage spawn.Stage, args []string) (int, error) {
	command, err := asked(args)
	if err != nil {
		return 0, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return 0, fmt.Errorf("find the current directory: %w", err)
	}
	doc, err := session.Run(ctx, f.options(stage, command, dir))
	if err != nil {
		f.printFailure(err)
		return 0, err
	}
	return doc.ExitCode, f.print(doc)
}

func (f *runFlags) options(stage spawn.Stage, command []string, dir string) session.Options {
	return session.Options{
		Stage: stage, Command: command, Dir: dir, Env: os.Environ(),
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
		ReportFile:    f.reportFile,
	}
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
	if !f.json && f.reportFile == "" {
		return nil
	}
	data, err := doc.JSON()
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return f.deliver(data)
}

// printFailure writes the document of a run that failed closed; the line for
// people is complain's.
func (f *runFlags) printFailure(err error) {
	var refusal *session.Refusal
	if !errors.As(err, &refusal) || !f.json && f.reportFile == "" {
		return
	}
	data, err := refusal.Failure.JSON()
	if err == nil {
		err = f.deliver(data)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cage: "+err.Error())
	}
}

func (f *runFlags) deliver(data []byte) error {
	const readable = 0o644
	if f.json {
		if _, err := os.Stdout.Write(data); err != nil {
			return fmt.Errorf("print the report: %w", err)
		}
	}
	if f.reportFile != "" {
		if err := renameio.WriteFile(f.reportFile, data, readable); err != nil {
			return fmt.Errorf("write the report file: %w", err)
		}
	}
	return nil
}
