package scope

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"cage/internal/proc"
)

// events watches what the kernel counts of a group while it is there: of one
// that a service manager has removed nothing can be read any more.
type events struct {
	hierarchy
	group string
	// The counters of the group, held open; nil where this kernel or this group
	// does not count.
	memory, local, tasks, peak, current *os.File
	// lasting counts the kills of a group above too, and those of the group still
	// when that has been removed; nil where the group stays until it is removed
	// from here.
	lasting *os.File
	// limit is that of the group, nil for none.
	limit *uint64
	// outside is how often the limits of the groups above had run out before.
	outside map[string]uint64
	stop    *os.File
	stopped *os.File
	done    chan struct{}

	mu    sync.Mutex
	usage Usage
	// others is how many of what lasting counts were not killed in the group, and
	// ended says that the group was empty before it was last read.
	others uint64
	ended  bool
	// own is how often the group's own limit ran out.
	own uint64
	// before is who was in the group when that was last looked at. missed is how
	// many were killed who are not found among them yet, and since when.
	before []member
	resume time.Time // when they may be looked at again
	missed uint64
	since  time.Time
}

// member is a process of the group, and how many bytes it had.
type member struct {
	proc.Process
	resident uint64
}

const (
	// pace is how often it is looked without an event, and nearLimit and atLimit
	// how often where more than half and three quarters of the memory are taken:
	// the peak has no event, and who dies of the limit may have come to be since
	// the last look. Without a limit slowPace does.
	slowPace  = time.Second
	pace      = 100 * time.Millisecond
	nearLimit = 20 * time.Millisecond
	atLimit   = 4 * time.Millisecond
	// afterKill is how often it is looked who has gone after a kill, and
	// searchTime for how long.
	afterKill  = time.Millisecond
	searchTime = 2 * time.Second
	// restFactor bounds what it costs to look at every process of the group: as
	// many times as long as that took nobody does it again.
	restFactor = 4
)

// watch begins to watch a group. Where somebody else may remove it, lasting is a
// group above that stays; else it is empty.
func (h hierarchy) watch(group, lasting string) *events {
	open := func(file string) *os.File {
		f, _ := os.Open(filepath.Join(h.folder(group), file))
		return f
	}
	e := &events{
		hierarchy: h, group: group, done: make(chan struct{}), outside: make(map[string]uint64),
		memory: open("memory.events"), local: open("memory.events.local"), tasks: open("pids.events"), peak: open("memory.peak"),
		current: open("memory.current"), limit: h.number(group, "memory.max"),
	}
	if lasting != "" {
		e.lasting, _ = os.Open(filepath.Join(h.folder(lasting), "memory.events"))
		e.others = e.lastingKills()
	}
	for _, g := range above(group)[1:] {
		e.outside[g] = h.ranOut(g)
	}
	e.look()
	var err error
	if e.stopped, e.stop, err = os.Pipe(); err != nil {
		close(e.done) // the counters are then read at the end alone
		return e
	}
	go e.follow()
	return e
}

// ranOut is how often a group's own limit of memory ran out.
func (h hierarchy) ranOut(group string) uint64 {
	text, _ := h.read(group, "memory.events.local")
	return counter(text, "oom")
}

// counter reads one line of a file such as memory.events.
func counter(text, key string) uint64 {
	for line := range strings.Lines(text) {
		if name, number, _ := strings.Cut(strings.TrimSpace(line), " "); name == key {
			n, _ := strconv.ParseUint(number, 10, 64)
			return n
		}
	}
	return 0
}

// follow looks whenever the kernel has counted something, and now and then.
func (e *events) follow() {
	defer close(e.done)
	wait := []unix.PollFd{{Fd: int32(e.stopped.Fd()), Events: unix.POLLIN}, {Fd: -1, Events: unix.POLLPRI}}
	if e.memory != nil {
		wait[1].Fd = int32(e.memory.Fd())
	}
	for next := pace; ; {
		n, err := unix.Poll(wait, int(next.Milliseconds()))
		if err == nil && n > 0 && wait[0].Revents != 0 {
			return
		}
		there, searching := e.look()
		if !there {
			// What has gone would be told of as an event without end.
			wait[1].Fd = -1
		}
		if next = e.pace(); searching {
			next = afterKill
		}
	}
}

// pace says when to look again.
func (e *events) pace() time.Duration {
	taken, there := numberIn(e.current)
	switch {
	case e.limit == nil:
		return slowPace
	case !there || taken <= *e.limit/2:
		return pace
	case taken <= *e.limit/4*3:
		return nearLimit
	default:
		return atLimit
	}
}

// look reads every counter. It reports whether the group is there, and whether
// it is not yet clear who was killed.
func (e *events) look() (there, searching bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	there = e.lookAtKills()
	if text, ok := again(e.local); ok {
		e.own = counter(text, "oom")
	}
	if text, ok := again(e.tasks); ok {
		e.usage.Refused = counter(text, "max")
	}
	if peak, ok := numberIn(e.peak); ok {
		e.usage.Peak = &peak
	}
	if e.missed > 0 || e.pace() < pace {
		e.identify()
	}
	return there, e.missed > 0
}

// lookAtKills reads how many were killed, and how many that leaves outside.
func (e *events) lookAtKills() (there bool) {
	ended := e.vacant(e.group)
	for {
		all := e.lastingKills()
		text, there := again(e.memory)
		if !there {
			return false
		}
		if all != e.lastingKills() {
			continue // somebody was killed in between
		}
		kills := counter(text, "oom_kill")
		e.takeKills(kills)
		e.others, e.ended = all-min(all, kills), ended
		return true
	}
}

