package safefile

import "golang.org/x/sys/unix"

func mountedOn(fs *unix.Statfs_t) string { return unix.ByteSliceToString(fs.F_mntonname[:]) }
