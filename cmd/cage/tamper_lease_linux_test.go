package main

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// takeWriteLease takes a lease, which the kernel refuses while anybody else has
// the file open: the cage looks at it for a moment.
func takeWriteLease(file *os.File) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		_, err := unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
		if err != unix.EAGAIN || time.Now().After(deadline) {
			return err
		}
	}
}
