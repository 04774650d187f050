//go:build !manual

package main

import "github.com/spf13/cobra"

// manual is empty: the manual pages are made by a build of their own.
func manual() []*cobra.Command { return nil }
