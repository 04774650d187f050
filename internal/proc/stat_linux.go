package proc

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// stat is what proc_pid_stat(5) tells of a process.
type stat struct {
	pid, parent int
	name        string
	state       byte
	threads     int
	start       uint64
}

// live reports whether the process still runs. A thread group whose leader has
// ended shows the leader's state, Z, for as long as other threads run on.
func (s stat) live() bool {
	switch s.state {
	case 'X', 'x':
		return false
	case 'Z':
		return s.threads > 1
	default:
		return true
	}
}

func (s stat) stopped() bool { return s.state == 'T' }

func (s stat) process() Process {
	return Process{ID: ID{PID: s.pid, Start: s.start}, Parent: s.parent, Name: s.name}
}

// maxStat is more than 52 numbers of 20 digits and the longest name need.
const maxStat = 2048

// readStat reads the entry of one process. It returns ErrGone where there is
// none.
func readStat(pid int) (stat, error) {
	name := "/proc/" + strconv.Itoa(pid) + "/stat"
	fd, err := retry(func() (int, error) { return unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return stat{}, statError(name, err)
	}
	defer unix.Close(fd)
	var buf [maxStat]byte
	n, err := retry(func() (int, error) { return unix.Read(fd, buf[:]) })
	if err != nil {
		return stat{}, statError(name, err)
	}
	s, err := parseStat(buf[:n])
	if err != nil {
		return stat{}, fmt.Errorf("reading %s: %w", name, err)
	}
	return s, nil
}

func statError(name string, err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) {
		return ErrGone
	}
	return fmt.Errorf("reading %s: %w", name, err)
}

func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

var errStat = errors.New("not the line of a process")

// parseStat parses the line of /proc/<pid>/stat. The name in it is raw: it may
// hold parentheses, spaces and newlines, so it ends at the last parenthesis of
// the line; everything after it is a state letter and numbers.
func parseStat(line []byte) (stat, error) {
	opening, closing := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if opening < 2 || closing < opening {
		return stat{}, errStat
	}
	fields := bytes.Fields(line[closing+1:])
	// proc_pid_stat(5) counts them from 1; these begin with its third.
	const state, parent, threads, start = 0, 1, 17, 19
	if len(fields) <= start || len(fields[state]) != 1 {
		return stat{}, errStat
	}
	s := stat{name: string(line[opening+1 : closing]), state: fields[state][0]}
	for _, number := range []struct {
		to   *int
		text []byte
	}{
		{&s.pid, bytes.TrimSpace(line[:opening])},
		{&s.parent, fields[parent]},
		{&s.threads, fields[threads]},
	} {
		n, err := strconv.Atoi(string(number.text))
		if err != nil {
			return stat{}, errStat
		}
		*number.to = n
	}
	ticks, err := strconv.ParseUint(string(fields[start]), 10, 64)
	if err != nil {
		return stat{}, errStat
	}
	s.start = ticks
	return s, nil
}

// table has the entry of every process that a listing of /proc shows, in the order
// of their numbers: processes that stay are listed in the same order every time.
type table []stat

func readTable() (table, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	all := make(table, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if s, err := readStat(pid); err == nil {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, byNumber)
	return all, nil
}

func byNumber(a, b stat) int { return cmp.Compare(a.pid, b.pid) }

// of returns the entry of a process, which is empty where the number is nobody's.
func (t table) of(pid int) stat {
	i, found := slices.BinarySearchFunc(t, stat{pid: pid}, byNumber)
	if !found {
		return stat{}
	}
	return t[i]
}

// descend returns the roots and what descends from them, parents before children.
// Whose number is in listed is left out with all that only it leads to, and those
// that are returned are noted there.
//
// The entries are read one after the other while processes come and go, so an
// entry may name as its parent a number that was given away in between. Hence a
// parent is followed only if it is still the same process after the whole
// table was read: then it was all the time.
func (t table) descend(roots []stat, listed map[int]bool) []stat {
	children := make(map[int][]stat)
	for _, s := range t {
		children[s.parent] = append(children[s.parent], s)
	}
	var tree []stat
	add := func(stats []stat) {
		for _, s := range stats {
			if !listed[s.pid] {
				listed[s.pid] = true
				tree = append(tree, s)
			}
		}
	}
	add(roots)
	for i := 0; i < len(tree); i++ {
		if below := children[tree[i].pid]; len(below) > 0 && tree[i].unchanged() {
			add(below)
		}
	}
	return tree
}

func (s stat) unchanged() bool {
	now, err := readStat(s.pid)
	return err == nil && now.start == s.start
}

// living returns those of them that live.
func living(stats []stat) []Process {
	processes := make([]Process, 0, len(stats))
	for _, s := range stats {
		if s.live() {
			processes = append(processes, s.process())
		}
	}
	return processes
}

// Newest returns the number of the process or thread that this machine, as far
// as this program can see it, made last. While it stays the same no process has
// been born. It returns 0 where that cannot be told (proc_loadavg(5)).
func Newest() int {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(text)
	if len(fields) == 0 {
		return 0
	}
	n, err := strconv.Atoi(string(fields[len(fields)-1]))
	if err != nil {
		return 0
	}
	return n
}