// lastingKills is how many were killed in the group that stays.
func (e *events) lastingKills() uint64 {
	text, _ := again(e.lasting)
	return counter(text, "oom_kill")
}

// again reads a control file from its beginning.
func again(f *os.File) (string, bool) {
	if f == nil {
		return "", false
	}
	const most = 4096
	buf := make([]byte, most)
	n, err := unix.Pread(int(f.Fd()), buf, 0)
	return string(buf[:max(n, 0)]), err == nil
}

// numberIn reads the one number of a control file.
func numberIn(f *os.File) (uint64, bool) {
	text, ok := again(f)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
	return n, err == nil
}

// takeKills notes how many were killed so far.
func (e *events) takeKills(kills uint64) {
	if kills > e.usage.Kills {
		if e.missed == 0 {
			e.resume = time.Time{} // whoever dies now is soon gone
		}
		e.missed += kills - e.usage.Kills
		e.since = time.Now()
		e.usage.Kills = kills
	}
}

// identify finds out who was killed. The kernel counts a kill, tells of it, and
// only then sends the signal, so that the process can be seen to die. Where that
// was missed it is the one that had most, and no little, and is gone.
func (e *events) identify() {
	began := time.Now()
	if began.Before(e.resume) {
		return
	}
	now := e.census()
	e.resume = time.Now().Add(restFactor * time.Since(began))
	if e.missed == 0 {
		e.before = now
		return
	}
	for _, id := range e.candidates(now) {
		// Asked for first: it may be gone the moment after.
		called := id.Name()
		if e.missed > 0 && id.Killed() {
			e.name(proc.Process{ID: id, Name: called})
		}
	}
	for _, m := range e.before {
		if e.missed == 0 || e.limit == nil || m.resident < *e.limit/4 || m.Alive() {
			break
		}
		e.name(m.Process)
	}
	if time.Since(e.since) > searchTime {
		e.missed = 0
	}
}

// candidates are the processes that may be dying: those that were there, those
// that are, and their children, since the group does not list what dies.
func (e *events) candidates(now []member) []proc.ID {
	var ids []proc.ID
	for _, m := range slices.Concat(e.before, now) {
		ids = append(ids, m.ID)
		ids = append(ids, e.children(m.PID)...)
	}
	return ids
}

// children lists the children of every thread of a process.
func (e *events) children(pid int) []proc.ID {
	// It fails for no pattern, and finds nothing where the process is gone.
	files, _ := filepath.Glob(filepath.Join(e.proc, strconv.Itoa(pid), "task/*/children"))
	var ids []proc.ID
	for _, file := range files {
		text, _ := os.ReadFile(file)
		for word := range strings.FieldsSeq(string(text)) {
			child, err := strconv.Atoi(word)
			if err != nil {
				continue
			}
			if id, err := proc.Identify(child); err == nil {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// name notes one of the killed, once.
func (e *events) name(p proc.Process) {
	if !slices.ContainsFunc(e.usage.Killed, func(known proc.Process) bool { return known.ID == p.ID }) {
		e.usage.Killed = append(e.usage.Killed, p)
		e.missed--
	}
}

// census lists who is in the group, the largest first.
func (e *events) census() []member {
	var list []member
	for _, id := range e.members(e.group) {
		m := member{Process: proc.Process{ID: id, Name: id.Name()}}
		// proc_pid_statm(5): the second number is of resident pages.
		text, _ := os.ReadFile(filepath.Join(e.proc, strconv.Itoa(id.PID), "statm"))
		if fields := strings.Fields(string(text)); len(fields) > 1 {
			pages, _ := strconv.ParseUint(fields[1], 10, 64)
			m.resident = pages * uint64(os.Getpagesize())
		}
		list = append(list, m)
	}
	slices.SortStableFunc(list, func(a, b member) int { return cmp.Compare(b.resident, a.resident) })
	return list
}

// close ends the watching and returns what was seen.
func (e *events) close() Usage {
	if e.stop != nil {
		e.stop.Close()
		<-e.done
		e.stopped.Close()
	}
	there, _ := e.look()
	missed := !there && e.takeMissed()
	for _, f := range []*os.File{e.memory, e.local, e.tasks, e.peak, e.current, e.lasting} {
		if f != nil {
			f.Close()
		}
	}
	e.attribute(missed)
	return e.usage
}

// takeMissed counts those that were killed between the last look at the group
// and its removal, and reports whether there were any. Whatever else was killed
// below the group that stays in those milliseconds counts with them.
func (e *events) takeMissed() bool {
	if e.ended {
		return false
	}
	all := e.lastingKills()
	if all <= e.others+e.usage.Kills {
		return false
	}
	e.usage.Kills = all - e.others
	return true
}

// attribute says whose limit it was: where the group's own is not known to have
// run out, it was that of the nearest group above whose own did. Where kills were
// missed the counter of the group may lag behind, and no other one means its own.
func (e *events) attribute(missed bool) {
	if e.usage.Kills == 0 {
		return
	}
	e.usage.Limit = Own
	if e.own > 0 || e.local == nil {
		return
	}
	for _, g := range above(e.group)[1:] {
		if e.ranOut(g) > e.outside[g] {
			e.usage.Limit, e.usage.Group = Above, g
			return
		}
	}
	if !missed {
		e.usage.Limit = Above // the machine's memory
	}
}
