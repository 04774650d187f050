package tempdir

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

// open opens a directory in another one, and takes the rights that emptying it
// needs. It follows no link, and crosses no mount, a bind mount of the same file
// system included.
func open(dir int, name string, of owner) (int, error) {
	// A directory without rights can be opened by its path only.
	place, err := unix.Openat2(dir, name, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if errors.Is(err, unix.EXDEV) {
		return -1, errMounted
	}
	if errors.Is(err, unix.ELOOP) {
		return -1, unix.ENOTDIR
	}
	if err != nil {
		return -1, err
	}
	defer unix.Close(place)
	var is unix.Stat_t
	if err := unix.Fstat(place, &is); err != nil {
		return -1, err
	}
	if err := of.check(is); err != nil {
		return -1, err
	}
	if is.Mode&all != all {
		// There is no fchmod for such a descriptor (open(2)).
		if err := unix.Chmod("/proc/self/fd/"+strconv.Itoa(place), is.Mode&0o7777|all); err != nil {
			return -1, err
		}
	}
	return unix.Openat(place, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}
