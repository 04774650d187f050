package session

import (
	"maps"
	"slices"
	"time"

	"cage/guard"
	"cage/internal/proc"
	"cage/internal/safefile"
	"cage/report"
	"cage/rules"
	"cage/snapshot"
	"cage/spawn"
	"cage/watch"
)

// report maps what happened into the document. The guard's loop has ended.
func (s *session) report() *report.Document {
	rows := s.guard.Rows()
	s.noteSkipped(s.guard.Denied())
	d := &report.Document{
		Command:        s.commandName(),
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
		Watch:     s.watchReport(s.guard.WatchStatus()),
		PushGuard: s.pushReport(),
		Session:   report.NewSession(s.id, s.started, time.Now()),
		Contests:  s.contestRows(rows),
		Lifetime:  s.lifetime(),
		Hygiene:   s.hygiene(),
		Resources: s.resources,
		Limits: report.Limits(report.LimitFacts{
			Watch: !s.NoWatch, ReportOnly: s.ReportOnly, Pushes: s.unguarded == nil, Unjudged: s.unjudged(), Skipped: displayAll(s.layout, s.skipped),
			Astray:    s.astrayPlaces(),
			NoCommand: s.watching != nil, Program: s.program() != nil,
		}),
	}
	d.Recovery, d.Reviewable = s.recovered, s.reviewable
	d.JournalKept = s.holdOriginals()
	if s.trapped != nil {
		name := signalName(s.trapped)
		d.TrappedSignal = &name
	}
	end := report.Ending{Halted: s.halted != nil, Alive: d.Lifetime.Unresolved(), Changes: d.Changes}
	s.commandResult(d, &end)
	d.Status, d.ExitCode = report.Decide(end)
	s.log.SessionEnd(d.Status, d.ExitCode)
	return d
}

// astrayPlaces spells the places that links lead elsewhere.
func (s *session) astrayPlaces() []string {
	var places []string
	for _, astray := range s.astray {
		places = append(places, display(s.layout, astray.Place))
	}
	return places
}

// commandResult tells how the command ended, if it did.
func (s *session) commandResult(d *report.Document, end *report.Ending) {
	switch {
	case s.startErr != nil:
		text := s.startErr.Error()
		d.RuntimeError, end.NotStarted = &text, true
	case s.exit == nil:
	case s.exit.Signal != 0:
		name := signalName(s.exit.Signal)
		d.CommandSignal, end.Signal = &name, int(s.exit.Signal)
	default:
		d.CommandExitCode, end.ExitCode = &s.exit.Code, s.exit.Code
	}
}

func (s *session) watchReport(status watch.Status) report.Watch {
	path := s.log.Path()
	w := report.Watch{
		Enabled: !s.NoWatch, LiveRestores: s.guard.LiveRestores(), Contested: displayAll(s.layout, s.contested),
		ContestLimit: s.contestLimits.Path, RuleContestLimit: s.contestLimits.Rule, Halt: s.halted, SessionLog: &path,
		Overflows: status.Overflows, Degraded: len(status.Degraded),
	}
	for _, lack := range status.Degraded {
		w.DegradedReasons = append(w.DegradedReasons, lack.String())
	}
	if !s.NoWatch {
		interval, walk := s.Interval.Milliseconds(), walkInterval(s.Interval).Milliseconds()
		w.IntervalMS, w.WalkIntervalMS = &interval, &walk
	}
	return w
}

// contestRows says what every rule had to take.
func (s *session) contestRows(rows []guard.Row) []report.Contest {
	paths := make(map[rules.Rule]int)
	for _, row := range rows {
		if row.Restores > 0 {
			paths[row.Verdict.Rule]++
		}
	}
	accounts := s.contests.Rules()
	contests := make([]report.Contest, 0, len(paths))
	for _, rule := range slices.Sorted(maps.Keys(paths)) {
		contests = append(contests, report.Contest{
			Rule: rule, Rounds: accounts[rule].Counted, Uncounted: accounts[rule].Uncounted, Paths: paths[rule],
		})
	}
	return contests
}

// hygiene says what of the caller's state reached the command, if there was one.
func (s *session) hygiene() report.Hygiene {
	if s.watching != nil {
		return report.Hygiene{Environment: "none", Terminal: "none"}
	}
	return report.Hygiene{
		Environment: s.Environment.Policy.String(), DroppedEnv: s.droppedEnv,
		Terminal: s.Terminal.String(), PrivateTmp: s.privateTmp.describe(), Gaps: s.Terminal.Gaps(),
	}
}

func (s *session) lifetime() report.Lifetime {
	if s.watching != nil {
		return s.watchLifetime()
	}
	l := report.Lifetime{
		Mode: s.Lifetime.String(), Mechanism: s.mechanism(), Ended: s.ended.Count,
		Proved: s.run == nil || s.ended.Proved, Gaps: spawn.Gaps(s.Lifetime),
		Survivors: listed(s.ended.Survivors),
	}
	if s.left != nil {
		// Some were about to end when they were listed.
		left := listed(slices.DeleteFunc(*s.left, func(p proc.Process) bool { return !p.Alive() }))
		l.Left = &left
	}
	return l
}

func listed(processes []proc.Process) report.List[report.Process] {
	var list report.List[report.Process]
	for _, p := range processes {
		list = append(list, report.Process{PID: p.PID, Name: p.Name})
	}
	return list
}

// mechanism spells how the run was held.
func (s *session) mechanism() string {
	if s.run == nil {
		return "none"
	}
	switch s.run.Mechanism() {
	case spawn.Subreaper:
		return "subreaper"
	case spawn.Keeper:
		return "keeper"
	default:
		return "listing"
	}
}

func (s *session) changes(rows []guard.Row) []report.Change {
	changes := make([]report.Change, 0, len(rows))
	for _, row := range rows {
		changes = append(changes, s.change(row))
	}
	return changes
}

// change is the row of a path, with what the contests say of it.
func (s *session) change(row guard.Row) report.Change {
	c := changeOf(s.layout, row)
	c.Rounds = s.contests.OfPath(row.Path).Opened
	if _, switched := s.contests.switched[row.Path]; c.Note == "" && switched {
		c.Note = report.NoteBranchSwitch
	}
	if row.Outcome == guard.RevertFailed {
		c.Original = s.preserve(row.Path)
	}
	return c
}

// preserve keeps a copy of what a path held at the start, because the session's
// own copy ends with it. It returns nil where there is none, and counts those
// that there is no room for: then the session's copy must not end.
func (s *session) preserve(p rules.Path) *report.Name {
	e, ok := s.manifest.Entry(p)
	if !ok || !e.Kept {
		return nil
	}
	content, ok := s.store.Get(e.State.Content)
	if !ok {
		return nil
	}
	place, err := s.kept.Preserve(content)
	if err != nil {
		s.log.WatchError(err)
		s.unpreserved++
		return nil
	}
	name := report.NameOf(place)
	return &name
}

// changeOf spells what a guard saw of a path.
func changeOf(layout rules.Layout, row guard.Row) report.Change {
	c := report.Change{
		Name: report.NameOf(display(layout, row.Path)),
		Kind: report.Kind(row.Kind), Rule: row.Verdict.Rule, Source: row.Verdict.Source, Overridden: row.Verdict.Overridden,
		SHA256Before: digest(row.Before), SHA256After: digest(row.After),
		Outcome: report.Outcome(row.Outcome), Restores: row.Restores, Lost: row.Lost, Note: report.Note(row.Note),
	}
	if row.Code != "" {
		c.ErrorCode = &row.Code
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
