//go:build freebsd || netbsd || openbsd

package safefile

import "golang.org/x/sys/unix"

// renameNew fails: rename(2) here always replaces.
func renameNew(*Dir, string, *Dir, string) error { return unix.ENOSYS }

// exchange fails: rename(2) here always replaces.
func exchange(*Dir, string, *Dir, string) error { return unix.ENOSYS }

// reserve fails where the file would grow: nothing reserves space for it.
func reserve(_ int, size, want int64) error {
	if want <= size {
		return nil
	}
	return unix.EOPNOTSUPP
}
