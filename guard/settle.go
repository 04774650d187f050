package guard

import (
	"time"

	"cage/rules"
)

// half is a state that may be half of somebody's honest write.
type half uint8

const (
	// prefix: a tool truncated the file and is writing the same again.
	prefix half = iota
	// absent: git unlinks a file, then creates it exclusively; a file that was
	// put back in between makes it fail.
	absent
	// appeared: an editor's swap file, an atomic writer's temporary name.
	appeared
	halves
)

// patience is how long each state may last from its first sight. Measured: at
// these times no run of git or cp was disturbed, without them a third was.
func (h half) patience() time.Duration {
	return [halves]time.Duration{
		prefix:   5 * time.Millisecond,
		absent:   20 * time.Millisecond,
		appeared: 250 * time.Millisecond,
	}[h]
}

// settling holds the paths that are in one of these states. Each state of a
// path is timed from its first sight until the path is whole or put back, so
// that changing between them extends nothing.
type settling map[rules.Path]*settle

type settle struct {
	first [halves]time.Time
	due   time.Time
}

// hold reports whether a path may stay in its state for now.
func (s settling) hold(p rules.Path, h half, now time.Time) bool {
	state := s[p]
	if state == nil {
		state = new(settle)
		s[p] = state
	}
	if state.first[h].IsZero() {
		state.first[h] = now
	}
	state.due = state.first[h].Add(h.patience())
	return now.Before(state.due)
}

// over forgets a path: it is whole, put back, or somebody else's.
func (s settling) over(p rules.Path) { delete(s, p) }

// due returns the paths whose patience has run out.
func (s settling) due(now time.Time) []rules.Path {
	var paths []rules.Path
	for p, state := range s {
		if !now.Before(state.due) {
			paths = append(paths, p)
		}
	}
	return paths
}

// next returns when the next patience runs out; zero where nothing settles.
func (s settling) next() time.Time {
	var next time.Time
	for _, state := range s {
		if next.IsZero() || state.due.Before(next) {
			next = state.due
		}
	}
	return next
}

// queue holds dirty paths in the order they came, each once.
type queue struct {
	order   []rules.Path
	waiting map[rules.Path]bool
}

func newQueue() queue { return queue{waiting: make(map[rules.Path]bool)} }

func (q *queue) add(p rules.Path) {
	if !q.waiting[p] {
		q.waiting[p] = true
		q.order = append(q.order, p)
	}
}

func (q *queue) len() int { return len(q.order) }

func (q *queue) take() rules.Path {
	p := q.order[0]
	q.order = q.order[1:]
	delete(q.waiting, p)
	return p
}

// timers are the loop's two alarms.
type timers struct{ settle, rescan *time.Timer }

func newTimers() timers {
	t := timers{settle: time.NewTimer(time.Hour), rescan: time.NewTimer(time.Hour)}
	t.stop()
	return t
}

func (t timers) stop() {
	t.settle.Stop()
	t.rescan.Stop()
}

// wakeAt sets the settling alarm; zero turns it off.
func (t timers) wakeAt(at time.Time) {
	if at.IsZero() {
		t.settle.Stop()
		return
	}
	t.settle.Reset(max(0, time.Until(at)))
}
