// Command cage guards the files of a repository while a command, usually a
// coding agent, runs: it puts back what the command changes and ends the
// command when it fights.
package main

import (
	"os"

	"cage/internal/pushguard"
	"cage/spawn"
)

func main() {
	pushguard.Main()
	stage := spawn.Main()
	os.Exit(execute(stage, os.Args[1:]))
}
