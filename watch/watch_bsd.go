//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package watch

import (
	"syscall"

	"github.com/fsnotify/fsnotify"
)

// noMoreWatches is what setting a watch fails with when this process has as
// many open files as the limit allows.
const noMoreWatches = syscall.EMFILE

// systemLimits keeps to the directories that targets lie in: kqueue(2) takes
// an open descriptor for every file of a watched directory.
func systemLimits() limits {
	return limits{
		watches:   0,
		pending:   maxPending,
		exhausted: Lack{Reason: "too many files are open to watch another directory", Setting: "raise the limit of open files (ulimit -n)"},
		refused:   Lack{Reason: "no kernel queue could be had", Setting: "raise the limit of open files (ulimit -n)"},
	}
}

func newInstance() (*fsnotify.Watcher, error) { return fsnotify.NewWatcher() }
