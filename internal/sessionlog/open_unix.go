//go:build unix

package sessionlog

import (
	"os"

	"golang.org/x/sys/unix"
)

// O_EXCL already refuses a link in the last place; O_NOFOLLOW says it again for a
// file system that would not. O_APPEND keeps every line whole, whoever else cuts
// or lengthens the file.
const openFlags = os.O_WRONLY | os.O_CREATE | os.O_EXCL | os.O_APPEND | unix.O_NOFOLLOW
