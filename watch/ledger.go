package watch

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"syscall"

	"cage/internal/safefile"

	"github.com/fsnotify/fsnotify"
)

// ledger keeps what was lost and what could not be had.
type ledger struct {
	mu        sync.Mutex
	overflows int
	degraded  map[Lack]struct{}
}

func (l *ledger) overflow() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.overflows++
}

// degrade notes a lack, once. Without a reason it is none.
func (l *ledger) degrade(lack Lack) {
	if lack.Reason == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.degraded == nil {
		l.degraded = make(map[Lack]struct{})
	}
	l.degraded[lack] = struct{}{}
}

func (l *ledger) status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	byText := func(a, b Lack) int { return cmp.Compare(a.String(), b.String()) }
	return Status{Overflows: l.overflows, Degraded: slices.SortedFunc(maps.Keys(l.degraded), byText)}
}

// exhausted reports whether err says that no further watch is to be had.
func exhausted(err error) bool { return errors.Is(err, noMoreWatches) }

// failed notes that a watch could not be set. That something else, or nothing,
// stands at the path by now is no failure: the watch on the directory above
// tells of it.
func (w *Watcher) failed(err error) {
	switch {
	case err == nil, safefile.Absent(err), safefile.Hidden(err),
		errors.Is(err, fsnotify.ErrClosed), errors.Is(err, errNoInstance):
	case exhausted(err):
		w.ledger.degrade(w.limits.exhausted)
	case errors.Is(err, syscall.ENAMETOOLONG):
		w.ledger.degrade(Lack{Reason: "directories whose path is longer than the system takes cannot be watched: the tree walk finds what is new in them"})
	default:
		w.ledger.degrade(Lack{Reason: "a watch could not be set: " + safefile.ErrnoName(err)})
		w.hints.fail(fmt.Errorf("set a watch: %w", err))
	}
}

// refused notes that an instance could not be had.
func (w *Watcher) refused(err error) {
	switch {
	case err == nil, errors.Is(err, errNoInstance):
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		w.ledger.degrade(w.limits.refused)
	default:
		w.ledger.degrade(Lack{Reason: "no events can be had: " + err.Error()})
	}
}
