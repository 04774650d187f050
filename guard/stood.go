package guard

import (
	"time"

	"cage/internal/safefile"
	"cage/rules"
	"cage/snapshot"
)

// stood knows by which inode a path of the baseline last stood whole. A mode
// that is changed on that inode is nobody's half of a write.
type stood struct {
	// since is when the baseline was there.
	since time.Time
	last  map[rules.Path]standing
}

// standing is an inode, and a time at which it was there: one that was made
// later has only its number.
type standing struct {
	inode safefile.Inode
	at    time.Time
}

func newStood(since time.Time) stood {
	return stood{since: since, last: make(map[rules.Path]standing)}
}

// tick is more than the kernel's clock for files may be behind.
const tick = 10 * time.Millisecond

// whole notes what a path was seen whole by, whoever wrote it.
func (s stood) whole(p rules.Path, inode safefile.Inode, now time.Time) {
	s.last[p] = standing{inode, now.Add(-tick)}
}

// own notes what the guard put there, or keeps for the baseline.
func (s stood) own(p rules.Path, inode safefile.Inode, now time.Time) {
	s.last[p] = standing{inode, now}
}

// isOther reports whether what was seen undressed is another inode than the one
// that last stood whole. Numbers are reused at once; the time of birth is not.
func (s stood) isOther(e *snapshot.Entry, sight snapshot.Sight) bool {
	last, known := s.last[e.Path]
	if !known {
		last = standing{e.State.Inode, s.since}
	}
	return sight.State.Inode != last.inode || sight.Born.After(last.at)
}
