package session

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"cage/internal/proc"
	"cage/journal"
	"cage/report"
)

// acquire takes the lock, and what an earlier session left. Where the lock is
// held though its session's cage is gone, what lives of that session is ended
// first: it may be the one.
func (r *recovery) acquire(folder string) error {
	j, left, err := journal.Acquire(folder)
	var active *journal.ActiveError
	if errors.As(err, &active) {
		if err := r.endHolders(folder); err != nil {
			return err
		}
		if active.Dead || r.ended > 0 {
			j, left, err = journal.Acquire(folder)
		}
	}
	if errors.As(err, &active) && active.Dead {
		return heldBySomebody(folder, active)
	}
	if err != nil {
		return journalRefusal(err)
	}
	r.session.journal, r.left = j, left
	return nil
}

// endHolders ends what is left of the session whose lock somebody holds, if its
// cage is dead. The journal, not the lock, says whether that lives: anybody can
// sign a lock. One that cannot be read may just be written by the session that
// holds the lock.
func (r *recovery) endHolders(folder string) error {
	left, err := journal.Peek(folder)
	if err != nil || left == nil || !left.SameBoot || !left.SamePIDs || left.Cage.Alive() {
		return nil
	}
	r.left = left
	if err := r.verify(); err != nil {
		return err
	}
	return r.endProcesses()
}

// heldBySomebody says who holds the lock of a session that is gone.
func heldBySomebody(folder string, active *journal.ActiveError) error {
	var holders []string
	for _, p := range proc.Holding(filepath.Join(folder, "lock")) {
		holders = append(holders, fmt.Sprintf("%d (%s)", p.PID, report.Quote(p.Name)))
	}
	if len(holders) == 0 {
		return journalRefusal(active)
	}
	return refusal(report.CodeActive, "end it, then start again",
		fmt.Errorf("%w: process %s", active, strings.Join(holders, ", ")))
}

// endProcesses ends what the session left running, unless it was to be left.
// Whatever refuses to end could undo a recovery, so that is refused.
func (r *recovery) endProcesses() error {
	if !r.left.SameBoot || !r.left.SamePIDs || r.left.Leaves {
		return nil
	}
	hit := make(map[proc.ID]bool)
	for round := 0; ; round++ {
		ids, err := r.living(hit)
		if err != nil {
			return err
		}
		if len(ids) == 0 {
			return nil
		}
		if round == strayRounds {
			return r.survived(ids)
		}
		if left := proc.EndAll(ids, r.session.Grace, strayPatience); len(left) > 0 {
			return r.survived(left)
		}
		r.ended += len(ids)
	}
}

// Bounds of ending strays: a process that was ended may leave children, which
// the next round finds.
const (
	strayRounds   = 100
	strayPatience = 10 * time.Second
)

// living lists what of the session still lives. A recorded process that is
// evidently not of it makes the journal implausible.
func (r *recovery) living(hit map[proc.ID]bool) ([]proc.ID, error) {
	strays, doubtful, err := proc.Strays(r.left.Processes, sessionVariable+"="+r.left.Session, r.left.Cage.Start)
	if err != nil {
		return nil, err
	}
	if len(doubtful) > 0 {
		p := doubtful[0]
		return nil, journalRefusal(&journal.CorruptError{
			Folder: r.session.journalFolder(),
			Reason: fmt.Sprintf("it names process %d (%s), which does not look like one of its session", p.PID, report.Quote(p.Name)),
		})
	}
	var ids []proc.ID
	for _, p := range strays {
		if !hit[p.ID] {
			hit[p.ID] = true
			ids = append(ids, p.ID)
		}
	}
	return ids, nil
}

func (r *recovery) survived(ids []proc.ID) error {
	var pids []string
	for _, id := range ids {
		pids = append(pids, fmt.Sprint(id.PID))
	}
	return refusal(report.CodeActive, "end these processes, then start again",
		errors.New("processes of an interrupted session cannot be ended: "+strings.Join(pids, ", ")))
}
