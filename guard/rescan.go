package guard

import (
	"context"
	"time"

	"cage/internal/safefile"
	"cage/rules"
	"cage/snapshot"
	"cage/watch"
)

// rescan is the state of the full comparison that runs beside the loop.
type rescan struct {
	done    chan findings
	running bool
	// again is what was asked for meanwhile.
	again    *request
	took     time.Duration
	walked   time.Time
	walkTook time.Duration
	// retry is how soon the next walk comes after one that did not see
	// everything; 0 after others.
	retry time.Duration
}

// request says what a rescan has to do beside comparing.
type request struct {
	// refresh sets watches again that were lost.
	refresh bool
	// walk looks for new names.
	walk bool
	// last says that nothing is watched any more after it.
	last bool
}

// findings are what a rescan saw: it judges nothing that can be put back.
type findings struct {
	dirty    []rules.Path
	observed []observation
	moved    []rules.Anchor
	// unseen are the places of which nothing was learnt.
	unseen []snapshot.Unseen
	// lacks are what the program could not be given back.
	lacks []watch.Lack
	// denied are directories that the walk could not enter and that are not
	// protected themselves: protected names in them are not seen.
	denied   []rules.Path
	took     time.Duration
	walkTook time.Duration
	walked   bool
}

// observation is a change to a path that is not put back.
type observation struct {
	path    rules.Path
	verdict rules.Verdict
	kind    Kind
	outcome Outcome
	note    Note
	before  snapshot.Digest
	after   snapshot.Digest
}

// walkShare bounds what walks cost: one takes at most a hundredth of the time.
// Where every directory is watched a walk only proves that nothing was missed,
// and has a quarter of that.
func (g *Guard) walkShare() time.Duration {
	const share = 100
	if g.Watcher != nil && len(g.watched.Degraded) == 0 {
		return 4 * share
	}
	return share
}

// planRescan sets the alarm for the next rescan, which comes no sooner than
// the last one took.
func (g *Guard) planRescan() {
	if g.Rescans {
		g.timers.rescan.Reset(max(g.Interval, g.rescan.took))
	}
}

// rescanInTime is what the alarm asks for. Where a rescan runs already the next
// one is planned when that has ended.
func (g *Guard) rescanInTime(ctx context.Context) {
	if !g.rescan.running {
		g.startRescan(ctx, request{})
	}
}

// startRescan compares everything, and walks for new names where that is due
// or asked for. One runs at a time.
func (g *Guard) startRescan(ctx context.Context, r request) {
	if g.rescan.running {
		if again := g.rescan.again; again != nil {
			r.refresh, r.walk = r.refresh || again.refresh, r.walk || again.walk
		}
		g.rescan.again = &r
		return
	}
	pace := max(g.WalkInterval, g.walkShare()*g.rescan.walkTook)
	if retry := g.rescan.retry; retry > 0 {
		pace = min(pace, retry)
	}
	r.walk = r.walk || time.Since(g.rescan.walked) >= pace
	g.rescan.running, g.rescan.again = true, nil
	g.beside.Go(func() { g.rescan.done <- g.compareAll(ctx, r) })
}

// retryAfter returns how soon a walk is repeated that did not see everything: at
// the next rescan, then more and more rarely.
func (g *Guard) retryAfter(found findings) time.Duration {
	if len(found.unseen) == 0 {
		return 0
	}
	return max(g.Interval, 2*g.rescan.retry)
}

func (g *Guard) takeFindings(ctx context.Context, found findings) {
	g.rescan.running, g.rescan.took = false, found.took
	if found.walked {
		g.rescan.walked, g.rescan.walkTook = time.Now(), found.walkTook
		g.rescan.retry = g.retryAfter(found)
	}
	g.restorer.Tidy()
	g.digest(found)
	g.noteWatch()
	if again := g.rescan.again; again != nil {
		g.startRescan(ctx, *again)
		return
	}
	g.planRescan()
}

// digest turns findings into dirty paths and rows. What could not be put back
// is tried again, also where it is whole by now.
func (g *Guard) digest(found findings) {
	for p, row := range g.rows {
		if row.Outcome == RevertFailed && row.Verdict.Rule != Ground {
			g.dirty.add(p)
		}
	}
	for _, p := range found.dirty {
		g.dirty.add(p)
	}
	for p := range g.unlooked {
		g.dirty.add(p)
	}
	clear(g.unlooked)
	for _, lack := range found.lacks {
		g.noteLack(lack)
	}
	for _, o := range found.observed {
		if !g.excuses(o.path) {
			g.list(o)
		}
	}
	g.noteGround(found.moved)
	for _, unseen := range found.unseen {
		g.noteLack(lookFailed(unseen.Err))
	}
	if found.walked {
		g.denied = found.denied
	}
}

