package spawn

import "golang.org/x/sys/unix"

// iutf8 makes the kernel erase whole characters.
const iutf8 = unix.IUTF8
