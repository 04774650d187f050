//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package spawn

import "golang.org/x/sys/unix"

// isOpen returns the system's answer for a descriptor that is not open.
func isOpen(fd int) error {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err
}

// Inherited reports whether the program got the descriptor from its caller: the
// program's own are close-on-exec, as Go opens them. It is to be asked before
// the first Start, which marks all of them.
func Inherited(fd int) bool {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil && flags&unix.FD_CLOEXEC == 0
}
