package watch

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"

	"cage/rules"

	"github.com/fsnotify/fsnotify"
)

// errNoInstance stands for a watch that was not tried because there is nothing
// to set it with, which was said when that could not be had.
var errNoInstance = errors.New("no instance to watch with")

// dirs is the layer of directory watches. Watches are set and dropped only
// under Watcher.arming; the lock here lets the others look.
type dirs struct {
	mu       sync.Mutex
	instance *fsnotify.Watcher // nil where none could be had
	// watched are the absolute paths that watches were set by: all that
	// fsnotify knows, and those that it took for another one's, because it had
	// not heard yet that this one moved. The event of that, or of its end, has
	// it dropped. With each goes the number of watched directories in it; the
	// one that a directory lies in is watched too.
	watched map[string]int
	// doubtful is set where events of names were lost: a directory may have
	// moved with its watch, which then tells lies about where it is.
	doubtful bool
	// gaveUp is set where a living watch was given up. fsnotify follows
	// symlinks: if one stood on the way when that was set, the watch was another
	// directory's, which has none now.
	gaveUp bool
}

// renew opens a new instance where there is none, or where the old one's
// watches are doubtful. It returns the new instance, for its events to be
// read. Where none can be had the old one stays.
func (d *dirs) renew() (*fsnotify.Watcher, error) {
	if !d.stale() {
		return nil, nil
	}
	next, err := newInstance()
	if err != nil {
		return nil, err
	}
	// What the old one's reader still tells are hints like others.
	return next, d.swap(next)
}

func (d *dirs) stale() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.instance == nil || d.doubtful
}

// swap puts an instance without watches in the place of the present one and
// closes that, outside the lock: closing waits for fsnotify's reader, and that
// for whoever reads its errors.
func (d *dirs) swap(next *fsnotify.Watcher) error {
	d.mu.Lock()
	last := d.instance
	d.instance, d.watched, d.doubtful, d.gaveUp = next, make(map[string]int), false, false
	d.mu.Unlock()
	if last == nil {
		return nil
	}
	return last.Close()
}

func (d *dirs) distrust() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.doubtful = true
}

// settleDoubts has the next renewal replace all watches if one may be missing.
func (d *dirs) settleDoubts() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.doubtful = d.doubtful || d.gaveUp
}

func (d *dirs) has(abs string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.watched[abs]
	return ok
}

func (d *dirs) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.watched)
}

func (d *dirs) list() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.watched))
}

// find returns a watched directory that is wanted.
func (d *dirs) find(wanted func(abs string) bool) (string, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for abs := range d.watched {
		if wanted(abs) {
			return abs, true
		}
	}
	return "", false
}

// add sets a watch by a path that has none: fsnotify breaks down over a path
// that it knows when another directory it knows stands there.
func (d *dirs) add(abs string) error {
	if d.instance == nil {
		return errNoInstance
	}
	// Noted first: the event that it moved must find it noted.
	d.note(abs)
	err := d.instance.Add(abs)
	if err != nil {
		d.unnote(abs)
	}
	return err
}

func (d *dirs) note(abs string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.watched[abs] = 0
	if above := parent(abs); above != abs {
		if n, ok := d.watched[above]; ok {
			d.watched[above] = n + 1
		}
	}
}

// unnote returns how many watched directories lie in the one that was noted.
func (d *dirs) unnote(abs string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	within, ok := d.watched[abs]
	if !ok {
		return 0
	}
	delete(d.watched, abs)
	if n, ok := d.watched[parent(abs)]; ok {
		d.watched[parent(abs)] = n - 1
	}
	return within
}

func parent(abs string) string { return abs[:max(1, strings.LastIndexByte(abs, '/'))] }

