package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const (
	// helpWidth is how wide a help text may be, in columns.
	helpWidth = 80
	// groupKey annotates a flag with the title it stands under.
	groupKey = "group"
	// endingKey annotates a command with the end of its help.
	endingKey = "ending"
)

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Explain a command",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return oneOf(subcommands(c.Root()))(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			named, _, err := c.Root().Find(args)
			if err != nil {
				return err
			}
			return named.Help()
		},
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return subcommands(c.Root()), cobra.ShellCompDirectiveNoFileComp
		},
	}
}

func subcommands(root *cobra.Command) []string {
	var names []string
	for _, c := range root.Commands() {
		names = append(names, c.Name())
	}
	return names
}

// printHelp is the help of every command.
func printHelp(c *cobra.Command, _ []string) {
	c.InitDefaultHelpFlag()
	fmt.Fprint(c.OutOrStdout(), helpOf(c)) // nobody to tell if it fails
}

func helpOf(c *cobra.Command) string {
	var b strings.Builder
	text := c.Long
	if text == "" {
		text = c.Short + "."
	}
	groups, use := flagGroups(c), c.UseLine()
	if len(groups) == 0 {
		use = strings.TrimSuffix(use, " [flags]") // cobra's, for --help
	}
	fmt.Fprintf(&b, "%s\n\nUsage:\n  %s\n", text, use)
	if !c.HasParent() {
		b.WriteString("  cage <subcommand>\n")
	}
	if c.Example != "" {
		b.WriteString("\nExamples:\n" + c.Example + "\n")
	}
	if c.HasSubCommands() {
		b.WriteString("\nSubcommands:\n")
		for _, sub := range c.Commands() {
			fmt.Fprintf(&b, "  %-12s %s\n", sub.Name(), sub.Short)
		}
	}
	for _, group := range groups {
		fmt.Fprintf(&b, "\n%s:\n%s", group.title, usagesOf(group.flags))
	}
	if ending := c.Annotations[endingKey]; ending != "" {
		b.WriteString("\n" + ending)
	}
	return b.String()
}

// usagesOf lists flags without the room that pflag leaves for short names,
// since there are none.
func usagesOf(flags *pflag.FlagSet) string {
	const room = "    "
	wrapped := flags.FlagUsagesWrapped(helpWidth + len(room))
	return strings.ReplaceAll("\n"+wrapped, "\n"+room, "\n")[1:]
}

// flagGroup is some flags of a command under one title.
type flagGroup struct {
	title string
	flags *pflag.FlagSet
}

// flagGroups returns the flags of a command by their titles, in the order in
// which they were registered. That there is a --help goes without saying.
func flagGroups(c *cobra.Command) []flagGroup {
	var groups []flagGroup
	byTitle := make(map[string]*pflag.FlagSet)
	c.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		if flag.Name == "help" {
			return
		}
		title := "Flags"
		if titles := flag.Annotations[groupKey]; len(titles) > 0 {
			title = titles[0]
		}
		if byTitle[title] == nil {
			set := pflag.NewFlagSet(title, pflag.ContinueOnError)
			set.SortFlags = false
			byTitle[title] = set
			groups = append(groups, flagGroup{title, set})
		}
		byTitle[title].AddFlag(flag)
	})
	return groups
}
