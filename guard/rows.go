package guard

import (
	"errors"
	"maps"
	"slices"
	"time"

	"cage/internal/gitrepo"
	"cage/internal/kept"
	"cage/internal/safefile"
	"cage/rules"
	"cage/snapshot"
)

// Note gives a reason beside an outcome.
type Note string

// The notes.
const (
	// GitBookkeeping: git's everyday rewriting of its config was kept.
	GitBookkeeping Note = "git_bookkeeping"
	// TargetOutside: the target of a protected link lies outside the root,
	// where nothing is restored.
	TargetOutside Note = "link_target_outside"
	// GuardedElsewhere: a session in another work tree of the repository guards
	// the path.
	GuardedElsewhere Note = "guarded_elsewhere"
)

// Ground is the rule of the row that says that another directory stands where
// an anchor stood.
const Ground rules.Rule = "ground"

// Row is one path on which a difference was seen, also if it is whole again.
type Row struct {
	Path    rules.Path
	Verdict rules.Verdict
	Kind    Kind
	Outcome Outcome
	// Code is the errno's name of a failure.
	Code string
	// Before and After are zero where there was nothing to digest.
	Before snapshot.Digest
	After  snapshot.Digest
	// Restores counts successful restores.
	Restores int
	// Displaced are the places of displaced versions; Lost counts those that
	// could not be kept.
	Displaced []string
	Lost      int
	Unset     []safefile.UnsetAttr
	Note      Note

	// seen counts the differences that made or met the row, without those that
	// turned out to be none.
	seen int
	// away says that what was displaced last is something else to git than the
	// baseline is.
	away bool
}

// back notes a successful restore. What softened the row before does so no
// more.
func (row *Row) back(outcome Outcome) {
	row.Outcome, row.Code, row.Note = outcome, "", ""
	row.Restores++
}

// row returns the row of a path, made when it is first needed.
func (g *Guard) row(p rules.Path, verdict rules.Verdict, kind Kind) *Row {
	row := g.rows[p]
	if row == nil {
		row = &Row{Path: p, Verdict: verdict}
		g.rows[p] = row
		g.countChanged(row)
	}
	row.Kind = kind
	row.seen++
	return row
}

// countChanged counts paths under revert rules, and says when they are too
// many to answer.
func (g *Guard) countChanged(row *Row) {
	if row.Verdict.Mode != rules.Revert {
		return
	}
	if g.changed++; g.changed == MaxChanged+1 && !g.exiting {
		g.emit(TooMany{Path: row.Path, Rule: row.Verdict.Rule, Changed: g.changed})
	}
}

// whole notes that a path stands as it should.
func (g *Guard) whole(p rules.Path) {
	g.settling.rest(p, time.Now())
	if row := g.rows[p]; row != nil && row.Outcome == RevertFailed {
		row.Outcome, row.Code = Reverted, ""
		if row.Kind == Added {
			row.Outcome = Removed
		}
	}
}

// list notes a change that is left as it is. One that is let pass softens no row
// of another.
func (g *Guard) list(o observation) {
	row := g.row(o.path, o.verdict, o.kind)
	row.Before, row.After = o.before, o.after
	if row.Outcome == o.outcome || row.Outcome != "" && o.outcome == Kept {
		return
	}
	row.Outcome, row.Note = o.outcome, o.note
	g.emit(Listed{Path: o.path, Verdict: o.verdict, Kind: o.kind, Outcome: row.Outcome, Note: row.Note})
}

// takeSealed writes into the rows what became of displaced versions.
func (g *Guard) takeSealed() {
	for _, sealed := range g.Keeper.Take() {
		row := g.rows[g.owners[sealed.Tag]]
		if sealed.Path == row.Path && g.explain(row, sealed) {
			continue
		}
		g.emit(Displaced{Sealed: sealed, Baseline: g.baselineOf(sealed.Path)})
		switch {
		case sealed.Place != "":
			row.addPlace(sealed.Place)
		case sealed.Err != nil:
			row.Lost++
		}
	}
}

// baselineOf returns what stood at a path at the baseline.
func (g *Guard) baselineOf(p rules.Path) snapshot.State {
	if e, known := g.Manifest.Entry(p); known {
		return e.State
	}
	info, _ := g.Manifest.Directory(p)
	return snapshot.State{Info: info}
}

func (row *Row) addPlace(place string) {
	if !slices.Contains(row.Displaced, place) {
		row.Displaced = append(row.Displaced, place)
	}
}

// explain says what a restore displaced. It reports whether the restore was
// taken back: it displaced half of the baseline, and whoever was writing went
// on to write the rest of it, so there was no change. What was seen as anything
// but a half stays one, or a writer could wipe out its own trace.
func (g *Guard) explain(row *Row, sealed kept.Sealed) (takenBack bool) {
	r, unexplained := g.unexplained[sealed.Tag]
	if !unexplained {
		row.After = sealed.Digest
		return false
	}
	delete(g.unexplained, sealed.Tag)
	if r.half && g.wasBaseline(row.Path, sealed, r.anew) {
		g.takeBack(row, r, sealed)
		return true
	}
	row.After = sealed.Digest
	// What counts is what stood there when it was put back. Only of half a file
	// it is what its writer made of it.
	identity := sealed.Came
	if r.half || sealed.Began {
		identity = sealed.Identity
	}
	g.emit(row.judged(sealed.Tag, g.gitState(row.Path, sealed.Info, identity), g.baselineState(row.Path)))
	return false
}

