package spawn

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// hideDescriptors marks every descriptor of the program but the standard
// streams close-on-exec: what its caller left open does not reach a command.
func hideDescriptors() error {
	if unix.CloseRange(firstNamed, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return nil
	}
	// Before Linux 5.11, or forbidden by a seccomp profile (close_range(2)).
	opened, err := openDescriptors()
	for _, fd := range opened {
		unix.CloseOnExec(fd)
	}
	return err
}

// closeInherited closes what the process got from its caller but for the
// standard streams and what is kept: held open here, a pipe of the caller's
// would not end before the run does.
func closeInherited(kept []int) error {
	opened, err := openDescriptors()
	for _, fd := range opened {
		if !slices.Contains(kept, fd) && Inherited(fd) {
			unix.Close(fd)
		}
	}
	return err
}

// openDescriptors lists the descriptors of this process from the first named
// one up. Some may have been closed since.
func openDescriptors() ([]int, error) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil, fmt.Errorf("keeping open files from the command: %w", err)
	}
	var opened []int
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd >= firstNamed {
			opened = append(opened, fd)
		}
	}
	return opened, nil
}
