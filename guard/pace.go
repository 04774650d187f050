package guard

import (
	"time"

	"cage/rules"
)

// The pauses between two restores of a contested path: the first, and the
// longest that doubling it comes to. A path is changed for that long at most
// before it is put back, and the fight costs no more than that often.
const (
	firstPause   = time.Second
	longestPause = 30 * time.Second
)

// pacing holds the paths that are put back only after a pause. It grows with
// every restore that comes soon after the last one; where the path has been left
// in peace for as long as the longest pause it begins anew.
type pacing map[rules.Path]*pace

type pace struct {
	pause time.Duration
	// until is the end of the pause, and waiting says that the path is to be
	// judged then.
	until   time.Time
	waiting bool
}

// add begins to pace a path that was put back a moment ago.
func (s pacing) add(p rules.Path, now time.Time) {
	if s[p] == nil {
		s[p] = &pace{pause: firstPause, until: now.Add(firstPause)}
	}
}

// holds reports whether a path has to wait, and has it judged when its pause is
// over.
func (s pacing) holds(p rules.Path, now time.Time) bool {
	state := s[p]
	if state == nil || !now.Before(state.until) {
		return false
	}
	state.waiting = true
	return true
}

// restored notes that a path was put back, and begins its next pause.
func (s pacing) restored(p rules.Path, now time.Time) {
	state := s[p]
	if state == nil {
		return
	}
	if now.Before(state.until.Add(longestPause)) {
		state.pause = min(2*state.pause, longestPause)
	} else {
		state.pause = firstPause
	}
	state.until = now.Add(state.pause)
}

// due returns the paths that have waited long enough.
func (s pacing) due(now time.Time) []rules.Path {
	var paths []rules.Path
	for p, state := range s {
		if state.waiting && !now.Before(state.until) {
			state.waiting = false
			paths = append(paths, p)
		}
	}
	return paths
}

// next returns when the next wait is over; zero where nothing waits.
func (s pacing) next() time.Time {
	var next time.Time
	for _, state := range s {
		if state.waiting {
			next = sooner(next, state.until)
		}
	}
	return next
}

// sooner returns the earlier of two times, of which zero is none.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
