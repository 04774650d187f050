package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"cage/check"
	"cage/report"
	"cage/session"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// checkFlags are the flags of a check as they were given.
type checkFlags struct {
	staged    bool
	commits   string
	prePush   bool
	overrides paths
	json      bool
}

func newCheck(code *int) *cobra.Command {
	var f checkFlags
	c := &cobra.Command{
		Use:   "check [flags] [paths]",
		Short: "Judge commits by the rules, before or after they are made",
		Long: `Says which protected files a commit would change, or did change, and changes
nothing itself. Without flags it judges what is staged, as a pre-commit hook
does. Paths narrow what is told.`,
		Example: `  cage check
  cage check --range origin/main..HEAD
  cage check --allow-override .github/workflows/ci.yml`,
		Args:        cobra.ArbitraryArgs,
		Annotations: map[string]string{endingKey: checkExitCodes},
		RunE: func(c *cobra.Command, args []string) (err error) {
			*code, err = f.run(c.Context(), args)
			return err
		},
	}
	f.register(c)
	return c
}

// checkExitCodes ends the help of a check.
const checkExitCodes = `Exit codes:
  0            no protected path is changed, or changes are only listed
  3            a protected path is changed
  2            it could not be judged
`

func (f *checkFlags) register(c *cobra.Command) {
	c.Flags().SortFlags = false
	addSwitch := func(group string, to *bool, name, usage string) {
		c.Flags().BoolVar(to, name, false, usage)
		c.Flags().Lookup(name).Annotations = map[string][]string{groupKey: {group}}
	}
	add := func(group string, v pflag.Value, name, usage string) {
		c.Flags().VarPF(v, name, "", usage).Annotations = map[string][]string{groupKey: {group}}
	}
	const judged = "What is judged"
	addSwitch(judged, &f.staged, "staged", "what is staged, against HEAD; the default")
	add(judged, (*revisions)(&f.commits), "range", "every commit that B has and A has not, for A..B or A...B")
	addSwitch(judged, &f.prePush, "pre-push", "the commits that a push would send, by what git tells a pre-push hook on stdin")

	const through = "What is let through"
	add(through, &f.overrides, "allow-override", "only list changes to this path and below it; repeatable")

	const told = "What you are told"
	addSwitch(told, &f.json, "json", "print the findings on stdout as JSON")

	completeValues(c)
}

func (f *checkFlags) run(ctx context.Context, args []string) (int, error) {
	doc, err := f.judge(ctx, args)
	if err != nil {
		f.printFailure(err)
		return 0, err
	}
	return doc.ExitCode, f.print(doc)
}

func (f *checkFlags) judge(ctx context.Context, args []string) (*report.Check, error) {
	if err := atMostOne(f.staged, f.commits != "", f.prePush); err != nil {
		return nil, err
	}
	o, err := f.options(ctx, args)
	switch {
	case err != nil:
		return nil, err
	case f.commits != "":
		return check.Range(ctx, o, f.commits)
	case f.prePush:
		return check.PrePush(ctx, o, os.Stdin)
	default:
		return check.Staged(ctx, o)
	}
}

// atMostOne refuses two orders of what to judge.
func atMostOne(orders ...bool) error {
	given := 0
	for _, order := range orders {
		if order {
			given++
		}
	}
	if given > 1 {
		return usage("check takes one of --staged, --range and --pre-push; see cage check --help")
	}
	return nil
}

func (f *checkFlags) options(ctx context.Context, args []string) (check.Options, error) {
	o := check.Options{SearchPath: os.Getenv("PATH"), Paths: args, Overrides: f.overrides}
	var err error
	if o.Dir, err = os.Getwd(); err == nil && len(f.overrides) > 0 {
		o.InSession, err = session.Guarded(ctx, os.Environ())
	}
	return o, err
}

func (f *checkFlags) print(doc *report.Check) error {
	fmt.Fprint(os.Stderr, doc.Summary(colours()))
	if !f.json {
		return nil
	}
	return printDocument(doc)
}

// printFailure shows a refusal to programs. If that fails, complain's line for
// people still says it.
func (f *checkFlags) printFailure(err error) {
	var refusal *report.Refusal
	if f.json && errors.As(err, &refusal) {
		_ = printDocument(refusal)
	}
}

// printDocument puts a document on stdout.
func printDocument(document interface{ JSON() ([]byte, error) }) error {
	data, err := document.JSON()
	if err == nil {
		_, err = os.Stdout.Write(data)
	}
	if err != nil {
		return fmt.Errorf("print the document: %w", err)
	}
	return nil
}
