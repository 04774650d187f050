package guard

import (
	"context"

	"cage/internal/safefile"
	"cage/restore"
	"cage/rules"
)

// sweeps bounds how often the last comparison is repeated because something
// was still found changed.
const sweeps = 5

// Sweep compares everything one last time, when nothing of the run is left to
// change it, and restores what is left. With it the session is over: paths
// that were left alone are put back too, and nothing settles any more.
func (g *Guard) Sweep(ctx context.Context) {
	g.do(func() { g.sweep(ctx) })
}

func (g *Guard) sweep(ctx context.Context) {
	g.exiting = true
	g.takeFinishedRescan()
	g.takeUnjudged()
	everything := request{walk: true, last: true}
	settled := false
	var found findings
	for range sweeps {
		found = g.compareAll(ctx, everything)
		g.digest(found)
		settled = g.dirty.len() == 0
		if settled && len(found.unseen) == 0 {
			break
		}
		for range g.dirty.len() {
			g.judge(ctx, g.dirty.take())
		}
	}
	if !settled {
		found = g.compareAll(ctx, everything)
		g.noteUnsettled(ctx, found.dirty)
	}
	g.restorer.Clear()
	g.noteClosed() // before what it could not look at is told
	g.noteUnseen(found.unseen)
	g.over = true
	g.noteWatch()
}

// Failing reports whether a path is not back because it could not be put back.
func (g *Guard) Failing() (failing bool) {
	g.do(func() {
		failing = len(g.blind) > 0
		for _, row := range g.rows {
			failing = failing || row.Outcome == RevertFailed
		}
	})
	return failing
}

// noteUnsettled notes that paths are not back that are still changed after the
// last restore: somebody outside the run goes on with it.
func (g *Guard) noteUnsettled(ctx context.Context, changed []rules.Path) {
	for _, p := range changed {
		if g.excuses(p) {
			continue
		}
		verdict, _ := g.Plan.ClassifyRecorded(p)
		baseline, kind := g.baselineOf(p), Added
		if baseline.Kind != safefile.None {
			kind = Modified
		}
		if e, known := g.Manifest.Entry(p); known {
			sight := g.look.Compare(e)
			g.look.Forget()
			if sight.Same || g.admitBookkeeping(ctx, e, sight) {
				continue
			}
			verdict, kind = e.Verdict, kindOf(sight)
		}
		row := g.row(p, verdict, kind)
		if row.Before = baseline.Digest; row.Outcome != RevertFailed {
			g.fail(row, restore.ErrChanged)
		}
	}
}

// takeFinishedRescan waits for the rescan that is under way: what it reads must
// not be older than the sweep.
func (g *Guard) takeFinishedRescan() {
	if g.rescan.running {
		g.digest(<-g.rescan.done)
		g.rescan.running = false
	}
}

// takeUnjudged marks what was noticed and not judged yet: a walk may not find it
// any more.
func (g *Guard) takeUnjudged() {
	for p := range g.settling {
		g.dirty.add(p)
	}
	if g.Watcher != nil {
		g.takeHints() // a rescan is what the sweep does anyhow
	}
}

// Seal takes the last displaced versions into the rows. The keeper must have
// finished.
func (g *Guard) Seal() { g.do(g.takeSealed) }
