package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"cage/internal/doctor"
	"cage/report"
	"cage/session"

	"github.com/spf13/cobra"
)

// exitDegraded is the exit code of a doctor who found something.
const exitDegraded = 1

func newDoctor(code *int) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Show what earlier sessions left behind here",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			*code, err = examine(c.Context(), asJSON)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print what was found as JSON")
	return c
}

func examine(ctx context.Context, asJSON bool) (int, error) {
	place, err := session.Locate(ctx, os.Environ())
	if err != nil {
		return 0, err
	}
	found, err := doctor.Leftovers(place.Layout, place.Journal, place.Missed)
	if err != nil {
		return 0, err
	}
	if asJSON {
		err = printJSON(map[string]any{"root": place.Layout.Root, "leftovers": append([]doctor.Leftover{}, found...)})
	} else {
		printLeftovers(found)
	}
	code := 0
	for _, left := range found {
		if left.Kind != doctor.Running {
			code = exitDegraded
		}
	}
	return code, err
}

func printJSON(value any) error {
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

func printLeftovers(found []doctor.Leftover) {
	if len(found) == 0 {
		fmt.Println("nothing is left over from earlier sessions")
	}
	for _, left := range found {
		fmt.Printf("%-12s %s\n             %s\n", left.Kind, report.Quote(left.Place), left.Text)
		if left.Fix != "" {
			fmt.Printf("             fix: %s\n", left.Fix)
		}
	}
}
