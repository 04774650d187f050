// Package halt decides when a command has fought for too long, and runs the
// order in which its tree ends: SIGTERM, grace, SIGKILL, proof.
//
// It promises that a round counts once, however many restores fall into it;
// that a branch switch is judged by what git says when its round has ended; and
// that End goes on at once when nothing is left to wait for. The counter keeps
// no clock: times come with the calls, so what it says depends on them alone.
//
// It does not restore, asks git nothing, and holds no process: its callers do,
// and tell it.
package halt

import (
	"time"

	"cage/internal/proc"
)

// Tree is what End needs of a command and its descendants.
type Tree interface {
	// Gone is closed when nothing is left.
	Gone() <-chan struct{}
	// Terminate sends SIGTERM to every process and returns how many took it.
	Terminate() int
	// Kill sends SIGKILL until nothing is left, or nothing but what has refused
	// to die for as long as patience.
	Kill(patience time.Duration) proc.Killed
}

// Patience is how long End waits for what SIGKILL does not end: another
// user's process, or one in uninterruptible sleep.
const Patience = 10 * time.Second

// Ended says how a tree ended.
type Ended struct {
	// Count is how many processes took a signal, each counted once.
	Count int
	// Survivors are the processes that were still there at the end.
	Survivors []proc.Process
	// Proved says that nothing is left. Without it something survived, also
	// where none is named.
	Proved bool
}

// End ends a tree and returns when nothing is left of it, or nothing but what
// has refused SIGKILL for as long as Patience. Between SIGTERM and SIGKILL it
// waits for at most grace, and not at all once hurry is closed.
func End(tree Tree, grace time.Duration, hurry <-chan struct{}) Ended {
	select {
	case <-tree.Gone():
		return Ended{Proved: true}
	default:
	}
	terminated := tree.Terminate()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-tree.Gone():
		return Ended{Count: terminated, Proved: true}
	case <-timer.C:
	case <-hurry:
	}
	killed := tree.Kill(Patience)
	return Ended{Count: terminated + killed.Untold, Survivors: killed.Survivors, Proved: killed.Proved}
}
