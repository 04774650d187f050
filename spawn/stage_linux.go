package spawn

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const ownMechanism = Subreaper

// keeperName is what a keeper is called in the process list, and what tells
// the stage from an ordinary start of the program.
const keeperName = "cage-keeper"

// Main must be what main does first: in a process that was started as a hidden
// stage of the program it does that stage's work and does not return.
func Main() Stage {
	if len(os.Args) == 2 && os.Args[0] == keeperName {
		os.Exit(keeperMain(os.Args[1]))
	}
	return Stage{entered: true}
}

// keeperMain runs a keeper, which finds the socket to whoever started it at the
// descriptor called orders.
func keeperMain(orders string) (code int) {
	if err := keep(orders); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", keeperName, err)
		return 2
	}
	return 0
}

// socketPair returns the two ends of the talk with a keeper. Ours does not
// block a thread while it waits.
func socketPair() (ours, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("making a socket for the keeper: %w", err)
	}
	if err := unix.SetNonblock(pair[0], true); err != nil {
		unix.Close(pair[0])
		unix.Close(pair[1])
		return nil, nil, fmt.Errorf("making a socket for the keeper: %w", err)
	}
	return os.NewFile(uintptr(pair[0]), "keeper"), os.NewFile(uintptr(pair[1]), "keeper"), nil
}
