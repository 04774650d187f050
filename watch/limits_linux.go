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
	watches := setting("max_user_watches", 8192)
	instances := setting("max_user_instances", 128)
	return limits{
		watches: watches / 2,
		pending: maxPending,
		beyond: fmt.Sprintf("the scan enters more directories than half of fs.inotify.max_user_watches (now %d) allows to watch: "+
			"new names in the others wait for the tree walk; raise that setting to see them at once", watches),
		exhausted: fmt.Sprintf("the inotify watches of this user are used up: raise fs.inotify.max_user_watches (now %d, for all programs of the user together); "+
			"until then rescans find what is not watched", watches),
		refused: fmt.Sprintf("no inotify instance could be had: raise fs.inotify.max_user_instances (now %d, for all programs of the user together) or the limit of open files; "+
			"until then rescans find changes", instances),
	}
}

// setting reads one of the kernel's inotify limits (inotify(7)), with the
// kernel's old default where it cannot be read.
func setting(name string, standard int) int {
	text, err := os.ReadFile("/proc/sys/fs/inotify/" + name)
	if err != nil {
		return standard
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return standard
	}
	return n
}

func newInstance() (*fsnotify.Watcher, error) { return fsnotify.NewWatcher() }
