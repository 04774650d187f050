//go:build freebsd || netbsd || openbsd || dragonfly

package proc

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Identify returns the identity of the process that has this number now: the
// number alone, since golang.org/x/sys knows no listing of processes on these
// systems. It returns ErrGone where there is none.
func Identify(pid int) (ID, error) {
	err := unix.Kill(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return ID{}, ErrGone
	}
	if err != nil && !errors.Is(err, unix.EPERM) {
		return ID{}, fmt.Errorf("looking up process %d: %w", pid, err)
	}
	return ID{PID: pid}, nil
}

// identifyChild identifies a child that was not waited for yet. Some of these
// systems deny that a zombie exists.
func identifyChild(pid int) (ID, error) { return ID{PID: pid}, nil }

// Alive reports whether there is a process of this number.
func (id ID) Alive() bool {
	_, err := Identify(id.PID)
	return err == nil
}

// childrenByParent is empty: processes cannot be listed.
func childrenByParent() map[int][]Process { return nil }

// Limits names, a sentence each, what this machine cannot hold of the
// package's promises.
func Limits() []string {
	return append([]string{
		"processes cannot be listed on this system: of a tree only the command itself is ended, and nothing proves that the rest is gone",
		"processes have no start time on this system: their number is their identity",
	}, deathLimits()...)
}
