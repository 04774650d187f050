package main

import (
	"os"

	"golang.org/x/sys/unix"
)

func takeWriteLease(file *os.File) error {
	_, err := unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
	return err
}