// judged returns the word for a displaced version. One that to git is the
// baseline was given another owner or mode, for which git has no word. Only
// after something else git may have been the one: it writes what it comes back
// to as whoever runs it, and that is part of the switch.
func (row *Row) judged(tag int, state, baseline *gitrepo.State) Explained {
	same := state != nil && baseline != nil && state.Same(*baseline)
	cameBack := same && row.away
	row.away = !same
	switch {
	case cameBack:
		return Explained{Tag: tag, Unchanged: true}
	case same:
		return Explained{Tag: tag}
	default:
		return Explained{Tag: tag, State: state}
	}
}

// takeBack counts a restore no more, and drops the copy of the baseline that
// it displaced.
func (g *Guard) takeBack(row *Row, r restored, sealed kept.Sealed) {
	row.seen--
	row.Restores--
	if r.live {
		g.live--
	}
	g.Keeper.Forget(sealed)
	g.emit(Explained{Tag: sealed.Tag, Unchanged: true})
}

// wasBaseline reports whether what was displaced is the baseline. Of a new file
// only the content counts.
func (g *Guard) wasBaseline(p rules.Path, sealed kept.Sealed, anew bool) bool {
	e, ok := g.Manifest.Entry(p)
	if !ok || e.State.Kind != safefile.Regular || sealed.Info.Kind != safefile.Regular || sealed.Digest != e.State.Digest {
		return false
	}
	return anew || sealed.Info.Perm == e.State.Perm &&
		sealed.Info.UID == e.State.UID && sealed.Info.GID == e.State.GID &&
		safefile.SameAttrs(sealed.Attrs, e.State.Attrs)
}

// gitState returns what git would record for a displaced version.
func (g *Guard) gitState(p rules.Path, info safefile.Info, identity []byte) *gitrepo.State {
	if !g.inGit(p) || len(identity) == 0 {
		return nil
	}
	return gitrepo.StateOf(g.Git.ObjectFormat, p.Rel, identity, gitMode(info))
}

// baselineState returns what git would record for an entry of the baseline.
func (g *Guard) baselineState(p rules.Path) *gitrepo.State {
	e, known := g.Manifest.Entry(p)
	if !known || !g.inGit(p) {
		return nil
	}
	content := []byte(e.State.Link)
	if e.State.Kind == safefile.Regular {
		content, _ = g.Store.Get(e.State.Content)
	}
	return gitrepo.StateOf(g.Git.ObjectFormat, p.Rel, gitrepo.Identify(g.Git.ObjectFormat, content), gitMode(e.State.Info))
}

// inGit reports whether git could record anything at p.
func (g *Guard) inGit(p rules.Path) bool { return g.Git != nil && p.Anchor == rules.Root }

// gitMode returns the mode that git records for a regular file or a link.
func gitMode(info safefile.Info) uint32 {
	const ownerExecute = 0o100
	switch {
	case info.Kind == safefile.Symlink:
		return gitrepo.ModeLink
	case info.Perm&ownerExecute != 0:
		return gitrepo.ModeExecutable
	default:
		return gitrepo.ModeFile
	}
}

// explainAbsence says that a restore displaced nothing.
func (g *Guard) explainAbsence(tag int, p rules.Path) {
	delete(g.unexplained, tag)
	g.rows[p].away = true
	explained := Explained{Tag: tag, Baseline: g.baselineState(p)}
	if g.inGit(p) {
		explained.State = &gitrepo.State{Path: p.Rel}
	}
	g.emit(explained)
}

// explainMount says that a restore took a mount away.
func (g *Guard) explainMount(tag int) {
	delete(g.unexplained, tag)
	g.emit(Explained{Tag: tag})
}

// Rows returns what was seen of every changed path, sorted by path. Paths whose
// restores all turned out to answer no change are left out. It is for after Run.
func (g *Guard) Rows() []Row {
	var rows []Row
	all := g.withBlind()
	for _, p := range slices.SortedFunc(maps.Keys(all), rules.Path.Compare) {
		if row := all[p]; row.seen > 0 {
			rows = append(rows, *row)
		}
	}
	return rows
}

// LiveRestores returns how many restores there were before the sweep. It is for
// after Run.
func (g *Guard) LiveRestores() int { return g.live }

func mergeUnset(known, more []safefile.UnsetAttr) []safefile.UnsetAttr {
	for _, attr := range more {
		same := func(a safefile.UnsetAttr) bool { return a.Name == attr.Name && errors.Is(a.Err, attr.Err) }
		if !slices.ContainsFunc(known, same) {
			known = append(known, attr)
		}
	}
	return known
}
