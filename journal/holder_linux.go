package journal

import (
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// kernelHolder returns the number of the process that took the lock of an open
// file, as the kernel has it (proc_locks(5)); false where it does not show: for
// a process in another pid namespace, or on file systems whose files have
// another device number there (btrfs).
func kernelHolder(f *os.File) (pid int, ok bool) {
	info, err := f.Stat()
	if err != nil {
		return 0, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(locks)) {
		// 1: FLOCK ADVISORY WRITE 1234 fe:00:5678 0 EOF
		fields := strings.Fields(line)
		const kind, taker, file = 1, 4, 5
		if len(fields) > file && fields[kind] == "FLOCK" && isFile(fields[file], uint64(stat.Dev), stat.Ino) {
			pid, err := strconv.Atoi(fields[taker])
			return pid, err == nil && pid > 0
		}
	}
	return 0, false
}

// isFile reports whether a device and inode, as the kernel spells them, are
// those.
func isFile(spelled string, dev, ino uint64) bool {
	parts := strings.Split(spelled, ":")
	if len(parts) != 3 {
		return false
	}
	major, errMajor := strconv.ParseUint(parts[0], 16, 32)
	minor, errMinor := strconv.ParseUint(parts[1], 16, 32)
	inode, errInode := strconv.ParseUint(parts[2], 10, 64)
	return errMajor == nil && errMinor == nil && errInode == nil &&
		uint32(major) == unix.Major(dev) && uint32(minor) == unix.Minor(dev) && inode == ino
}
