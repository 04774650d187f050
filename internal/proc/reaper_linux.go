package proc

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

const hasSubreaper = true

// Tree is a command and everything that descends from it, wherever its
// processes were reparented to.
type Tree struct {
	reaper  *Reaper
	command *Child
	gone    chan struct{}
	// ended is guarded by the reaper's mu.
	ended bool
	told  told
}

// adoptOrphans makes this program the parent of its descendants' orphans, or
// lets them go to its own ancestors again.
func adoptOrphans(on bool) error {
	var flag uintptr
	if on {
		flag = 1
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, flag, 0, 0, 0); err != nil {
		return fmt.Errorf("setting the child subreaper attribute: %w", err)
	}
	return nil
}

// hasForeignChildren reports whether the program has children that live. Whether
// there are any the kernel says in one call, which takes none of them away
// (WNOWAIT); only then is the process table read.
func hasForeignChildren(self ID) (bool, error) {
	const every = unix.WEXITED | unix.WNOHANG | unix.WNOWAIT | unix.WALL
	if _, err := retry(func() (int, error) { return 0, unix.Waitid(unix.P_ALL, 0, nil, every, nil) }); errors.Is(err, unix.ECHILD) {
		return false, nil
	}
	all, err := readTable()
	return slices.ContainsFunc(all, func(s stat) bool { return s.parent == self.PID && s.live() }), err
}

// dieWithParent has a process killed when the thread that forked it ends.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = unix.SIGKILL }

// wakeWithoutParent has a process continued when the thread that forked it ends.
func wakeWithoutParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = unix.SIGCONT }

// Orphans returns the tree of all that descends from this program and was not
// started by its Reaper: what a process that Attend started has left, when it has
// ended. It has no command. Where the Reaper is Shared orphans go elsewhere, and
// the error is ErrForeign.
func (r *Reaper) Orphans() (*Tree, error) {
	if r.Shared() {
		return nil, ErrForeign
	}
	tree := &Tree{reaper: r, gone: make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tree != nil && !r.tree.ended {
		return nil, errBusy
	}
	r.tree = tree
	r.reapAny() // the last of them may have ended before
	return tree, nil
}

// reap waits, without blocking, for every child that has ended or stopped, tells
// whoever started it, and notices the end of the tree.
func (r *Reaper) reap() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.owns {
		r.reapAny()
		return
	}
	r.reapRegistered()
}

// reapAny is for a Reaper that owns every child: those it started and the
// orphans of the tree.
func (r *Reaper) reapAny() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, waitFlags, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ECHILD):
			r.endTree()
			return
		case err != nil || pid == 0:
			return
		default:
			r.dispatch(pid, status)
		}
	}
}

// attended returns the numbers of the children that are none of the tree.
func (r *Reaper) attended() map[int]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	numbers := make(map[int]bool)
	for pid, child := range r.children {
		if r.tree == nil || child != r.tree.command {
			numbers[pid] = true
		}
	}
	return numbers
}

// Processes lists the tree's processes, parents before children. A process
// that is younger than the listing may be missing.
func (t *Tree) Processes() ([]Process, error) {
	if t.isGone() {
		return nil, nil
	}
	all, err := readTable()
	if err != nil {
		return nil, err
	}
	var roots []stat
	for _, s := range all {
		if s.parent == t.reaper.self.PID {
			roots = append(roots, s)
		}
	}
	// Asked after the table was read: whoever forked a helper that is in the table
	// has registered it by the time that the lock is free.
	return living(all.descend(roots, t.reaper.attended())), nil
}
