package snapshot_test

import (
	"os"

	"golang.org/x/sys/unix"
)

func setAttribute(name string) error { return unix.Setxattr(name, "user.cage-test", []byte("x"), 0) }

// leases reports whether the file system of a file knows leases.
func leases(name string) bool {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	return err == unix.EAGAIN
}