// noteGround says once that the ground moved, and makes its rows.
func (g *Guard) noteGround(moved []rules.Anchor) {
	if len(moved) == 0 {
		return
	}
	for _, a := range moved {
		verdict := rules.Verdict{Rule: Ground, Source: rules.Builtin, Mode: rules.Revert}
		row := g.row(rules.Path{Anchor: a}, verdict, Modified)
		row.Verdict = verdict // it may have been a directory's before
		row.Outcome, row.Code = RevertFailed, "ESTALE"
	}
	if !g.moved {
		g.moved = true
		g.emit(GroundMoved{Anchors: moved})
	}
}

// compareAll looks at every path of the baseline and, if asked, at every
// directory. It changes nothing.
func (g *Guard) compareAll(ctx context.Context, r request) findings {
	if r.refresh && g.Watcher != nil {
		g.Watcher.Refresh() // before anything is read, so that nothing falls between
	}
	started := time.Now()
	var found findings
	found.lacks = g.upkeep()
	found.moved, found.unseen = g.Trees.Moved()
	look := snapshot.NewLooker(g.Trees, g.Store, g.FileBytes)
	defer look.Forget()
	g.findDirectories(&found)
	for _, p := range g.Manifest.Paths() {
		if ctx.Err() != nil {
			return found
		}
		e, _ := g.Manifest.Entry(p)
		if sight := look.Compare(e); !sight.Same {
			g.find(ctx, look, e, sight, &found)
		}
	}
	found.took = time.Since(started)
	if r.walk {
		g.findNew(&found, look, r.last)
		found.walked, found.walkTook = true, time.Since(started)-found.took
	}
	return found
}

// find sorts a difference: what can be put back is for the loop to judge.
func (g *Guard) find(ctx context.Context, look *snapshot.Looker, e *snapshot.Entry, sight snapshot.Sight, found *findings) {
	guards := g.guards(e)
	switch {
	case safefile.Exhausted(sight.Err), !guards && safefile.Unseen(sight.Err):
		found.unseen = append(found.unseen, snapshot.Unseen{Path: e.Path, Err: sight.Err})
		return
	case guards:
		found.dirty = append(found.dirty, e.Path)
		return
	}
	o := observation{
		path: e.Path, verdict: e.Verdict, kind: kindOf(sight), outcome: g.leave(e.Verdict),
		before: e.State.Digest, after: look.Digest(e, sight),
	}
	switch {
	case e.Verdict.Elsewhere:
		o.note = GuardedElsewhere
	case e.Path.Anchor == rules.Outside:
		o.note = TargetOutside
	case g.harmless(ctx, e, sight):
		o.outcome, o.note = Kept, GitBookkeeping
	}
	found.observed = append(found.observed, o)
}

// leave returns the outcome of a change that is not put back.
func (g *Guard) leave(v rules.Verdict) Outcome {
	switch {
	case v.Mode == rules.Report:
		return Kept
	case !g.Restores:
		return Reported
	default:
		return DetectOnly
	}
}

// findNew walks for names that the baseline does not have. A directory of a
// protected tree that cannot be looked into is one: it may hold anything. So is
// a directory in the place of a file.
func (g *Guard) findNew(found *findings, look *snapshot.Looker, last bool) {
	survey := g.walk(last)
	found.unseen = append(found.unseen, survey.Unseen...)
	for _, p := range survey.Denied {
		if g.Plan.Covers(p) {
			survey.Found = append(survey.Found, p)
		} else {
			found.denied = append(found.denied, p)
		}
	}
	for _, p := range survey.Covered {
		if g.Plan.WantsFile(p) {
			survey.Found = append(survey.Found, p)
		}
	}
	for _, p := range survey.Found {
		if _, known := g.Manifest.Entry(p); known || g.tends(p) {
			continue
		}
		classify := g.Plan.Classify
		link, err := g.Trees.IsLink(p)
		if err != nil {
			found.unseen = append(found.unseen, snapshot.Unseen{Path: p, Err: err})
		}
		if link {
			classify = g.Plan.ClassifyRecorded
		}
		v, covered := classify(p)
		switch {
		case !covered:
		case v.Mode == rules.Revert && g.Restores:
			found.dirty = append(found.dirty, p)
		default:
			o := observation{path: p, verdict: v, kind: Added, outcome: g.leave(v), after: look.DigestNew(p)}
			if v.Elsewhere {
				o.note = GuardedElsewhere
			}
			found.observed = append(found.observed, o)
		}
	}
}

// walk returns what the plan classifies and what stands in the trees now. The
// watcher's walk watches the directories on its way.
func (g *Guard) walk(last bool) snapshot.Survey {
	if g.Watcher != nil && !last {
		return g.Watcher.Scan()
	}
	return snapshot.Look(g.Trees, g.Plan, nil, nil)
}
