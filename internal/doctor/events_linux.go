package doctor

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"cage/report"
)

// watcher is a process that uses inotify.
type watcher struct {
	pid, instances, watches int
	name                    string
}

// onEventRoom says how much of inotify the user's programs take together, and
// which take most: the limits hold for all of them (inotify(7)).
func onEventRoom() []report.Finding {
	all := watchers()
	var instances, watches int
	for _, w := range all {
		instances += w.instances
		watches += w.watches
	}
	text := fmt.Sprintf("your programs hold %d inotify watches (of %s) and %d instances (of %s)",
		watches, limit("watches"), instances, limit("instances"))
	if most := all[:min(len(all), 3)]; len(most) > 0 {
		var names []string
		for _, w := range most {
			names = append(names, fmt.Sprintf("%s (%d) %d and %d", report.Quote(w.name), w.pid, w.watches, w.instances))
		}
		text += "; most: " + strings.Join(names, ", ")
	}
	return []report.Finding{note("watching", text)}
}

func limit(of string) string {
	if n := setting("/proc/sys/fs/inotify/max_user_" + of); n != "" {
		return n
	}
	return "an unknown number"
}

// watchers lists the user's other processes that use inotify, those with the
// most watches first. One that cannot be looked into is left out.
func watchers() []watcher {
	entries, _ := os.ReadDir("/proc") // empty where it fails
	var found []watcher
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() || !own("/proc/"+entry.Name()) {
			continue
		}
		if w := look(pid); w.instances > 0 {
			found = append(found, w)
		}
	}
	slices.SortFunc(found, func(a, b watcher) int {
		return cmp.Or(cmp.Compare(b.watches, a.watches), cmp.Compare(a.pid, b.pid))
	})
	return found
}

func look(pid int) watcher {
	folder := fmt.Sprintf("/proc/%d/", pid)
	w := watcher{pid: pid, name: setting(folder + "comm")}
	entries, _ := os.ReadDir(folder + "fd") // it ended, or may not be looked into
	for _, entry := range entries {
		if link, err := os.Readlink(folder + "fd/" + entry.Name()); err != nil || link != "anon_inode:inotify" {
			continue
		}
		w.instances++
		info, _ := os.ReadFile(folder + "fdinfo/" + entry.Name())
		w.watches += bytes.Count(info, []byte("inotify wd:"))
	}
	return w
}

// own reports whether a file belongs to this user.
func own(file string) bool {
	var stat unix.Stat_t
	return unix.Stat(file, &stat) == nil && int(stat.Uid) == os.Geteuid()
}
