package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"cage/internal/safefile"
	"cage/internal/suggest"
	"cage/report"
	"cage/session"

	"github.com/spf13/cobra"
)

// The codes of proposals that are refused.
const (
	codeSuggestExists    = "GXT_CAGE_SUGGEST_EXISTS"
	codeSuggestInSession = "GXT_CAGE_SUGGEST_IN_SESSION"
)

type suggestFlags struct{ write, force, asJSON bool }

func newSuggest() *cobra.Command {
	var f suggestFlags
	c := &cobra.Command{
		Use:   "suggest [flags]",
		Short: "Propose entries for .cage.yaml",
		Long: `Looks through the root for files that are worth protecting, and prints entries
for .cage.yaml with the reason for each. Nothing is enforced by that: a person
keeps what fits and puts it into .cage.yaml.`,
		Example: `  cage suggest
  cage suggest --write && cat .cage.yaml.suggested`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.force && !f.write {
				return usage("--force goes with --write")
			}
			err := propose(c.Context(), f)
			printRefusal(f.asJSON, err)
			return err
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.BoolVar(&f.write, "write", false, "write them to "+suggest.FileName+" in place of stdout")
	flags.BoolVar(&f.force, "force", false, "replace the "+suggest.FileName+" that is there")
	flags.BoolVar(&f.asJSON, "json", false, "print what is proposed as JSON")
	return c
}

func propose(ctx context.Context, f suggestFlags) error {
	layout, plan, err := session.Draft(ctx, os.Environ(), codeSuggestInSession)
	if err != nil {
		return err
	}
	root, err := safefile.OpenRoot(layout.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	proposal, err := suggest.Look(root, layout, plan)
	if err != nil {
		return err
	}
	document := suggestions(layout.Root, proposal)
	if f.write && len(proposal.Entries) > 0 {
		if err := suggest.Write(root, proposal.YAML(), f.force); err != nil {
			return unwritten(err)
		}
		document.Written = new(suggest.FileName)
	}
	fmt.Fprint(os.Stderr, document.Summary())
	switch {
	case f.asJSON:
		return printDocument(document)
	case !f.write:
		return printText(string(proposal.YAML()))
	}
	return nil
}

// unwritten is the error of a proposal that could not be written.
func unwritten(err error) error {
	err = fmt.Errorf("write %s: %w", suggest.FileName, err)
	var hint string
	switch {
	case errors.Is(err, suggest.ErrExists):
		hint = "look at it, then remove it or pass --force"
	case errors.Is(err, suggest.ErrOccupied):
		hint = "remove it"
	default:
		return err
	}
	return report.Refuse(codeSuggestExists, hint, err)
}

// suggestions is the document of a proposal.
func suggestions(root string, p suggest.Proposal) report.Suggestions {
	d := report.Suggestions{Root: root, AlreadyCovered: p.Covered}
	for _, e := range p.Entries {
		d.Suggestions = append(d.Suggestions, report.Suggestion{
			Kind: string(e.Kind), Value: e.Value, Mode: "revert", Category: string(e.Category), Reason: e.Reason,
		})
	}
	for _, rel := range p.Unspellable {
		d.LeftOut = append(d.LeftOut, report.LeftOut{Name: report.NameOf(rel), Why: report.Unspellable})
	}
	for _, rel := range p.Unread {
		d.LeftOut = append(d.LeftOut, report.LeftOut{Name: report.NameOf(rel), Why: report.Unreadable})
	}
	return d
}
