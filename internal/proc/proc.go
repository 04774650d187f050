//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

// Package proc holds processes: their identity, the one place that waits for
// children, and the means to end a tree of them.
//
// It promises that a signal meant for one process never reaches another that
// got its number later; that every child of the program is waited for here and
// nowhere else; and, on Linux, that a tree is called gone only when the kernel
// has said so: the program is a child subreaper, every orphan of the tree
// becomes its child, and wait4 answers ECHILD. A scan of the process list finds
// whom to signal and is never taken as proof that nobody is left, because a
// process younger than the scan is not in it.
//
// It does not decide when a tree ends nor how long it may take over it, and it
// cannot reach work that was handed to a process outside the tree.
//
// macOS and the BSDs are given less. There is no subreaper, so an orphan that
// was never listed while its parent lived is lost sight of, and no answer of
// the kernel proves the end. Signals go by process number, checked against the
// start time immediately before. macOS lists processes; on the BSDs only the
// command itself is known and ended. Only FreeBSD knows a parent-death signal.
// Limits returns those of the machine at hand.
package proc

import (
	"errors"
	"fmt"
	"syscall"
)

// ErrGone is returned where a process has ended, zombies included, or where
// its number belongs to another one by now.
var ErrGone = errors.New("process is gone")

// ID is the identity of a process. It is a map key: equal processes are equal
// values, for as long as the machine is up.
type ID struct {
	PID int
	// Start is when the process started: in clock ticks since the boot on
	// Linux, in microseconds since the epoch on macOS, and 0 on systems that
	// do not tell.
	Start uint64
}

// signalError is what Signal returns for the system's answer.
func (id ID) signalError(sig syscall.Signal, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ESRCH):
		return ErrGone
	default:
		return fmt.Errorf("sending signal %d to process %d: %w", int(sig), id.PID, err)
	}
}

// Process is a process as a listing saw it.
type Process struct {
	ID
	// Parent is the number of its parent at that time.
	Parent int
	// Name is the kernel's short name for it: a handful of arbitrary bytes
	// chosen by the process.
	Name string
}

// Exit says how a process ended.
type Exit struct {
	// Code is the exit code, and 0 where a signal ended the process.
	Code int
	// Signal is the signal that ended the process, or 0.
	Signal syscall.Signal
}

// Status returns the exit as a shell spells it: the code, or 128 and the
// signal's number.
func (e Exit) Status() int {
	if e.Signal != 0 {
		return 128 + int(e.Signal)
	}
	return e.Code
}

func (e Exit) String() string {
	if e.Signal != 0 {
		return fmt.Sprintf("signal %d (%v)", int(e.Signal), e.Signal)
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

func exitOf(status syscall.WaitStatus) Exit {
	if status.Signaled() {
		return Exit{Signal: status.Signal()}
	}
	return Exit{Code: status.ExitStatus()}
}
