package spawn

import "golang.org/x/sys/unix"

const (
	getTermios = unix.TCGETS
	setTermios = unix.TCSETS
	// iutf8 makes the kernel erase whole characters.
	iutf8 = unix.IUTF8
)
