//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package proc

import (
	"errors"
	"time"
)

// Program is a process that this program did not start, with what descends from
// it. Who is of it only a listing says: what has left the tree before it was
// ever listed is not found.
type Program interface {
	// Process is the process as it was found.
	Process() Process
	// Exited is closed when the process has ended. What it started may live on.
	Exited() <-chan struct{}
	// Gone is closed when, after Terminate or Kill, a listing shows nothing that
	// lives.
	Gone() <-chan struct{}
	// Processes lists what lives, the process first. What was listed once is
	// followed after its parent has ended, so that listing often misses less.
	Processes() ([]Process, error)
	// Terminate sends SIGTERM to every process, wakes those that are stopped,
	// and returns how many took it.
	Terminate() int
	// Kill stops every process, so that none makes another one, and ends them.
	// It returns when a listing shows nothing, or nothing but what has refused
	// to die for as long as patience. What it proves is the listing's word.
	Kill(patience time.Duration) Killed
	// Close lets go of the program, which lives on.
	Close() error
}

// The reasons why Attach refuses a process, beside ErrGone and EPERM.
var (
	// ErrAncestor: it is this program or one above it, which an end of its tree
	// would reach.
	ErrAncestor = errors.New("it is this program, or one that this program was started from")
	// ErrThread: the number is that of a thread other than the first.
	ErrThread = errors.New("it is a thread, not a process")
	// ErrNoAttach: the system cannot hold on to a process without reusing its
	// number.
	ErrNoAttach = errors.New("this system has no pidfds, without which a process number may come to mean another process")
)
