package session

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// harden keeps other processes of the user away from the cage's memory and
// descriptors: /proc/<pid>/fd and /proc/<pid>/mem of an undumpable process are
// closed to them (prctl(2)).
func harden() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("close the cage's memory to other processes: %w", err)
	}
	return nil
}
