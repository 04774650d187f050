//go:build linux || openbsd || dragonfly

package journal

import (
	"io/fs"
	"syscall"
	"time"
)

// changeTime returns when anything about a file last changed, its name and its
// links included.
func changeTime(info fs.FileInfo) time.Time {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return time.Time{}
	}
	return time.Unix(stat.Ctim.Unix())
}
