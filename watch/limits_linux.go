package watch

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/fsnotify/fsnotify"
)

// noMoreWatches is what setting a watch fails with when the user has as many
// as the limit allows (inotify_add_watch(2)).
const noMoreWatches = syscall.ENOSPC

func systemLimits() limits {
	watches := smallest(setting{"fs.inotify.max_user_watches", 8192}, setting{"user.max_inotify_watches", 0})
	instances := smallest(setting{"fs.inotify.max_user_instances", 128}, setting{"user.max_inotify_instances", 0})
	more := fmt.Sprintf("raise %s, now %d for all programs of the user together", watches.name, watches.value)
	return limits{
		watches: watches.value / 2,
		pending: maxPending,
		beyond: Lack{
			Reason:  "half of the user's inotify watches are not enough for every directory: new names in some wait for the tree walk",
			Setting: more,
		},
		exhausted: Lack{
			Reason:  "the inotify watches of the user are used up",
			Setting: more,
		},
		refused: Lack{
			Reason: "no inotify instance could be had",
			Setting: fmt.Sprintf("raise %s, now %d for all programs of the user together, or the limit of open files (ulimit -n)",
				instances.name, instances.value),
		},
	}
}

// setting is one of the kernel's limits, by its sysctl name.
type setting struct {
	name  string
	value int
}

// smallest returns the smaller of two limits as they are now. Those below fs
// hold for the whole machine and those below user for a user namespace and all
// in it (inotify(7), namespaces(7)); the kernel's old default stands for one
// that cannot be read, where there is one.
func smallest(machine, namespace setting) setting {
	machine.read()
	if namespace.read() && namespace.value < machine.value {
		return namespace
	}
	return machine
}

// read reports false, and leaves the value, where the kernel does not tell.
func (s *setting) read() bool {
	text, err := os.ReadFile("/proc/sys/" + strings.ReplaceAll(s.name, ".", "/"))
	if err != nil {
		return false
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return false
	}
	s.value = n
	return true
}

func newInstance() (*fsnotify.Watcher, error) { return fsnotify.NewWatcher() }
