package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"cage/check"
	"cage/internal/console"
	"cage/report"
	"cage/rules"
	"cage/session"

	"github.com/spf13/cobra"
)

// checkFlags are the flags of a check as they were given.
type checkFlags struct {
	staged    bool
	commits   string
	prePush   bool
	hook      choice
	install   bool
	overrides paths
	json      bool
	sarif     bool
	github    bool
}

func newCheck(code *int) *cobra.Command {
	f := checkFlags{hook: choice{allowed: []string{"claude", "codex"}}}
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

// rareGC is the growth of the heap, in percent, at which garbage is collected.
const rareGC = 1000

func (f *checkFlags) register(c *cobra.Command) {
	a := addTo(c)
	const judged = "What is judged"
	a.addSwitch(judged, &f.staged, "staged", "what is staged, against HEAD; the default")
	a.add(judged, (*revisions)(&f.commits), "range", "every commit that B has and A has not, for A..B or A...B")
	a.addSwitch(judged, &f.prePush, "pre-push", "the commits that a push would send, by what git tells a pre-push hook on stdin")
	a.add(judged, &f.hook, "hook", "what an agent's tool is about to do, by what the agent tells a hook on stdin; exits 2 to stop it")

	const asked = "Being asked"
	a.addSwitch(asked, &f.install, "install-hook", "install a pre-commit hook that runs this check, with --pre-push a pre-push hook; another hook is kept and runs first")

	const through = "What is let through"
	a.add(through, &f.overrides, "allow-override", "only list changes to this path, relative to the root, and below it; repeatable")

	a.addSwitch(groupTold, &f.json, "json", "print the findings on stdout as JSON")
	a.addSwitch(groupTold, &f.sarif, "sarif", "print them as SARIF 2.1.0")
	a.addSwitch(groupTold, &f.github, "github", "print them as annotations for GitHub Actions")

	completeValues(c)
}

func (f *checkFlags) run(ctx context.Context, args []string) (int, error) {
	// It is over before it would pay to collect garbage.
	debug.SetGCPercent(rareGC)
	if err := f.contradiction(); err != nil {
		return 0, err
	}
	if f.install {
		return 0, f.installHook(ctx, args)
	}
	if err := f.fed(); err != nil {
		return 0, err
	}
	o, err := f.options(args)
	if f.hook.value != "" {
		return f.answerAgent(ctx, o, err)
	}
	var doc *report.Check
	if err == nil {
		doc, err = f.judge(ctx, o)
	}
	if err != nil {
		printRefusal(f.json, err)
		return 0, err
	}
	return doc.ExitCode, f.print(doc)
}

// contradiction refuses two orders where one can be followed.
func (f *checkFlags) contradiction() error {
	if given(f.staged, f.commits != "", f.prePush, f.hook.value != "") > 1 {
		return usage("check takes one of --staged, --range, --pre-push and --hook; see cage check --help")
	}
	if given(f.json, f.sarif, f.github, f.hook.value != "") > 1 {
		return usage("check takes one of --json, --sarif, --github and --hook; see cage check --help")
	}
	return nil
}

// fed refuses to wait for what a person at a terminal would have to type.
func (f *checkFlags) fed() error {
	if !console.IsTerminal(os.Stdin) {
		return nil
	}
	switch {
	case f.prePush:
		return usage("check --pre-push reads what git tells a pre-push hook on standard input, which is a terminal; to look at what a push would send: cage check --range @{upstream}..HEAD")
	case f.hook.value != "":
		return usage("check --hook reads what an agent tells its hooks on standard input, which is a terminal; to look at the work tree: cage check")
	default:
		return nil
	}
}

func (f *checkFlags) judge(ctx context.Context, o check.Options) (*report.Check, error) {
	switch {
	case f.commits != "":
		return check.Range(ctx, o, f.commits)
	case f.prePush:
		return check.PrePush(ctx, o, os.Stdin)
	default:
		return check.Staged(ctx, o)
	}
}

// options are the same for every check. An error is a *report.Refusal.
func (f *checkFlags) options(args []string) (check.Options, error) {
	o := check.Options{
		SearchPath: os.Getenv("PATH"), Paths: args, Overrides: f.overrides,
		Guarded: func(layout rules.Layout) (bool, error) { return session.Guarded(layout, os.Environ()) },
	}
	var err error
	if o.Dir, err = os.Getwd(); err != nil {
		return o, check.NoDirectory(err)
	}
	return o, nil
}

// exitStop is what agents take for a no, and nothing else.
const exitStop = 2

// answerAgent judges what an agent is about to do. What agents read is a line on
// stderr.
func (f *checkFlags) answerAgent(ctx context.Context, o check.Options, err error) (int, error) {
	var call check.Call
	var doc *report.Check
	if err == nil {
		call, err = check.ReadCall(os.Stdin)
	}
	if err == nil {
		// An agent may stand anywhere; the project is where it was started.
		if project := os.Getenv("CLAUDE_PROJECT_DIR"); f.hook.value == "claude" && project != "" {
			o.Dir = project
		}
		doc, err = check.Hook(ctx, o, call)
	}
	var refusal *report.Refusal
	switch {
	case errors.As(err, &refusal):
		fmt.Fprint(os.Stderr, refusal.OneLine())
	case err != nil:
		return exitStop, err
	case doc.ExitCode == report.ExitClean:
		return 0, nil
	default:
		fmt.Fprint(os.Stderr, doc.Reason())
	}
	if call.Continued {
		return 0, nil // told once that turn already; a second no would never end
	}
	return exitStop, nil
}

func (f *checkFlags) print(doc *report.Check) error {
	switch {
	case f.github:
		// The annotations tell what the summary would tell.
		fmt.Fprintln(os.Stderr, "cage: "+doc.Line())
		_, err := os.Stdout.WriteString(doc.Annotations())
		return err
	case f.sarif:
		fmt.Fprint(os.Stderr, doc.Summary(colours(os.Stderr)))
		return printWith(doc.SARIF)
	case f.json:
		fmt.Fprint(os.Stderr, doc.Summary(colours(os.Stderr)))
		return printDocument(doc)
	default:
		fmt.Fprint(os.Stderr, doc.Summary(colours(os.Stderr)))
		return nil
	}
}
