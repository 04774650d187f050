package session

import (
	"time"

	"cage/guard"
	"cage/internal/sessionlog"
	"cage/report"
	"cage/rules"
)

// takeEvents logs what the guard did and counts its restores.
func (s *session) takeEvents() {
	for _, event := range s.guard.Take() {
		s.record(event)
		switch e := event.(type) {
		case guard.Restored:
			if !e.Directory {
				s.contests.restored(e)
			}
		case guard.Explained:
			s.contests.explain(e)
		case guard.Displaced:
			s.ledger.Note(e.Sealed, e.Baseline, time.Now())
		case guard.Rebased:
			s.amend(e.Entry)
		case guard.GroundMoved:
			s.halt(report.Halt{
				Scope: report.HaltGround, Rule: report.Ground,
				Name: report.NameOf(display(s.layout, rules.Path{Anchor: e.Anchors[0]})),
			})
		case guard.TooMany:
			s.halt(report.Halt{
				Scope: report.HaltBounds, Rule: e.Rule, Name: report.NameOf(display(s.layout, e.Path)),
				LiveRestores: e.Changed, Limit: guard.MaxChanged,
			})
		}
	}
}

// record writes an event into the log and rings for it: a bell is all that the
// cage says while the command runs, since an interactive program owns the
// terminal.
func (s *session) record(event guard.Event) {
	switch e := event.(type) {
	case guard.Restored:
		s.log.Restored(s.logged(e.Path, e.Kind, e.Verdict), report.Outcome(e.Outcome))
	case guard.Listed:
		change := s.logged(e.Path, e.Kind, e.Verdict)
		if e.Outcome == guard.DetectOnly {
			s.log.DetectOnly(change)
		} else {
			s.log.Kept(change, report.Outcome(e.Outcome), e.Verdict.Overridden, report.Note(e.Note))
		}
	case guard.Failed:
		s.log.RevertFailed(s.logged(e.Path, e.Kind, e.Verdict), e.Code)
	case guard.Overflow:
		s.log.Overflow()
	case guard.Degraded:
		s.log.Degraded(e.Reason)
	case guard.WatchError:
		s.log.WatchError(e.Err)
	default:
		return
	}
	s.bell.ring()
}

func (s *session) logged(p rules.Path, kind guard.Kind, v rules.Verdict) sessionlog.Change {
	return sessionlog.Change{Path: display(s.layout, p), Kind: report.Kind(kind), Rule: v.Rule}
}

// writeLedger writes down what was displaced, and reports whether that is known
// now. A session that cannot is as safe, and keeps as much; only cage review
// does not know of it.
func (s *session) writeLedger(complete bool) bool {
	err := s.ledger.Write(complete)
	if err != nil {
		s.log.WatchError(err)
	}
	return err == nil
}
