//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly

package watch

import (
	"errors"
	"runtime"
	"syscall"

	"github.com/fsnotify/fsnotify"
)

// noMoreWatches is never met: no watch is set.
const noMoreWatches = syscall.ENOSPC

func systemLimits() limits { return limits{pending: maxPending} }

// newInstance refuses: what fsnotify tells on other systems has not been
// proved to be enough.
func newInstance() (*fsnotify.Watcher, error) {
	return nil, errors.New("cage does not watch files on " + runtime.GOOS + "; rescans find changes")
}
