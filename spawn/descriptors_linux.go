package spawn

import (
	"fmt"
	"math"
	"os"
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
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("keeping open files from the command: %w", err)
	}
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd >= firstNamed {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}
