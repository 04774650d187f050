package main

import "github.com/spf13/cobra"

func newDemo(code *int) *cobra.Command {
	return &cobra.Command{Use: "demo", Short: "Show what the cage does on a throw-away repository", Args: cobra.NoArgs}
}
