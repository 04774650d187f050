package gitrepo

import (
	"bytes"
	"context"
	"io"
	"os"
	"slices"
	"syscall"
)

// Bounds of what is believed of HEAD's log.
const (
	// maxHeadLog is how many bytes of its end are read.
	maxHeadLog = 64 << 10
	// maxCameBy is how many commits are looked at, the last ones.
	maxCameBy = 32
)

// FromNow returns the repository for questions about what comes: its Held also
// counts commits that HEAD has been moved to since, and away from again. What
// says so is HEAD's log, which is a plain file; where git keeps none, or another
// kind, HEAD and the index have to do.
func (r *Repo) FromNow() *Repo {
	later := *r
	later.cameBy = true
	if info, err := os.Lstat(r.headLog()); err == nil {
		later.logged = info.Size()
	}
	return &later
}

func (r *Repo) headLog() string { return join(r.GitDir, "logs/HEAD") }

// heldOnTheWay marks the states as held that a commit has which HEAD was moved
// to. A commit that cannot be looked at holds nothing.
func (r *Repo) heldOnTheWay(ctx context.Context, states []State, held []bool) {
	for _, commit := range r.wayOfHead() {
		if !slices.Contains(held, false) {
			return
		}
		found, err := r.committed(ctx, commit, askablePaths(states))
		if err != nil {
			continue
		}
		for i, state := range states {
			held[i] = held[i] || askable(state.Path) && found.hold(state)
		}
	}
}

// wayOfHead returns the commits that HEAD was moved to, the last one first,
// each once.
func (r *Repo) wayOfHead() []string {
	var way []string
	added, _ := LogEnd(r.headLog(), r.logged, maxHeadLog)
	for _, line := range slices.Backward(bytes.Split(added, []byte("\n"))) {
		// old id, new id, who and when; a tab and why.
		_, rest, _ := bytes.Cut(line, []byte(" "))
		id, _, _ := bytes.Cut(rest, []byte(" "))
		if commit := string(id); r.IsID(commit) && !slices.Contains(way, commit) {
			if way = append(way, commit); len(way) == maxCameBy {
				break
			}
		}
	}
	return way
}

// LogEnd returns what one of git's logs holds from a byte on, or so many bytes of
// its end. Cut says that it is less than all of the log.
func LogEnd(name string, from, most int64) (end []byte, cut bool) {
	// Whatever somebody put in its place is not waited for.
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() <= from {
		return nil, false
	}
	from = max(from, info.Size()-most)
	end, err = io.ReadAll(io.NewSectionReader(f, from, info.Size()-from))
	if err != nil {
		return nil, false
	}
	return end, from > 0
}
