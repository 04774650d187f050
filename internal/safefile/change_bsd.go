//go:build darwin || freebsd || netbsd || openbsd

package safefile

import "golang.org/x/sys/unix"

func chownDir(fd int, uid, gid uint32) error { return unix.Fchown(fd, int(uid), int(gid)) }

func chmodDir(fd int, perm uint32) error { return unix.Fchmod(fd, perm) }

// noRenameFlags reports whether the file system knows no flags for renames.
func noRenameFlags(err error) bool {
	return err == unix.EINVAL || err == unix.ENOSYS || err == unix.ENOTSUP || err == unix.EOPNOTSUPP
}

// create makes a file with a random name: no kernel here has unnamed ones that
// can be given a name.
func (s *Staged) create() error {
	name := Token()
	fd, err := openAt(s.dir.fd, name, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR)
	if err != nil {
		return err
	}
	s.fd, s.name = fd, name
	return nil
}

func createUnnamed(*Dir) (int, error) { return -1, unix.ENOSYS }

// linkFile gives the file another name, which must be free.
func (s *Staged) linkFile(dir *Dir, name string) error {
	return unix.Linkat(s.dir.fd, s.name, dir.fd, name, 0)
}

// setTime sets the time to the microsecond: x/sys has no futimens(2) here, and
// by its name another file could be meant.
func setTime(fd int, mtime int64) error {
	at := unix.NsecToTimeval(mtime)
	return unix.Futimes(fd, []unix.Timeval{at, at})
}

func setLinkTime(dir int, name string, mtime int64) error {
	at := unix.NsecToTimespec(mtime)
	return unix.UtimesNanoAt(dir, name, []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW)
}

// grant does nothing: a file that may not be opened can be named here only by
// its path, where another one may stand.
func (d *Dir) grant(string, Inode, uint32) bool { return false }
