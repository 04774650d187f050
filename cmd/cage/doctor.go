package main

import (
	"context"
	"os"

	"cage/internal/doctor"
	"cage/spawn"

	"github.com/spf13/cobra"
)

// exitDegraded is the exit code of a doctor who found something.
const exitDegraded = 1

func newDoctor(stage spawn.Stage, code *int) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Say what a session here could enforce, and what is left over",
		Args:  noArguments,
		Annotations: map[string]string{endingKey: `Exit codes:
  0   a session would be fully protected, and nothing is left over
  1   something is degraded, or left over
  2   not even the root is known
`},
		RunE: func(c *cobra.Command, _ []string) (err error) {
			*code, err = diagnose(c.Context(), stage, asJSON)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print what was found as JSON")
	return c
}

func diagnose(ctx context.Context, stage spawn.Stage, asJSON bool) (int, error) {
	d, err := doctor.Diagnose(ctx, stage, os.Environ(), defaultLimits())
	if err != nil {
		printRefusal(asJSON, err)
		return 0, err
	}
	if asJSON {
		err = printDocument(d)
	} else {
		err = printText(d.Text(colours(os.Stdout)))
	}
	if err != nil || d.Whole() {
		return 0, err
	}
	return exitDegraded, nil
}
