package watch

import (
	"sync"

	"cage/rules"
)

// maxErrs bounds the errors that wait to be taken.
const maxErrs = 16

// hints collects what was learnt until it is taken. Bursts collapse: a path
// that waits already is not added again.
type hints struct {
	// ready holds a value whenever something waits.
	ready chan struct{}
	limit int

	mu      sync.Mutex
	batch   Batch
	waiting map[rules.Path]struct{}
	// flooded is set where there were too many paths: until the next take, the
	// batch says that everything has to be looked at.
	flooded bool
}

func (h *hints) init(limit int) {
	h.ready = make(chan struct{}, 1)
	h.limit = limit
	h.waiting = make(map[rules.Path]struct{})
}

func (h *hints) add(paths ...rules.Path) {
	if len(paths) == 0 {
		return
	}
	h.change(func() {
		for _, p := range paths {
			h.addOne(p)
		}
	})
}

func (h *hints) addOne(p rules.Path) {
	if _, ok := h.waiting[p]; ok || h.flooded {
		return
	}
	if len(h.waiting) == h.limit {
		clear(h.waiting)
		h.flooded = true
		h.batch.Paths, h.batch.Rescan, h.batch.Walk = nil, true, true
		return
	}
	h.waiting[p] = struct{}{}
	h.batch.Paths = append(h.batch.Paths, p)
}

// lose says that hints were lost, and names with them or not.
func (h *hints) lose(names bool) {
	h.change(func() {
		h.batch.Rescan = true
		h.batch.Walk = h.batch.Walk || names
	})
}

// remounted says that other files may stand at any path now.
func (h *hints) remounted() {
	h.change(func() { h.batch.Remounted, h.batch.Rescan, h.batch.Walk = true, true, true })
}

func (h *hints) fail(err error) {
	h.change(func() {
		if len(h.batch.Errs) < maxErrs {
			h.batch.Errs = append(h.batch.Errs, err)
		}
	})
}

func (h *hints) change(f func()) {
	h.mu.Lock()
	f()
	h.mu.Unlock()
	select {
	case h.ready <- struct{}{}:
	default:
	}
}

func (h *hints) take() Batch {
	h.mu.Lock()
	defer h.mu.Unlock()
	batch := h.batch
	h.batch = Batch{}
	h.flooded = false
	clear(h.waiting)
	return batch
}
