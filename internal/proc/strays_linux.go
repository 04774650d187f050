package proc

import (
	"bytes"
	"os"
	"strconv"
)

// Strays lists the processes that a run left behind when its keeper was
// killed: those that carry entry (NAME=value) in their environment, started
// after the clock tick given, were adopted by pid 1 or by a service manager
// below it, and are none of this program's ancestors. Processes whose
// environment cannot be read belong to somebody else.
func Strays(entry string, after uint64) ([]Process, error) {
	all, err := table()
	if err != nil {
		return nil, err
	}
	above := ancestors(all)
	var strays []Process
	for pid, s := range all {
		if above[pid] || s.start <= after || !s.live() || !adopter(all, s.parent) {
			continue
		}
		if carries(pid, entry) && s.unchanged() {
			strays = append(strays, s.process())
		}
	}
	return strays, nil
}

// Ancestors returns this process and those above it.
func Ancestors() (map[int]bool, error) {
	all, err := table()
	if err != nil {
		return nil, err
	}
	return ancestors(all), nil
}

func ancestors(all map[int]stat) map[int]bool {
	above := make(map[int]bool)
	for pid := os.Getpid(); pid > 0 && !above[pid]; pid = all[pid].parent {
		above[pid] = true
	}
	return above
}

// adopter reports whether a process takes orphans: pid 1, or a service manager
// that pid 1 started, which is a child subreaper (systemd.exec(5)).
func adopter(all map[int]stat, pid int) bool {
	if pid <= 1 {
		return true
	}
	s := all[pid]
	return s.parent == 1 && s.name == "systemd"
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
