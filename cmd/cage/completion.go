package main

import (
	"io"

	"github.com/spf13/cobra"
)

// shells are those that completions can be made for.
func shells() []string { return []string{"bash", "zsh", "fish", "powershell"} }

func newCompletion() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print completions for a shell",
		Long: `Prints a script that lets a shell complete the commands and flags of cage.
For the shell you are in:

  bash        source <(cage completion bash)     (needs bash-completion)
  zsh         source <(cage completion zsh)
  fish        cage completion fish | source
  powershell  cage completion powershell | Out-String | Invoke-Expression`,
		Args:      oneOf(shells()),
		ValidArgs: shells(),
		RunE: func(c *cobra.Command, args []string) error {
			return printCompletion(c.Root(), args[0], c.OutOrStdout())
		},
	}
}

func printCompletion(root *cobra.Command, shell string, out io.Writer) error {
	const describe = true
	switch shell {
	case "bash":
		return root.GenBashCompletionV2(out, describe)
	case "zsh":
		return root.GenZshCompletion(out)
	case "fish":
		return root.GenFishCompletion(out, describe)
	default:
		return root.GenPowerShellCompletionWithDesc(out)
	}
}
