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
	// undressed: a tool unlinked the file or renamed another over it, and sets
	// mode, owner and attributes after the content. In a shell script that takes
	// a process of its own.
	undressed
	// appeared: an editor's swap file, an atomic writer's temporary name.
	appeared
	halves
)

// patience is how long each state may last from its first sight. Measured: at
// these times no run of git or cp was disturbed, without them a third was.
func (h half) patience() time.Duration {
	return [halves]time.Duration{
		prefix:    5 * time.Millisecond,
		absent:    20 * time.Millisecond,
		undressed: 20 * time.Millisecond,
		appeared:  250 * time.Millisecond,
	}[h]
}

// settling holds the paths that are in one of these states, or were a moment
// ago. Each state of a path is timed from its first sight until the path is put
// back, so that changing between them extends nothing. Time in which the path
// is whole pays back as much of what was spent: who has it whole for a moment
// only to begin anew gains that moment.
type settling map[rules.Path]*settle

type settle struct {
	first [halves]time.Time
	// crowded is the crowd at that time.
	crowded [halves]time.Duration
	due     time.Time
	// whole is since when the path is whole; zero while it is not.
	whole time.Time
}

// crowdPatience bounds how long a state may last where programs wait for a
// processor. Measured on a machine with many times more to do than it has
// processors: without it up to eight of a hundred writers that unlink and then
// create were disturbed, with it one.
const crowdPatience = 250 * time.Millisecond

// hold reports whether a path may stay in its state for now. Crowd is the time
// that programs have waited for a processor so far: what of it falls into the
// state does not count, since whoever writes may have been among them. An account
// that could be read before and not now takes no patience away.
func (s settling) hold(p rules.Path, h half, now time.Time, crowd time.Duration) bool {
	state := s[p]
	if state == nil {
		state = new(settle)
		s[p] = state
	}
	state.payBack(now, crowd)
	if state.first[h].IsZero() {
		state.first[h], state.crowded[h] = now, crowd
	}
	lenience := max(0, min(crowd-state.crowded[h], crowdPatience-h.patience()))
	state.due = state.first[h].Add(h.patience() + lenience)
	return now.Before(state.due)
}

// payBack takes the time that the path was whole off what its states have
// spent.
func (state *settle) payBack(now time.Time, crowd time.Duration) {
	if state.whole.IsZero() {
		return
	}
	for h := range halves {
		spent := min(h.patience(), state.whole.Sub(state.first[h])) - now.Sub(state.whole)
		switch {
		case state.first[h].IsZero():
		case spent > 0:
			state.first[h], state.crowded[h] = now.Add(-spent), crowd
		default:
			state.first[h] = time.Time{}
		}
	}
	state.whole = time.Time{}
}

// rest notes that a path is whole.
func (s settling) rest(p rules.Path, now time.Time) {
	if state := s[p]; state != nil && state.whole.IsZero() {
		state.whole = now
	}
}

// over forgets a path: it is put back, or somebody else's.
func (s settling) over(p rules.Path) { delete(s, p) }

// due returns the paths whose patience has run out, and forgets those that have
// been whole for longer than any patience.
func (s settling) due(now time.Time) []rules.Path {
	var paths []rules.Path
	for p, state := range s {
		switch {
		case state.whole.IsZero() && !now.Before(state.due):
			paths = append(paths, p)
		case !state.whole.IsZero() && now.Sub(state.whole) >= appeared.patience():
			delete(s, p)
		}
	}
	return paths
}

// next returns when the next patience runs out; zero where nothing settles.
func (s settling) next() time.Time {
	var next time.Time
	for _, state := range s {
		if state.whole.IsZero() {
			next = sooner(next, state.due)
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

// timers are the loop's alarms.
type timers struct {
	settle, rescan, prepare *time.Timer
	// preparing says that the last one is set.
	preparing bool
}

func newTimers() *timers {
	t := &timers{settle: time.NewTimer(time.Hour), rescan: time.NewTimer(time.Hour), prepare: time.NewTimer(time.Hour)}
	t.stop()
	return t
}

func (t *timers) stop() {
	t.settle.Stop()
	t.rescan.Stop()
	t.prepare.Stop()
}

// prepareAfter is when the next restore is prepared after one. Whoever wrote
// the file may have had to give this program its processor, and shall see first
// what became of it.
const prepareAfter = 2 * time.Millisecond

// prepareSoon sets the alarm for that once, if there is something to prepare.
func (t *timers) prepareSoon(wanted bool) {
	if wanted && !t.preparing {
		t.prepare.Reset(prepareAfter)
	}
	t.preparing = wanted
}

// wakeAt sets the settling alarm; zero turns it off.
func (t *timers) wakeAt(at time.Time) {
	if at.IsZero() {
		t.settle.Stop()
		return
	}
	t.settle.Reset(max(0, time.Until(at)))
}
