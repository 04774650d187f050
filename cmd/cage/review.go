package main

import (
	"fmt"
	"os"
	"time"

	"cage/report"
	"cage/session"

	"github.com/spf13/cobra"
)

func newReview() *cobra.Command {
	decision := choice{allowed: []string{"restore", "keep"}}
	c := &cobra.Command{
		Use:   "review --recover restore|keep",
		Short: "Decide what becomes of the files of an interrupted session",
		// The one flag it takes stands in the line above.
		DisableFlagsInUseLine: true,
		Long: `A cage that was killed leaves a journal. The next session in that root puts the
protected files back by it, unless somebody has worked on them since. Then a
person decides: restore puts the files back and stores the later work, keep
leaves the work and stores what the session had found. Both are stored in the
state folder, whatever is decided.`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if decision.value == "" {
				return usage("review takes --recover restore or --recover keep")
			}
			return review(c, decision.value)
		},
	}
	c.Flags().Var(&decision, "recover", "what to do with files that somebody worked on since")
	return c
}

// graceForStrays is the time that processes of an interrupted session get
// between SIGTERM and SIGKILL.
const graceForStrays = 2 * time.Second

func review(c *cobra.Command, decision string) error {
	o := session.ReviewOptions{
		Env: os.Environ(), Messages: os.Stderr, Decision: session.Restore,
		Grace: graceForStrays, FileBytes: defaultLimits().FileBytes,
	}
	if decision == "keep" {
		o.Decision = session.Keep
	}
	recovery, err := session.Recover(c.Context(), o)
	if err != nil {
		return err
	}
	if recovery == nil {
		fmt.Fprintln(os.Stderr, "cage: no session was interrupted here")
	}
	if recovery == nil || recovery.Lost {
		return nil
	}
	fmt.Fprint(os.Stderr, report.RecoverySummary(*recovery, colours()))
	return nil
}
