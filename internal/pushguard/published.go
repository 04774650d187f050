package pushguard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"cage/internal/gitrepo"
)

// Published is a push that went out with changes of protected files.
type Published struct {
	// Ref is the reference that stands for the other repository's branch, such
	// as refs/remotes/origin/main, in the bytes of its name.
	Ref      string
	Findings []Finding
}

// Bounds of what is read of git's logs.
const (
	// maxLog is how many bytes of the end of one are read.
	maxLog = 256 << 10
	// maxLogs is how many are looked at.
	maxLogs = 20_000
)

// Logged are pushes that git had noted before the command was started, as lines
// of its logs and how often each is there. They tell what happened earlier in the
// second of the start, which the logs do not. However a log is trimmed or written
// anew later, a line that is not among them came later.
type Logged map[logged]int

// logged is a line in the log of a reference.
type logged struct{ ref, line string }

// take reports whether a line is there, once for each time that it is.
func (l Logged) take(line logged) bool {
	if l[line] == 0 {
		return false
	}
	l[line]--
	return true
}

// Note returns the judge with what the logs hold by now of pushes since a time.
// It reads those logs that were written to since then, and looks at the times of
// the others. Where they cannot be read their times have to do.
func (j Judge) Note(since time.Time) Judge {
	moves, err := j.moves(since)
	if err != nil {
		return j
	}
	j.Logged = make(Logged)
	for _, move := range moves {
		if move.push {
			j.Logged[move.line]++
		}
	}
	return j
}

// Published returns the pushes since a time that git noted in the logs of the
// references that stand for other repositories' branches, and that sent changes
// of protected files, but those that were Logged. It sees what was pushed to a configured remote where git
// keeps such logs as files; who pushes to a URL, turns them off or rewrites them
// is not seen.
func (j Judge) Published(ctx context.Context, since time.Time) ([]Published, error) {
	moves, err := j.moves(since)
	if err != nil {
		return nil, fmt.Errorf("look for pushes in git's logs: %w", err)
	}
	j.Logged = maps.Clone(j.Logged)
	var all []Published
	for _, move := range moves {
		if !move.push || strings.Trim(move.after, "0") == "" || j.Logged.take(move.line) {
			continue
		}
		findings, err := j.outgoing(ctx, []string{move.after}, append(fetched(moves, move.at), move.before))
		if err != nil {
			return all, fmt.Errorf("judge what was pushed: %w", err)
		}
		if len(findings) > 0 {
			all = append(all, Published{Ref: move.line.ref, Findings: findings})
		}
	}
	return all, nil
}

// fetched returns what had been fetched at a time: the work of others.
func fetched(moves []move, at int64) []string {
	var ids []string
	for _, move := range moves {
		if !move.push && move.at <= at {
			ids = append(ids, move.after)
		}
	}
	return ids
}

// move is a line of a reference's log.
type move struct {
	line          logged
	before, after string
	at            int64 // in seconds
	// push says that a push moved it.
	push bool
}

// moves returns what moved those references since a time. The logs know seconds.
func (j Judge) moves(since time.Time) ([]move, error) {
	since = since.Truncate(time.Second)
	logs := filepath.Join(j.Repo.CommonDir, "logs")
	var moves []move
	left := maxLogs
	err := filepath.WalkDir(filepath.Join(logs, "refs/remotes"), func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // no log, or a branch that has just been deleted
		}
		if err != nil || entry.IsDir() {
			return err
		}
		if left--; left < 0 {
			return fs.SkipAll
		}
		if info, err := entry.Info(); err != nil || info.ModTime().Before(since) {
			return nil
		}
		ref, _ := strings.CutPrefix(path, logs+"/")
		for _, line := range tail(path) {
			if m, ok := j.parse(line); ok && m.at >= since.Unix() {
				m.line = logged{ref, string(line)}
				moves = append(moves, m)
			}
		}
		return nil
	})
	return moves, err
}

// tail returns the last lines of a log, whole ones.
func tail(path string) [][]byte {
	end, cut := gitrepo.LogEnd(path, 0, maxLog)
	lines := bytes.Split(end, []byte("\n"))
	if cut {
		lines = lines[1:]
	}
	return lines
}

// parse reads a line of a log: old id, new id, who, when in seconds and a zone;
// a tab and why.
func (j Judge) parse(line []byte) (m move, ok bool) {
	head, why, _ := bytes.Cut(line, []byte("\t"))
	fields := strings.Split(string(head), " ")
	if len(fields) < 5 || !j.Repo.IsID(fields[0]) || !j.Repo.IsID(fields[1]) {
		return move{}, false
	}
	at, err := strconv.ParseInt(fields[len(fields)-2], 10, 64)
	if err != nil {
		return move{}, false
	}
	return move{before: fields[0], after: fields[1], at: at, push: string(why) == "update by push"}, true
}
