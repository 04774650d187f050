package pushguard

import (
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// Usable reports an error where the folder of a guard would be of no use in a
// temporary directory, because nothing may be executed there. It makes nothing.
func Usable(temp string) error {
	var mount unix.Statfs_t
	err := unix.Statfs(temp, &mount)
	if err == nil && mount.Flags&unix.ST_NOEXEC != 0 {
		err = &fs.PathError{Op: "execute", Path: temp, Err: unix.EACCES}
	}
	if err != nil {
		return fmt.Errorf("make the push guard's folder: %w", err)
	}
	return nil
}
