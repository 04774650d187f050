package proc

import (
	"bytes"
	"os"
	"slices"
	"strconv"
)

// Strays lists the processes that a run left behind when its keeper was
// killed: those that carry entry (NAME=value) in their environment, started
// after the clock tick given, were adopted by pid 1 or by a service manager
// below it, and are none of this program's ancestors. Processes whose
// environment cannot be read belong to somebody else. A keeper whose program is
// gone adopts too, and counts with what it has.
//
// Recorded are processes that the keeper had seen. They may have parents
// elsewhere, and may have shed the entry if they were adopted or are children
// of others that count. Of those that live the rest is doubtful: the record is
// the only one to say that they are of the run.
func Strays(recorded []ID, entry string, after uint64) (strays, doubtful []Process, err error) {
	all, err := readTable()
	if err != nil {
		return nil, nil, err
	}
	above := ancestors(all)
	counted := make(map[int]bool)
	count := func(s stat) {
		for !counted[s.pid] {
			counted[s.pid] = true
			strays = append(strays, s.process())
			if holder := all.of(s.parent); orphanedKeeper(all, holder) && !above[holder.pid] && holder.unchanged() {
				s = holder
			}
		}
	}
	for _, s := range all {
		if above[s.pid] || s.start <= after || !s.live() || !adopter(all, s.parent) {
			continue
		}
		if carries(s.pid, entry) && s.unchanged() {
			count(s)
		}
	}
	known := make(map[ID]bool)
	for _, id := range recorded {
		known[id] = true
	}
	var open []stat
	for _, s := range all {
		if known[s.process().ID] && s.live() && !above[s.pid] && !counted[s.pid] {
			open = append(open, s)
		}
	}
	for grown := true; grown; {
		grown = false
		open = slices.DeleteFunc(open, func(s stat) bool {
			ours := s.start >= after && (adopter(all, s.parent) || counted[s.parent] || carries(s.pid, entry)) && s.unchanged()
			if ours {
				count(s)
				grown = true
			}
			return ours
		})
	}
	for _, s := range open {
		if p := s.process(); p.Alive() {
			doubtful = append(doubtful, p)
		}
	}
	return strays, doubtful, nil
}

// Holding lists the processes that have a file open under that path, as far as
// this user may see it.
func Holding(path string) []Process {
	all, err := readTable()
	if err != nil {
		return nil
	}
	var holding []Process
	for _, s := range all {
		if s.pid != os.Getpid() && opened(s.pid, path) {
			holding = append(holding, s.process())
		}
	}
	return holding
}

// opened reads links only: to look at what they lead to could wait forever, on a
// dead network for one.
func opened(pid int, path string) bool {
	folder := "/proc/" + strconv.Itoa(pid) + "/fd/"
	entries, err := os.ReadDir(folder)
	if err != nil {
		return false
	}
	for _, entry := range entries {
		if link, err := os.Readlink(folder + entry.Name()); err == nil && link == path {
			return true
		}
	}
	return false
}

// ancestors returns this process and those above it.
func ancestors(all table) map[int]bool {
	above := make(map[int]bool)
	for pid := os.Getpid(); pid > 0 && !above[pid]; pid = all.of(pid).parent {
		above[pid] = true
	}
	return above
}

// adopter reports whether a process takes orphans: pid 1, or a service manager
// that pid 1 started, which is a child subreaper (systemd.exec(5)).
func adopter(all table, pid int) bool {
	if pid <= 1 {
		return true
	}
	s := all.of(pid)
	return s.parent == 1 && s.name == "systemd" || orphanedKeeper(all, s)
}

// KeeperName is the first argument of a process that holds a run for another one,
// and adopts its orphans.
const KeeperName = "cage-keeper"

// orphanedKeeper reports whether a process is a keeper whose program is gone. It
// would have ended its run by now if nobody had stopped it.
func orphanedKeeper(all table, s stat) bool {
	args, err := os.ReadFile("/proc/" + strconv.Itoa(s.pid) + "/cmdline")
	return err == nil && bytes.HasPrefix(args, []byte(KeeperName+"\x00")) && adopter(all, s.parent)
}

// carries reports whether a process started with an entry in its environment.
func carries(pid int, entry string) bool {
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	for pair := range bytes.SplitSeq(environ, []byte{0}) {
		if string(pair) == entry {
			return true
		}
	}
	return false
}
