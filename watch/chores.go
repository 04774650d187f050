package watch

import (
	"maps"
	"slices"
	"sync"

	"cage/rules"
)

// chores collects what events ask for besides a hint, so that the goroutines
// that read events do nothing but read.
type chores struct {
	// wake holds a value whenever something waits.
	wake  chan struct{}
	limit int

	mu sync.Mutex
	// left are watched directories that went from their place.
	left map[string]struct{}
	// appeared are names that may be new directories.
	appeared map[rules.Path]struct{}
	// files are protected files whose inode watch has to be set again.
	files map[rules.Path]struct{}
}

func (c *chores) init(limit int) {
	c.wake = make(chan struct{}, 1)
	c.limit = limit
	c.left = make(map[string]struct{})
	c.appeared = make(map[rules.Path]struct{})
	c.files = make(map[rules.Path]struct{})
}

// leave and appear report false where too much waits already: then nothing of
// it is known any more, and the watches cannot be trusted.
func (c *chores) leave(abs string) bool {
	return c.change(func() bool {
		c.left[abs] = struct{}{}
		return len(c.left) <= c.limit
	})
}

func (c *chores) appear(p rules.Path) bool {
	return c.change(func() bool {
		c.appeared[p] = struct{}{}
		return len(c.appeared) <= c.limit
	})
}

// rearm takes protected files only, so that their number is the bound.
func (c *chores) rearm(paths ...rules.Path) {
	if len(paths) == 0 {
		return
	}
	c.change(func() bool {
		for _, p := range paths {
			c.files[p] = struct{}{}
		}
		return true
	})
}

func (c *chores) change(f func() bool) bool {
	c.mu.Lock()
	ok := f()
	if !ok {
		clear(c.left)
		clear(c.appeared)
	}
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return ok
}

func (c *chores) take() (left map[string]struct{}, appeared, files []rules.Path) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left = c.left
	c.left = make(map[string]struct{})
	return left, drain(c.appeared), drain(c.files)
}

func (c *chores) takeFiles() []rules.Path {
	c.mu.Lock()
	defer c.mu.Unlock()
	return drain(c.files)
}

// drain empties the set; parents come before what lies in them.
func drain(set map[rules.Path]struct{}) []rules.Path {
	if len(set) == 0 {
		return nil
	}
	paths := slices.SortedFunc(maps.Keys(set), rules.Path.Compare)
	clear(set)
	return paths
}
