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
		exhausted: "a directory cannot be watched because too many files are open: raise the limit of open files (ulimit -n); until then rescans find what is not watched",
		refused:   "no kernel queue could be had: raise the limit of open files (ulimit -n); until then rescans find changes",
	}
}

func newInstance() (*fsnotify.Watcher, error) { return fsnotify.NewWatcher() }
