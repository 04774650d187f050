package session

import (
	"time"

	"cage/guard"
	"cage/internal/proc"
	"cage/internal/safefile"
	"cage/report"
	"cage/rules"
	"cage/snapshot"
	"cage/watch"
)

// report maps what happened into the document.
func (s *session) report(rows []guard.Row, status watch.Status) *report.Document {
	d := &report.Document{
		Command:        s.Command[0],
		Root:           s.layout.Root,
		RevertMode:     s.revertMode(),
		MaxFileBytes:   s.Limits.FileBytes,
		ProtectedFiles: s.manifest.Len(),
		ManifestZones:  s.plan.Zones(),
		CageConfig: report.CageConfig{
			Present: s.plan.ConfigPresent(), Entries: s.plan.ConfigEntries(), Committed: s.committed,
		},
		Overrides: s.plan.Overrides(),
		Changes:   s.changes(rows),
		Watch:     s.watchReport(status),
		Session:   report.NewSession(s.id, s.started, time.Now()),
		Lifetime:  s.lifetime(),
		Hygiene:   report.Hygiene{Environment: "inherit", Terminal: "foreground"},
		Resources: report.Resources{Mode: "off"},
		Limits: report.Limits(report.LimitFacts{
			Watch: !s.NoWatch, ReportOnly: s.ReportOnly, Skipped: displayAll(s.layout, s.skipped),
		}),
	}
	if s.trapped != nil {
		name := signalName(s.trapped)
		d.TrappedSignal = &name
	}
	s.commandResult(d)
	d.Status, d.ExitCode = report.Decide(report.Ending{
		Halted: s.halted != nil, Survivors: len(s.ended.Survivors), Changes: d.Changes,
		NotStarted: s.startErr != nil, Signal: int(s.exit.Signal), ExitCode: s.exit.Code,
	})
	s.log.SessionEnd(d.Status, d.ExitCode)
	return d
}

func (s *session) commandResult(d *report.Document) {
	switch {
	case s.startErr != nil:
		text := s.startErr.Error()
		d.RuntimeError = &text
	case s.exit.Signal != 0:
		name := signalName(s.exit.Signal)
		d.CommandSignal = &name
	default:
		d.CommandExitCode = &s.exit.Code
	}
}

func (s *session) watchReport(status watch.Status) report.Watch {
	path := s.log.Path()
	w := report.Watch{
		Enabled: !s.NoWatch, LiveRestores: s.guard.LiveRestores(), Contested: displayAll(s.layout, s.contested),
		ContestLimit: s.pathLimit, RuleContestLimit: s.ruleLimit, Halt: s.halted, SessionLog: &path,
		Overflows: status.Overflows, Degraded: len(status.Degraded), DegradedReasons: status.Degraded,
	}
	if !s.NoWatch {
		interval, walk := s.Interval.Milliseconds(), walkInterval(s.Interval).Milliseconds()
		w.IntervalMS, w.WalkIntervalMS = &interval, &walk
	}
	return w
}

func (s *session) lifetime() report.Lifetime {
	l := report.Lifetime{Mode: "tree", Mechanism: s.mechanism, Ended: s.ended.Terminated + s.ended.Killed, Gaps: proc.Limits()}
	for _, p := range s.ended.Survivors {
		l.Survivors = append(l.Survivors, report.Process{PID: p.PID, Name: p.Name})
	}
	return l
}

func (s *session) changes(rows []guard.Row) []report.Change {
	changes := make([]report.Change, 0, len(rows))
	for _, row := range rows {
		changes = append(changes, s.change(row))
	}
	return changes
}

func (s *session) change(row guard.Row) report.Change {
	c := report.Change{
		Name: report.NameOf(display(s.layout, row.Path)),
		Kind: report.Kind(row.Kind), Rule: row.Verdict.Rule, Source: row.Verdict.Source, Overridden: row.Verdict.Overridden,
		SHA256Before: digest(row.Before), SHA256After: digest(row.After),
		Outcome: report.Outcome(row.Outcome), Restores: row.Restores,
		Note: report.Note(row.Note),
	}
	if row.Code != "" {
		c.ErrorCode = &row.Code
	}
	if c.Note == "" && s.switched[row.Path] {
		c.Note = report.NoteBranchSwitch
	}
	for _, place := range row.Displaced {
		c.Displaced = append(c.Displaced, report.NameOf(place))
	}
	for _, attr := range row.Unset {
		c.AttributeErrors = append(c.AttributeErrors, attributeError(attr))
	}
	return c
}

func attributeError(attr safefile.UnsetAttr) report.AttributeError {
	name := attr.Name
	if name == "system.posix_acl_access" || name == "system.posix_acl_default" {
		name = "acl"
	}
	return report.AttributeError{Attribute: name, ErrorCode: safefile.ErrnoName(attr.Err)}
}

func digest(d snapshot.Digest) *string {
	if d == (snapshot.Digest{}) {
		return nil
	}
	text := d.String()
	return &text
}

// display spells a path for a report; an anchor itself is ".".
func display(layout rules.Layout, p rules.Path) string {
	if text := layout.Display(p); text != "" {
		return text
	}
	return "."
}

func displayAll(layout rules.Layout, paths []rules.Path) []string {
	var all []string
	for _, p := range paths {
		all = append(all, display(layout, p))
	}
	return all
}
