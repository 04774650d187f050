package spawn

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"cage/internal/proc"
)

const ownMechanism = Subreaper

// needsKeeper reports whether the terminal takes a keeper also where no foreign
// children do.
func (t Terminal) needsKeeper() bool { return t == NewPTY }

// stageName is what the hidden stage that becomes the command is called in the
// process list. Like the keeper's name it tells it from an ordinary start of the
// program.
const stageName = "cage-stage"

// Main must be what main does first: in a process that was started as a hidden
// stage of the program it does that stage's work and does not return.
func Main() Stage {
	switch {
	case len(os.Args) == 2 && os.Args[0] == proc.KeeperName:
		os.Exit(stageMain(keep(os.Args[1])))
	case len(os.Args) == 2 && os.Args[0] == stageName:
		os.Exit(stageMain(become(os.Args[1])))
	case isBackAs(os.Args):
		os.Exit(stageMain(comeBack(os.Args)))
	}
	return Stage{entered: true}
}

// Gaps names, a sentence each, what this system cannot hold of a lifetime.
func Gaps(Lifetime) []string { return proc.Limits() }

// Gaps names, a sentence each, what this system cannot hold of a terminal.
func (t Terminal) Gaps() []string { return nil }

// stageMain says how a stage failed and returns its exit code.
func stageMain(err error) (code int) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[0], err)
		return 2
	}
	return 0
}

// socketPair returns the two ends of the talk with a stage. Ours does not
// block a thread while it waits.
func socketPair() (ours, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("making a socket for a stage: %w", err)
	}
	if ours, err = stageSocket(pair[0]); err != nil {
		unix.Close(pair[1])
		return nil, nil, err
	}
	return ours, os.NewFile(uintptr(pair[1]), "stage"), nil
}

// stageSocket makes a file of our end of the talk with a stage.
func stageSocket(fd int) (*os.File, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("making a socket for a stage: %w", err)
	}
	return os.NewFile(uintptr(fd), "stage"), nil
}
