package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"

	"cage/internal/console"
	"cage/internal/demo"

	"github.com/spf13/cobra"
)

// readingTime is how long a person gets to read before each attempt.
const readingTime = 400 * time.Millisecond

func newDemo() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Show what the cage does, on a throw-away repository",
		Long: `Makes a throw-away repository in the temporary folder, lets two simulated rogue
agents loose in it under the cage, shows what they try and what becomes of it,
and removes everything again. Nothing of yours is touched.`,
		Annotations: map[string]string{endingKey: `Exit codes:
  0            everything was held
  1            something was not
`},
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			program, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			o := demo.Options{Program: program, Out: os.Stdout}
			if console.IsTerminal(os.Stdout) {
				o.Pause = readingTime
			}
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
			defer stop()
			return demo.Run(ctx, o)
		},
	}
}
