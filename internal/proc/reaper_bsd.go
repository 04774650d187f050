//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package proc

import (
	"slices"
	"syscall"
)

// No kqueue system makes a process the parent of all its descendants' orphans
// in a way that wait4 would answer for.
const hasSubreaper = false

// adoptOrphans has nothing to set; NewReaper does not ask for it here.
func adoptOrphans(bool) error { return nil }

// hasForeignChildren finds none: without a subreaper no end condition waits for
// every child, so those of others are not in its way.
func hasForeignChildren(ID) (bool, error) { return false, nil }

// leavingRoom leaves none.
func leavingRoom(fork func() (int, error)) (pid int, err error) { return fork() }

// wakeWithoutParent has nothing to set.
func wakeWithoutParent(*syscall.SysProcAttr) {}

// Tree is a command and what was seen to descend from it.
type Tree struct {
	reaper  *Reaper
	command *Child
	gone    chan struct{}
	// ended is guarded by the reaper's mu.
	ended bool
	told  told
	// seen are the descendants of the last listing, in its order, guarded by mu: one
	// that was listed once is followed after its parent has died.
	seen []Process
}

// reap waits, without blocking, for the Reaper's children that have ended,
// tells whoever started them, and notices when no process is left of the tree
// that was ever seen.
func (r *Reaper) reap() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reapRegistered()
	if r.tree != nil && !r.tree.ended && len(r.tree.look()) == 0 {
		r.endTree()
	}
}

// Processes lists the tree's processes as far as they can be seen, parents
// before children.
func (t *Tree) Processes() ([]Process, error) {
	t.reaper.mu.Lock()
	defer t.reaper.mu.Unlock()
	if t.ended {
		return nil, nil
	}
	return t.look(), nil
}

// look lists the processes of the tree that can be seen now and remembers
// them. The caller holds mu.
func (t *Tree) look() []Process {
	var tree []Process
	listed := make(map[ID]bool)
	add := func(p Process) {
		if !listed[p.ID] {
			listed[p.ID] = true
			tree = append(tree, p)
		}
	}
	children := childrenByParent()
	// Unlike the numbers of other processes, a child's is its own until it was
	// waited for.
	if t.reaper.children[t.command.id.PID] == t.command {
		add(Process{ID: t.command.id, Parent: t.reaper.self.PID})
	}
	for _, p := range t.seen {
		if p.Alive() {
			add(p)
		}
	}
	for i := 0; i < len(tree); i++ {
		for _, child := range children[tree[i].PID] {
			add(child)
		}
	}
	t.seen = slices.DeleteFunc(slices.Clone(tree), func(p Process) bool { return p.ID == t.command.id })
	return tree
}
