//go:build manual

package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// manual writes the manual pages, which only a build with the tag of that name
// can: go run -tags manual ./cmd/cage manual <dir>. Their date is
// SOURCE_DATE_EPOCH, or else the day's.
func manual() []*cobra.Command {
	return []*cobra.Command{{
		Use:    "manual <dir>",
		Args:   cobra.ExactArgs(1),
		Hidden: true,
		RunE: func(c *cobra.Command, args []string) error {
			root := c.Root()
			root.RemoveCommand(c)
			root.DisableAutoGenTag = true
			markDown(root)
			return doc.GenManTree(root, &doc.GenManHeader{Title: "CAGE", Section: "1", Source: "cage " + versionText(), Manual: "cage"}, args[0])
		},
	}}
}

// markDown spells the texts as Markdown, by way of which the pages are made:
// angle brackets are no HTML, and what is indented stays as it is.
func markDown(c *cobra.Command) {
	literal := strings.NewReplacer("<", `\<`, ">", `\>`)
	if ending := c.Annotations[endingKey]; ending != "" {
		c.Long += "\n\n" + strings.Replace(ending, "\n", "\n\n", 1)
	}
	for _, text := range []*string{&c.Use, &c.Short, &c.Long} {
		var b strings.Builder
		for line := range strings.Lines(*text) {
			if strings.HasPrefix(line, "  ") {
				b.WriteString("  " + line)
			} else {
				b.WriteString(literal.Replace(line))
			}
		}
		*text = b.String()
	}
	for _, below := range c.Commands() {
		markDown(below)
	}
}
