// Package guard keeps the files of one plan whole. It owns the single event
// loop and all its state: paths that may have changed come from events and
// rescans, each is compared with the baseline, and what differs is put back or
// listed. What it did it emits; what it saw of every path it has as a row.
//
// Events are hints and the state on disk is the truth, so a lost event costs
// time and never a file. One goroutine compares and restores, one path after
// the other; rescans and parsing run beside it, change nothing and come back as
// messages. It knows no processes: whoever uses it decides what a fight is.
package guard

import (
	"context"
	"slices"
	"sync"
	"time"

	"cage/internal/gitrepo"
	"cage/internal/kept"
	"cage/internal/mailbox"
	"cage/restore"
	"cage/rules"
	"cage/snapshot"
	"cage/watch"
)

// MaxChanged is how many paths under revert rules may change before a session
// is no longer one that restoring can answer.
const MaxChanged = 5000

// Options are what a guard works with. Trees, manifest and keeper stay the
// caller's to close.
type Options struct {
	Plan     *rules.Plan
	Trees    *snapshot.Trees
	Manifest *snapshot.Manifest
	Store    *snapshot.Store
	Keeper   *kept.Keeper
	// Watcher gives the hints; nil where there is no live restore.
	Watcher *watch.Watcher
	// Git is nil outside git.
	Git *gitrepo.Repo
	// Restores is false where changes are only listed.
	Restores bool
	// Rescans is false where there is nothing but the sweep.
	Rescans bool
	// Interval is the time between two rescans.
	Interval time.Duration
	// WalkInterval is the time between two walks for new names.
	WalkInterval time.Duration
	// Upkeep is called before everything is compared, and when a look failed for
	// want of something. It gives the program back what somebody took from it,
	// and says what could not be had. Nil where nothing can be taken.
	Upkeep func() []watch.Lack
	// FileBytes is how much of a file is read that was smaller at the baseline.
	FileBytes int64
}

// Guard keeps the files of one plan whole.
type Guard struct {
	Options
	restorer *restore.Restorer
	look     *snapshot.Looker
	// tended are the directories whose owner and mode it keeps.
	tended []rules.Path
	// startConfig is git's config as the session found it.
	startConfig snapshot.ID

	// The rest belongs to the loop.
	dirty    queue
	settling settling
	stood    stood
	rows     map[rules.Path]*Row
	conceded map[rules.Path]bool
	pacing   pacing
	// aside holds what restores set aside beside its path. That is no change; what
	// is put into it or in its place is one.
	aside map[rules.Path]setAside
	// owners are the paths whose restores displaced something, by tag.
	owners map[int]rules.Path
	// unexplained are the tags of restores whose displaced version is not
	// sealed yet.
	unexplained map[int]restored
	lastTag     int
	changed     int
	live        int
	rescan      rescan
	timers      *timers
	config      configCheck
	watched     watch.Status
	// lacks are those that the guard found itself, each once.
	lacks []watch.Lack
	// blind are the rows of what the last comparison could not look at.
	blind map[rules.Path]*Row
	// unlooked are paths of which a look learnt nothing: each rescan looks again.
	unlooked map[rules.Path]error
	moved    bool
	denied   []rules.Path
	// exiting says that the last comparison has begun, and over that it is done:
	// what changes now is none of the run's, and undoes no verdict.
	exiting bool
	over    bool

	requests chan func()
	stopped  chan struct{}
	beside   sync.WaitGroup

	events *mailbox.Box[Event]
}

// New returns a guard, which does nothing before Run.
func New(o Options) *Guard {
	g := &Guard{
		Options:  o,
		restorer: restore.New(o.Trees, o.Plan, o.Manifest, o.Store, o.Keeper, o.FileBytes),
		look:     snapshot.NewLooker(o.Trees, o.Store, o.FileBytes),
		dirty:    newQueue(),
		settling: make(settling),
		stood:    newStood(time.Now()),
		rows:     make(map[rules.Path]*Row),
		conceded: make(map[rules.Path]bool),
		pacing:   make(pacing),
		timers:   newTimers(),
		aside:    make(map[rules.Path]setAside),
		owners:   make(map[int]rules.Path),

		unlooked: make(map[rules.Path]error),

		unexplained: make(map[int]restored),
		requests:    make(chan func()),
		stopped:     make(chan struct{}),
		events:      mailbox.New[Event](),
	}
	g.tended = slices.DeleteFunc(o.Manifest.Directories(), func(p rules.Path) bool { return !g.tends(p) })
	if e, ok := o.Manifest.Entry(rules.GitConfig()); ok {
		g.startConfig = e.State.Content
	}
	g.rescan.done = make(chan findings, 1)
	g.config.done = make(chan configVerdict, 1)
	g.config.harmless = make(map[snapshot.Digest]bool)
	return g
}

