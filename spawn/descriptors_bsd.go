//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package spawn

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// hideDescriptors marks every descriptor of the program but the standard
// streams close-on-exec: what its caller left open does not reach a command.
// No list of the open ones is to be had on all of these systems.
func hideDescriptors() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("keeping open files from the command: %w", err)
	}
	const most = 1 << 18 // above what these systems allow a process
	for fd := firstNamed; fd < most && uint64(fd) < uint64(limit.Cur); fd++ {
		unix.CloseOnExec(fd)
	}
	return nil
}
