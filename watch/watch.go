// Package watch turns what the kernel tells about files into hints: paths that
// may have changed, and the word that hints were lost and everything has to be
// compared.
//
// On Linux two layers watch. Directory watches (fsnotify) see names come and
// go and files being written through them. An inode watch on every protected
// file sees what a directory cannot: a write through a hard link made
// elsewhere or through a descriptor opened by one, and the end of a mapping.
// On kqueue systems only the directories of targets and those above them are
// watched. Elsewhere there are no events.
//
// A path that changed is hinted at, or the loss of hints is. The package never
// fails for lack of watches: it says in Status what it cannot see. A hint
// proves nothing, may be late, repeated or wrong, and nothing is said about
// stores into a mapping that is still mapped. The package reads no content,
// compares nothing and changes nothing on disk.
package watch

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"cage/internal/safefile"
	"cage/rules"
	"cage/snapshot"
)

// Options say what is watched.
type Options struct {
	// Plan says which directories are entered and which names matter.
	Plan *rules.Plan
	// Trees must stay open until the Watcher is closed.
	Trees *snapshot.Trees
}

// Watcher watches the trees of one session. Its methods may be called from
// several goroutines.
type Watcher struct {
	plan   *rules.Plan
	trees  *snapshot.Trees
	layout rules.Layout
	limits limits

	// protected is replaced as a whole by Protect.
	protected atomic.Pointer[pathSet]
	hints     hints
	chores    chores
	ledger    ledger

	// arming is held by whoever sets or drops watches. The goroutines that read
	// events never take it, and never call fsnotify: its reader can hold
	// fsnotify's own lock while it waits for an error to be read.
	arming sync.Mutex
	// leads are the directories that targets and protected files lie in, and
	// those above them: they are watched whatever the budget says.
	leads map[rules.Path]struct{}
	// spared is set once a watch was asked back for a lead and every other was
	// for a lead itself.
	spared bool
	closed bool

	dirs   dirs
	inodes inodes
	mounts *mounts

	quit      chan struct{}
	closeOnce sync.Once
	closeErr  error
	running   sync.WaitGroup
}

// Batch is what was learnt since the last one.
type Batch struct {
	// Paths may have changed: each once, in the order they were first hinted
	// at. They are protected, or the plan classifies them or what lies below.
	Paths []rules.Path
	// Rescan says that hints were lost: after a call of Refresh, everything has
	// to be compared.
	Rescan bool
	// Walk says that new names may have been missed: Scan finds them.
	Walk bool
	// Remounted says that mounts on the way to or beneath the anchors changed.
	Remounted bool
	// Errs are failures of watching that no hint makes up for.
	Errs []error
}

// Lack is something for want of which changes are seen late.
type Lack struct {
	Reason string
	// Setting is what would have to be changed, as an order; empty where no
	// setting helps.
	Setting string
}

func (l Lack) String() string {
	if l.Setting == "" {
		return l.Reason
	}
	return l.Reason + " (" + l.Setting + ")"
}

// Status is what the watcher sees and what it does not.
type Status struct {
	// Events says that there is any watch at all.
	Events bool
	// Overflows counts the times that the kernel dropped events.
	Overflows int
	// Degraded are the lacks for which changes were or may be seen late,
	// since the watcher was made: sorted, each once.
	Degraded     []Lack
	WatchedDirs  int
	WatchedFiles int
}

// New starts to watch. Nothing is watched before Scan and Protect are called.
func New(o Options) *Watcher { return open(o, systemLimits()) }

func open(o Options, l limits) *Watcher {
	w := &Watcher{
		plan: o.Plan, trees: o.Trees, layout: o.Trees.Layout(), limits: l,
		leads: make(map[rules.Path]struct{}),
		quit:  make(chan struct{}),
	}
	w.protected.Store(&pathSet{})
	w.hints.init(l.pending)
	w.chores.init(l.pending)
	for _, target := range w.plan.Targets() {
		w.lead(target.Path)
	}
	w.arming.Lock()
	defer w.arming.Unlock()
	w.renew()
	w.startMounts()
	w.running.Go(w.work)
	return w
}

// Scan walks the trees and finds everything that the plan classifies. Each
// directory is watched before it is read, so that a name that comes later is
// hinted at. If directories moved since the last scan, all are watched anew:
// where somebody led a watch astray with a symlink, it is right after this.
func (w *Watcher) Scan() snapshot.Survey {
	w.arming.Lock()
	defer w.arming.Unlock()
	w.dirs.settleDoubts()
	w.renew()
	s := snapshot.Look(w.trees, w.plan, func(dir rules.Path) {
		w.watchDir(dir)
		w.armFiles(w.chores.takeFiles())
	}, w.lead)
	w.watchLeads()
	w.armMissing()
	return s
}