// drop gives up the watches of directories that left their place, and of all
// below: fsnotify would go on to name them by the old place, and take a watch
// set at the new one for the same.
func (d *dirs) drop(left map[string]struct{}) {
	if d.instance == nil {
		return
	}
	full := make(map[string]struct{})
	// Backwards, so that what lies in a directory goes before it.
	for _, abs := range slices.Backward(slices.Sorted(maps.Keys(left))) {
		if d.remove(abs) > 0 {
			full[abs] = struct{}{}
		}
	}
	if len(full) == 0 {
		return
	}
	for _, abs := range d.list() {
		if liesIn(abs, full) {
			d.remove(abs)
		}
	}
}

func (d *dirs) remove(abs string) (within int) {
	// An error says that the watch died before.
	gone := d.instance.Remove(abs) != nil
	d.mu.Lock()
	d.gaveUp = d.gaveUp || !gone
	d.mu.Unlock()
	return d.unnote(abs)
}

// liesIn reports whether abs is below one of the directories.
func liesIn(abs string, dirs map[string]struct{}) bool {
	for i := strings.LastIndexByte(abs, '/'); i > 0; i = strings.LastIndexByte(abs[:i], '/') {
		if _, ok := dirs[abs[:i]]; ok {
			return true
		}
	}
	return false
}

// readDirs reads the events of one instance until it is closed. It never waits
// for anybody: who does not read makes the kernel drop events, and both
// channels have to be read or fsnotify stands still.
func (w *Watcher) readDirs(from *fsnotify.Watcher) {
	events, errs := from.Events, from.Errors
	for events != nil || errs != nil {
		select {
		case ev, ok := <-events:
			if !ok {
				events = nil
				continue
			}
			w.dirEvent(ev)
		case err, ok := <-errs:
			if !ok {
				errs = nil
				continue
			}
			w.dirError(err)
		}
	}
}

func (w *Watcher) dirError(err error) {
	switch {
	case errors.Is(err, fsnotify.ErrEventOverflow):
		w.ledger.overflow()
		w.lose(true)
	case errors.Is(err, syscall.EINVAL):
		// fsnotify gave up the watch of a directory that had moved and was then
		// removed: the kernel was faster (inotify_rm_watch(2)).
	default:
		w.hints.fail(fmt.Errorf("read events: %w", err))
		w.lose(true)
	}
}

// dirEvent turns one event into hints and chores. Its name may be stale where
// a directory moved: then the hints are wrong, and harmless.
func (w *Watcher) dirEvent(ev fsnotify.Event) {
	p := w.layout.Locate(ev.Name)
	protected := w.protected.Load()
	known := protected.contains(p)
	if !known {
		_, known = w.plan.ClassifyRecorded(p)
	} else if ev.Has(fsnotify.Create) {
		w.chores.rearm(p)
	}
	if known {
		w.hints.add(p)
	}
	if ev.Op == fsnotify.Write {
		return
	}
	w.hints.add(w.beneath(protected, p, ev.Name)...)
	if !ev.Has(fsnotify.Create | fsnotify.Remove | fsnotify.Rename) {
		return
	}
	intact, enter := true, ev.Has(fsnotify.Create)
	if ev.Has(fsnotify.Remove|fsnotify.Rename) && w.dirs.has(ev.Name) {
		// An exchange tells that the new directory came before it tells that the
		// old one went: what stands there is looked at again.
		intact, enter = w.chores.leave(ev.Name), true
	}
	if enter && p.Anchor != rules.Outside && w.plan.Enter(p) {
		intact = w.chores.appear(p) && intact
	}
	if !intact {
		w.lose(true)
	}
}

// beneath returns the protected paths below a directory, those in anchors that
// lie there included.
func (w *Watcher) beneath(protected *pathSet, dir rules.Path, abs string) []rules.Path {
	below := protected.beneath(dir)
	for _, a := range rules.Anchors() {
		if rel, inside := rules.Below(w.layout.Dir(a), abs); inside && rel != "" && a != dir.Anchor {
			below = append(slices.Clip(below), protected.beneath(rules.Path{Anchor: a})...)
		}
	}
	return below
}