// Run is the loop. It returns when ctx ends and everything beside it has come
// back.
func (g *Guard) Run(ctx context.Context) {
	defer close(g.stopped)
	defer g.beside.Wait()
	defer g.look.Forget()
	defer g.restorer.Close()
	var hints <-chan struct{}
	if g.Watcher != nil {
		hints = g.Watcher.Ready()
	}
	defer g.timers.stop()
	if g.Rescans {
		g.rescan.walked = time.Now()  // for the baseline
		g.startRescan(ctx, request{}) // what changed between the baseline and the first hint
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-hints:
			if batch := g.takeHints(); batch.Rescan || batch.Walk || batch.Remounted {
				g.startRescan(ctx, request{refresh: batch.Rescan, walk: batch.Walk})
			}
			g.work(ctx)
			g.noteWatch()
		case <-g.timers.settle.C:
		case <-g.timers.prepare.C:
			g.restorer.Prepare()
		case <-g.timers.rescan.C:
			g.rescanInTime(ctx)
		case found := <-g.rescan.done:
			g.takeFindings(ctx, found)
		case verdict := <-g.config.done:
			g.takeConfigVerdict(ctx, verdict)
		case <-g.Keeper.Ready():
			g.takeSealed()
		case request := <-g.requests:
			request()
		}
		g.work(ctx)
		g.timers.wakeAt(g.next())
		g.timers.prepareSoon(g.restorer.Wants())
	}
}

// do runs f in the loop and waits for it; it reports false where the loop has
// ended.
func (g *Guard) do(f func()) bool {
	finished := make(chan struct{})
	select {
	case g.requests <- func() { f(); close(finished) }:
		<-finished
		return true
	case <-g.stopped:
		return false
	}
}

// Concede leaves a contested path alone until the sweep.
func (g *Guard) Concede(p rules.Path) { g.do(func() { g.conceded[p] = true }) }

// Pace puts a contested path back no more at once, but after a pause that grows
// as long as the fight goes on. The sweep waits for none.
func (g *Guard) Pace(p rules.Path) { g.do(func() { g.pacing.add(p, time.Now()) }) }

// Rescan compares everything at once, because time was lost.
func (g *Guard) Rescan(ctx context.Context) {
	g.do(func() { g.startRescan(ctx, request{refresh: true, walk: true}) })
}

// CatchUp returns when everything was compared with the baseline, without a
// walk for new names, and what differs was put back, unless it still settles.
func (g *Guard) CatchUp(ctx context.Context) { g.do(func() { g.catchUp(ctx) }) }

func (g *Guard) catchUp(ctx context.Context) {
	if g.rescan.running {
		g.takeFindings(ctx, <-g.rescan.done)
	}
	g.digest(g.compareAll(ctx, request{}))
	g.work(ctx)
}

// takeHints marks what the watcher noticed. What more it asks for is in the batch.
func (g *Guard) takeHints() watch.Batch {
	batch := g.Watcher.Take()
	for _, p := range batch.Paths {
		g.dirty.add(p)
	}
	for _, err := range batch.Errs {
		g.emit(WatchError{Err: err})
	}
	return batch
}

// noteWatch emits what the watcher lost since the last look.
func (g *Guard) noteWatch() {
	if g.Watcher == nil {
		return
	}
	now := g.Watcher.Status()
	for range now.Overflows - g.watched.Overflows {
		g.emit(Overflow{})
	}
	for _, lack := range now.Degraded {
		if !slices.Contains(g.watched.Degraded, lack) {
			g.emit(Degraded{Reason: lack.String()})
		}
	}
	g.watched = now
}

// work judges every path that is due.
func (g *Guard) work(ctx context.Context) {
	now := time.Now()
	for _, p := range slices.Concat(g.settling.due(now), g.pacing.due(now)) {
		g.dirty.add(p)
	}
	for range g.dirty.len() {
		if p := g.dirty.take(); !g.over {
			g.judge(ctx, p)
		}
	}
}

// next returns when there is something to judge again: at once where a path
// became dirty while it was put back.
func (g *Guard) next() time.Time {
	if g.dirty.len() > 0 {
		return time.Now()
	}
	return sooner(g.settling.next(), g.pacing.next())
}

// WatchStatus returns what the watcher said last, with what the guard itself
// could not see in time. It is for after Run.
func (g *Guard) WatchStatus() watch.Status {
	status := g.watched
	status.Degraded = slices.Concat(status.Degraded, g.lacks)
	return status
}

// Denied returns the directories that the last walk could not enter: protected
// names in them are not seen.
func (g *Guard) Denied() []rules.Path { return g.denied }

// handOn gives the keeper what a restore displaced and returns the tag that it
// will come back with.
func (g *Guard) handOn(row *Row, displaced []restore.Displaced) (tag int) {
	g.lastTag++
	g.owners[g.lastTag] = row.Path
	for _, d := range displaced {
		version := kept.Version{
			Tag: g.lastTag, Path: d.Path, Info: d.Info,
			Quarantined: d.Quarantined, File: d.File, Content: d.Content,
		}
		if d.Beside != (rules.Path{}) {
			g.aside[d.Beside] = setAside{of: row.Path, info: d.Info}
			version.Beside = g.Trees.Layout().Abs(d.Beside)
		}
		g.Keeper.Keep(version)
	}
	return g.lastTag
}