// Protect names the existing files that are watched by their inode and hinted
// at when a directory above them changes. They take the place of those named
// before. What is read after the call cannot change without a hint.
func (w *Watcher) Protect(paths []rules.Path) {
	w.arming.Lock()
	defer w.arming.Unlock()
	next := newPathSet(paths)
	last := w.protected.Swap(&next)
	for _, p := range *last {
		if !next.contains(p) {
			w.inodes.disarm(p)
		}
	}
	for _, p := range next {
		w.lead(p)
	}
	w.watchLeads()
	for _, p := range next {
		w.arm(p)
	}
}

// Refresh sets again the watches that were lost: those of the protected files,
// of the directories they and the targets lie in, and of those above. The
// directories that only a walk knows get theirs from Scan. What is read after
// the call cannot change without a hint.
func (w *Watcher) Refresh() {
	w.arming.Lock()
	defer w.arming.Unlock()
	w.renew()
	w.watchLeads()
	for _, p := range *w.protected.Load() {
		w.arm(p)
	}
}

// Ready returns a channel that holds a value when there is something to take.
func (w *Watcher) Ready() <-chan struct{} { return w.hints.ready }

// Take returns what was learnt since it was last called.
func (w *Watcher) Take() Batch { return w.hints.take() }

// Status returns what is watched now, and what was not since the start.
func (w *Watcher) Status() Status {
	s := w.ledger.status()
	s.WatchedDirs, s.WatchedFiles = w.dirs.count(), w.inodes.count()
	s.Events = s.WatchedDirs+s.WatchedFiles > 0
	return s
}

// Close stops watching and returns when every goroutine has ended. No hint
// comes after it.
func (w *Watcher) Close() error {
	w.closeOnce.Do(func() {
		close(w.quit)
		w.arming.Lock()
		w.closed = true
		collect := deferRelease()
		w.inodes.close()
		w.closeErr = w.dirs.swap(nil)
		collect()
		w.arming.Unlock()
		w.mounts.stop()
		w.running.Wait()
		w.mounts.release()
	})
	return w.closeErr
}

// work does what events ask for besides a hint: watches to be set and new
// directories to be walked.
func (w *Watcher) work() {
	for {
		select {
		case <-w.quit:
			return
		case <-w.chores.wake:
			w.doChores()
		}
	}
}

func (w *Watcher) doChores() {
	w.arming.Lock()
	defer w.arming.Unlock()
	left, appeared, files := w.chores.take()
	if w.closed {
		return
	}
	for _, p := range appeared {
		// A walk was faster than the event: the watch it set may be one that
		// fsnotify knows by the directory's last place.
		if abs := w.layout.Abs(p); w.dirs.has(abs) {
			left[abs] = struct{}{}
		}
	}
	w.dirs.drop(left)
	w.armFiles(files)
	for _, p := range appeared {
		w.cover(p)
	}
}

// cover walks a directory that appeared, if one did. What stands in it by now
// gave no event.
func (w *Watcher) cover(p rules.Path) {
	snapshot.WalkBelow(w.trees, w.plan, p, snapshot.Visitor{
		Enter: func(dir rules.Path) {
			if w.plan.WantsFile(dir) {
				w.hints.add(dir)
			}
			w.watchDir(dir)
			w.armFiles(w.chores.takeFiles())
		},
		Found: func(p rules.Path, _ safefile.Kind, _ rules.Verdict) {
			if w.protected.Load().contains(p) {
				w.arm(p)
			}
			w.hints.add(p)
		},
		Unseen: func(rules.Path, error) { w.hints.lose(true) },
	})
}

// lead marks the directories above p as ones that have to be watched.
func (w *Watcher) lead(p rules.Path) {
	if p.Anchor == rules.Outside {
		return
	}
	for p.Rel != "" {
		p = p.Dir()
		if _, ok := w.leads[p]; ok {
			return
		}
		w.leads[p] = struct{}{}
	}
}

// needed reports whether a directory is watched whatever the budget says.
func (w *Watcher) needed(dir rules.Path) bool {
	_, ok := w.leads[dir]
	return ok || w.plan.Covers(dir)
}

