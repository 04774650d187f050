package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"cage/report"
	"cage/session"

	"github.com/spf13/cobra"
)

// The codes of a review that is refused.
const (
	codeReviewUnknown   = "GXT_CAGE_REVIEW_UNKNOWN"
	codeReviewUnusable  = "GXT_CAGE_REVIEW_UNUSABLE"
	codeReviewChanged   = "GXT_CAGE_REVIEW_CHANGED"
	codeReviewInSession = "GXT_CAGE_REVIEW_IN_SESSION"
)

type reviewFlags struct {
	diff    bool
	accept  file
	version count
	recover choice
}

func newReview() *cobra.Command {
	f := reviewFlags{recover: choice{allowed: []string{"restore", "keep"}}}
	c := &cobra.Command{
		Use:   "review [session] [flags]",
		Short: "Show what restores displaced, and take one back",
		Long: `What a restore displaces is kept. Without flags this lists the sessions that
displaced something or, given one, its versions. A session can be named by the
beginning of its id; --diff and --accept take the newest one of this root that
fits, if none is named.

A cage that was killed leaves a journal. The next session in that root puts the
protected files back by it, unless somebody has worked on them since. Then a
person decides: restore puts the files back and stores the later work, keep
leaves the work and stores what the session had found.`,
		Example: `  cage review
  cage review 3f0c --diff
  cage review --accept .github/workflows/ci.yml`,
		Args: cobra.ArbitraryArgs,
		Annotations: map[string]string{endingKey: `Exit codes:
  0   it was done, or there was nothing to do
  2   it was refused; a line says why
`},
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.sensible(args); err != nil {
				return err
			}
			return f.run(c.Context(), strings.Join(args, ""))
		},
	}
	a := addTo(c)
	const displaced, interrupted = "What restores displaced", "What an interrupted session left"
	a.addSwitch(displaced, &f.diff, "diff", "show what the newest version of every path would change")
	a.add(displaced, &f.accept, "accept", "put the newest version of this path back")
	a.add(displaced, &f.version, "version", "show or put back the version with this number").DefValue = "0"
	a.add(interrupted, &f.recover, "recover", "what to do with files that somebody worked on since")
	c.ValidArgsFunction = completeSessions
	// It fails only for a flag that is not there or came twice.
	_ = c.RegisterFlagCompletionFunc("accept", completeDisplaced)
	completeValues(c)
	return c
}

// sensible refuses flags that do not go together.
func (f *reviewFlags) sensible(args []string) error {
	switch {
	case given(f.diff, f.accept != "", f.recover.value != "") > 1:
		return usage("review takes one of --diff, --accept and --recover; see cage review --help")
	case f.version != 0 && !f.diff && f.accept == "":
		return usage("--version goes with --diff or --accept")
	case len(args) > 1 || len(args) > 0 && (args[0] == "" || f.recover.value != ""):
		return usage("review takes one session, and none with --recover; see cage review --help")
	}
	return nil
}

func (f *reviewFlags) run(ctx context.Context, named string) error {
	switch {
	case f.recover.value != "":
		return recoverSession(ctx, f.recover.value)
	case f.diff:
		return f.show(ctx, named)
	case f.accept != "":
		return look(ctx, func(r *reviewer) error { return r.accept(ctx, named, string(f.accept), int(f.version)) })
	case named != "":
		return look(ctx, func(r *reviewer) error { return r.describe(named) })
	default:
		return look(ctx, (*reviewer).list)
	}
}

// show shows a patch, once nothing else waits for children.
func (f *reviewFlags) show(ctx context.Context, named string) error {
	root, patch, err := f.patch(ctx, named)
	if err != nil {
		return err
	}
	return show(ctx, root, string(patch))
}

// patch returns the root and what versions would change in it. A copy of what is
// compared must not be left behind by Ctrl-C.
func (f *reviewFlags) patch(ctx context.Context, named string) (root string, patch []byte, err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err = look(ctx, func(r *reviewer) (err error) {
		root = r.Layout.Root
		patch, err = r.diff(ctx, named, int(f.version))
		return err
	})
	return root, patch, err
}

// graceForStrays is the time that processes of an interrupted session get
// between SIGTERM and SIGKILL.
const graceForStrays = 2 * time.Second

// recoverSession cleans up after an interrupted session as decided.
func recoverSession(ctx context.Context, decision string) error {
	o := session.ReviewOptions{
		Env: os.Environ(), Messages: os.Stderr, Decision: session.Restore,
		Grace: graceForStrays, FileBytes: defaultLimits().FileBytes, InSession: codeReviewInSession,
	}
	if decision == "keep" {
		o.Decision = session.Keep
	}
	recovery, err := session.Recover(ctx, o)
	if err != nil {
		return err
	}
	if recovery == nil {
		fmt.Fprintln(os.Stderr, "cage: no session was interrupted here")
	}
	if recovery == nil || recovery.Lost {
		return nil
	}
	fmt.Fprint(os.Stderr, report.RecoverySummary(*recovery, colours(os.Stderr)))
	return nil
}
