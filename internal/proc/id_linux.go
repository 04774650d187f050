package proc

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Self returns the identity of this process. It fails where /proc is missing
// or shows another pid namespace.
func Self() (ID, error) {
	link, err := os.Readlink("/proc/self")
	if err != nil {
		return ID{}, fmt.Errorf("finding this process in /proc: %w", err)
	}
	pid := os.Getpid()
	if link != fmt.Sprint(pid) {
		return ID{}, fmt.Errorf("finding this process in /proc: it is process %d here and %s there: /proc belongs to another pid namespace; mount this one's own there (mount -t proc proc /proc, unshare --mount-proc)", pid, link)
	}
	return Identify(pid)
}

// Identify returns the identity of the process that has this number now, which
// may be a zombie. It returns ErrGone where there is none.
func Identify(pid int) (ID, error) {
	s, err := readStat(pid)
	if err != nil {
		return ID{}, err
	}
	return ID{PID: pid, Start: s.start}, nil
}

// identifyChild identifies a child that was not waited for yet.
func identifyChild(pid int) (ID, error) { return Identify(pid) }

// Alive reports whether the process still runs; a zombie does not.
func (id ID) Alive() bool {
	_, err := id.stat()
	return err == nil
}

// Name returns the kernel's short name for the process; empty where it is gone.
func (id ID) Name() string {
	s, err := id.stat()
	if err != nil {
		return ""
	}
	return s.name
}

// MayBeStopped reports whether the process is stopped, by job control or a
// signal.
func (id ID) MayBeStopped() bool {
	s, err := id.stat()
	return err == nil && s.stopped()
}

// stat reads the entry of this very process while it runs, else ErrGone.
func (id ID) stat() (stat, error) {
	s, err := readStat(id.PID)
	if err != nil {
		return stat{}, err
	}
	if s.start != id.Start || !s.live() {
		return stat{}, ErrGone
	}
	return s, nil
}

// Signal sends a signal to this very process. It returns ErrGone where the
// process has ended, and EPERM, wrapped, where it may not be signalled.
//
// A pidfd is opened first and the start time compared afterwards: a descriptor
// keeps naming the process that it was opened for, so what was compared is what
// is signalled. Where there are no pidfds (before Linux 5.3, or forbidden by a
// seccomp profile) the process number is used right after the comparison.
func (id ID) Signal(sig syscall.Signal) error {
	fd, err := unix.PidfdOpen(id.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return ErrGone
	}
	if err != nil {
		return id.signalByNumber(sig)
	}
	defer unix.Close(fd)
	if _, err := id.stat(); err != nil {
		return err
	}
	err = unix.PidfdSendSignal(fd, sig, nil, 0)
	if errors.Is(err, unix.ENOSYS) {
		return id.signalByNumber(sig)
	}
	return id.signalError(sig, err)
}

func (id ID) signalByNumber(sig syscall.Signal) error {
	if _, err := id.stat(); err != nil {
		return err
	}
	return id.signalError(sig, unix.Kill(id.PID, sig))
}

// Limits names, a sentence each, what this machine cannot hold of the
// package's promises. It is empty where all of them hold.
func Limits() []string {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return []string{fmt.Sprintf("pidfd_open fails here (%v): processes are signalled by number, right after their start time was compared", err)}
	}
	unix.Close(fd)
	return nil
}
