//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package proc

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Self returns the identity of this process.
func Self() (ID, error) { return Identify(os.Getpid()) }

// Newest returns 0: these systems do not tell which process they made last.
func Newest() int { return 0 }

// MayBeStopped reports whether the process lives: these systems tell no more in
// one call that all of them know.
func (id ID) MayBeStopped() bool { return id.Alive() }

// Signal sends a signal to this process, by number, right after its identity
// was compared. It returns ErrGone where the process has ended, and EPERM,
// wrapped, where it may not be signalled.
func (id ID) Signal(sig syscall.Signal) error {
	if !id.Alive() {
		return ErrGone
	}
	return id.signalError(sig, unix.Kill(id.PID, sig))
}

// Name returns nothing: what the process is called is not looked up here.
func (id ID) Name() string { return "" }
