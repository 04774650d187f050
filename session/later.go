package session

import (
	"fmt"
	"time"

	"cage/guard"
	"cage/report"
	"cage/rules"

	"golang.org/x/sys/unix"
)

// recoveryWindow is how long after an interrupted session's last sign of life a
// difference counts as that session's doing. What was changed later is
// somebody's work, which no recovery writes over.
const recoveryWindow = 10 * time.Minute

// refuseLate refuses where somebody worked on a file since, and nobody decided.
func (r *recovery) refuseLate(rows []guard.Row) error {
	if late := r.worked(rows); r.decision == Ask && len(late) > 0 {
		return r.stale(late)
	}
	return nil
}

// worked returns the paths that somebody changed later than the session can
// have.
func (r *recovery) worked(rows []guard.Row) []rules.Path {
	now := time.Now()
	doubtful := now.Before(r.left.LastSign) || now.Before(r.left.Recovering)
	var late []rules.Path
	for _, row := range rows {
		if row.Outcome == guard.Kept {
			continue
		}
		if doubtful || r.later(row.Path) {
			late = append(late, row.Path)
		}
	}
	return late
}

// later reports whether a path, or a directory around it, changed after the
// session. After one that ended in order a file has no time to do so; that one is
// gone from a directory says less, since room was made there. The directories a recovery that was interrupted changed too, by what
// it put back beside the path.
func (r *recovery) later(p rules.Path) bool {
	limit := r.left.LastSign.Add(recoveryWindow)
	own, exists := changed(r.session.layout.Abs(p))
	if exists && (own.After(limit) || r.left.Ended && own.After(r.left.LastSign)) {
		return true
	}
	if again := r.left.Recovering.Add(recoveryWindow); again.After(limit) {
		limit = again
	}
	return r.around(p, exists).After(limit)
}

// around returns the latest time that a directory between a path and its anchor
// changed. If the path is gone, also that of the directory that it, or what it
// was in, is gone from, whichever that is.
func (r *recovery) around(p rules.Path, exists bool) (newest time.Time) {
	layout := r.session.layout
	for dir := p.Dir(); ; dir = dir.Dir() {
		if dir.Rel == "" && exists {
			return newest
		}
		at, stands := changed(layout.Abs(dir))
		if at.After(newest) {
			newest = at
		}
		if dir.Rel == "" {
			return newest
		}
		exists = exists || stands
	}
}

func changed(path string) (time.Time, bool) {
	var stat unix.Stat_t
	if err := unix.Lstat(path, &stat); err != nil {
		return time.Time{}, false
	}
	return time.Unix(stat.Ctim.Unix()), true
}

// stale refuses to write over somebody's later work.
func (r *recovery) stale(late []rules.Path) error {
	var names []string
	for _, p := range late {
		names = append(names, report.Quote(display(r.session.layout, p)))
	}
	return refusal(codeStale, "decide with: cage review --recover restore|keep",
		fmt.Errorf("an interrupted session left protected files changed, and somebody has worked on them since: %s%s",
			enumerate(names), report.EndedWith(r.ended)))
}
