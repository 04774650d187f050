//go:build unix

package kept

import (
	"io/fs"
	"os"
	"syscall"
)

// noWaiting keeps an open from waiting for somebody at the other end.
const noWaiting = syscall.O_NONBLOCK | syscall.O_NOFOLLOW

// mine reports whether a file or folder belongs to this user, and nobody else
// may read or write it.
func mine(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid() && info.Mode().Perm()&0o077 == 0
}
