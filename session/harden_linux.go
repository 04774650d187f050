package session

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// harden keeps other processes of the user away from the cage's memory and
// descriptors: /proc/<pid>/fd and /proc/<pid>/mem of an undumpable process are
// closed to them (prctl(2)). It also turns core dumps off, which the command
// inherits: they hold what a program has in memory, secrets included, and turn
// up where nobody expects them. The command cannot turn them on again, unless it
// is to have a limit of its own: that may be above.
func harden(ownCore bool) error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("close the cage's memory to other processes: %w", err)
	}
	var core unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &core); err != nil {
		return fmt.Errorf("turn core dumps off: %w", err)
	}
	core.Cur = 0
	if !ownCore {
		core.Max = 0
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &core); err != nil {
		return fmt.Errorf("turn core dumps off: %w", err)
	}
	return nil
}
