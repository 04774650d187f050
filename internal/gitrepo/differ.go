package gitrepo

import (
	"context"
	"os"

	"cage/internal/program"
)

// DiffTrees returns the patch that turns the directory old into the directory
// new, both named relative to dir. No repository, attribute or configuration
// file has a say in it, and no other program is run. Content that is no text is
// named and not shown.
func DiffTrees(ctx context.Context, run program.Runner, git, dir, old, new string) ([]byte, error) {
	const differ = 1 // git-diff(1), --no-index
	args := append(bare(), "diff", "--no-index", "--patch", "--no-ext-diff", "--no-textconv", "--no-color",
		"--no-prefix", "--no-renames", "--", old, new)
	result, err := run(ctx, program.Call{Path: git, Args: args, Env: isolatedEnv(os.Environ()), Dir: dir})
	if err != nil {
		return nil, err
	}
	if result.ExitCode != 0 && result.ExitCode != differ {
		return nil, &Error{Command: "diff", ExitCode: result.ExitCode, Words: program.Words(result.Stderr)}
	}
	return result.Stdout, nil
}