func (w *Watcher) watchLeads() {
	for _, dir := range slices.SortedFunc(maps.Keys(w.leads), rules.Path.Compare) {
		if w.dirs.has(w.layout.Abs(dir)) || w.trees.Root(dir.Anchor) == nil {
			continue
		}
		// fsnotify would follow a symlink that stands there now.
		if open, err := w.trees.Dir(dir); err == nil {
			w.watchDir(dir)
			open.Close()
		}
	}
}

// watchDir sets a watch on a directory, by its path: where something else was
// put there since it was opened, the watch gives wrong hints until the event
// of that, from the watch on the directory above, has it set again. Therefore
// only directories are watched that lie in a watched one.
func (w *Watcher) watchDir(dir rules.Path) {
	abs := w.layout.Abs(dir)
	if w.closed || w.dirs.has(abs) || dir.Rel != "" && !w.dirs.has(parent(abs)) {
		return
	}
	needed := w.needed(dir)
	if !needed && w.dirs.count()+w.inodes.count() >= w.limits.watches {
		w.ledger.degrade(w.limits.beyond)
		return
	}
	err := w.dirs.add(abs)
	if exhausted(err) && needed && w.spareOne() {
		err = w.dirs.add(abs)
	}
	w.failed(err)
}

// spareOne gives up the watches of a directory that no target lies in and of
// those in it, so that one that matters more can be set.
func (w *Watcher) spareOne() bool {
	if w.spared {
		return false
	}
	abs, ok := w.dirs.find(func(abs string) bool { return !w.needed(w.layout.Locate(abs)) })
	if ok {
		w.dirs.drop(map[string]struct{}{abs: {}})
	}
	w.spared = !ok
	return ok
}

// armFiles sets the inode watches of protected files, then hints at the files.
func (w *Watcher) armFiles(paths []rules.Path) {
	for _, p := range paths {
		w.arm(p)
	}
	w.hints.add(paths...)
}

// armMissing sets the inode watches of protected files that have none because
// they were gone for a while.
func (w *Watcher) armMissing() {
	for _, p := range *w.protected.Load() {
		if w.inodes.armed(p) {
			continue
		}
		if w.arm(p); w.inodes.armed(p) {
			w.hints.add(p)
		}
	}
}

// arm puts the inode watch of p on the file that stands there now.
func (w *Watcher) arm(p rules.Path) {
	if w.closed {
		return
	}
	err := w.armNow(p)
	if exhausted(err) && w.spareOne() {
		err = w.armNow(p)
	}
	w.failed(err)
}

func (w *Watcher) armNow(p rules.Path) error {
	dir, err := w.trees.Dir(p.Dir())
	if err != nil {
		w.inodes.disarm(p)
		return err
	}
	defer dir.Close()
	return w.inodes.arm(dir, p)
}

// renew opens the instances that could not be had so far, and takes a new one
// for directories where the old one's watches cannot be trusted any more.
func (w *Watcher) renew() {
	if w.closed {
		return
	}
	w.spared = false
	opened, err := w.dirs.renew()
	if opened != nil {
		w.running.Go(func() { w.readDirs(opened) })
	}
	w.refused(err)
	source, err := w.inodes.renew()
	if source != nil {
		w.running.Go(func() { w.readInodes(source) })
	}
	w.refused(err)
}

// lose says that hints were lost. What directory watches are on is not known
// any more where names were.
func (w *Watcher) lose(names bool) {
	if names {
		w.dirs.distrust()
	}
	w.hints.lose(names)
}

// pathSet is a sorted set of paths.
type pathSet []rules.Path

func newPathSet(paths []rules.Path) pathSet {
	set := slices.Clone(paths)
	slices.SortFunc(set, rules.Path.Compare)
	return slices.Compact(set)
}

func (s pathSet) contains(p rules.Path) bool {
	_, ok := slices.BinarySearchFunc(s, p, rules.Path.Compare)
	return ok
}

// beneath returns the paths below the directory.
func (s pathSet) beneath(dir rules.Path) []rules.Path {
	first, last := rules.Path{Anchor: dir.Anchor}, rules.Path{Anchor: dir.Anchor + 1}
	if dir.Rel != "" {
		first.Rel = dir.Rel + "/"
		last = rules.Path{Anchor: dir.Anchor, Rel: dir.Rel + "0"} // '0' follows '/'
	}
	from, _ := slices.BinarySearchFunc(s, first, rules.Path.Compare)
	to, _ := slices.BinarySearchFunc(s, last, rules.Path.Compare)
	return s[from:to]
}
