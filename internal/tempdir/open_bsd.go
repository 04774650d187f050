//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package tempdir

import (
	"errors"

	"golang.org/x/sys/unix"
)

// open opens a directory in another one, and takes the rights that emptying it
// needs. It follows no link and crosses to no other file system.
func open(dir int, name string, of owner) (int, error) {
	var above, is unix.Stat_t
	if err := unix.Fstat(dir, &above); err != nil {
		return -1, err
	}
	if err := unix.Fstatat(dir, name, &is, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return -1, err
	}
	if is.Mode&unix.S_IFMT != unix.S_IFDIR {
		return -1, unix.ENOTDIR
	}
	if is.Dev != above.Dev {
		return -1, errMounted
	}
	if err := of.check(is); err != nil {
		return -1, err
	}
	if is.Mode&all != all {
		if err := unix.Fchmodat(dir, name, uint32(is.Mode)&0o7777|all, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return -1, err
		}
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	var opened unix.Stat_t
	if err := unix.Fstat(fd, &opened); err != nil || opened.Dev != is.Dev || opened.Ino != is.Ino {
		unix.Close(fd)
		return -1, errors.Join(err, unix.ENOTDIR)
	}
	return fd, nil
}
