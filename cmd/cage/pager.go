package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	"cage/internal/console"
	"cage/internal/physical"
	"cage/report"
)

// show prints a patch: as it is where a program reads it, spelled for people
// and through their pager where they do.
func show(ctx context.Context, root, patch string) error {
	if !console.IsTerminal(os.Stdout) {
		return printText(patch)
	}
	text := report.Patch(patch, colours(os.Stdout))
	if paged(ctx, root, text) {
		return nil
	}
	return printText(text)
}

// paged shows text through the pager that git would take; it reports false
// where there is none to be had.
func paged(ctx context.Context, root, text string) bool {
	pager := cmp.Or(os.Getenv("GIT_PAGER"), os.Getenv("PAGER"), "less")
	if pager == "cat" || text == "" {
		return false
	}
	// Ctrl-C is the pager's, which takes it; a signal that is ignored would be
	// ignored by it too.
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", pager)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "PATH="+pathOutside(root))
	if os.Getenv("LESS") == "" {
		cmd.Env = append(cmd.Env, "LESS=FRX") // as git has it
	}
	stdin, err := cmd.StdinPipe()
	if err != nil || cmd.Start() != nil {
		return false
	}
	_, _ = io.WriteString(stdin, text) // a pager may be left early
	stdin.Close()
	const notFound = 127 // sh(1)
	if cmd.Wait(); cmd.ProcessState.ExitCode() == notFound {
		fmt.Fprint(os.Stderr, report.Warning("there is no pager "+report.Quote(pager)))
		return false
	}
	return true
}

// pathOutside returns the search path without what lies in the root: a pager
// that was planted there is not run.
func pathOutside(root string) string {
	var entries []string
	for _, entry := range filepath.SplitList(os.Getenv("PATH")) {
		folder, err := filepath.EvalSymlinks(entry)
		if err == nil && filepath.IsAbs(entry) && !physical.Within(folder, root) {
			entries = append(entries, entry)
		}
	}
	return strings.Join(entries, string(filepath.ListSeparator))
}
