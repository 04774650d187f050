package proc

import (
	"errors"
	"runtime"

	"golang.org/x/sys/unix"
)

// room is how many processes and threads a command leaves to whoever keeps it: as
// many as a session, its keeper and their helpers may take.
func room(limit uint64) uint64 {
	return min(limit/4, uint64(16+2*runtime.GOMAXPROCS(0)))
}

// leavingRoom forks a process that is held to fewer processes than this program.
// At its own limit a Go program that needs another thread is ended by its
// runtime, and a fork bomb would take its keeper along. Where that room is taken
// already it forks without.
func leavingRoom(fork func() (int, error)) (pid int, err error) {
	var own unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NPROC, &own) != nil || own.Cur == unix.RLIM_INFINITY {
		return fork()
	}
	lower := unix.Rlimit{Cur: own.Cur - room(own.Cur), Max: own.Max}
	if unix.Setrlimit(unix.RLIMIT_NPROC, &lower) != nil {
		return fork()
	}
	pid, err = fork()
	_ = unix.Setrlimit(unix.RLIMIT_NPROC, &own) // up to the hard limit it is always allowed
	if errors.Is(err, unix.EAGAIN) {
		return fork()
	}
	return pid, err
}
