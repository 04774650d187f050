//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package console

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// stop stops the program, where its parent is a shell of its session, which
// can continue it. The default action of sig cannot be had: the Go runtime
// keeps its handler of a signal that was once received.
func stop(syscall.Signal) {
	parent := os.Getppid()
	group, errGroup := unix.Getpgid(parent)
	session, errSession := unix.Getsid(parent)
	own, errOwn := unix.Getsid(0)
	if errGroup == nil && errSession == nil && errOwn == nil && session == own && group != unix.Getpgrp() {
		_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
	}
}

// fread asks TIOCFLUSH for the input queue (sys/fcntl.h).
const fread = 1

func dropInput(fd int) error { return unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, fread) }
