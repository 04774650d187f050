//go:build darwin || freebsd || openbsd

package safefile

import "golang.org/x/sys/unix"

// mountPoints lists where file systems are mounted (getfsstat(2)).
func mountPoints() ([]string, error) {
	for room := 64; ; room *= 2 {
		mounts := make([]unix.Statfs_t, room)
		n, err := unix.Getfsstat(mounts, unix.MNT_NOWAIT)
		if err != nil {
			return nil, err
		}
		if n == room {
			continue
		}
		points := make([]string, n)
		for i := range points {
			points[i] = mountedOn(&mounts[i])
		}
		return points, nil
	}
}
