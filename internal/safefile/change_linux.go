package safefile

import "golang.org/x/sys/unix"

// errNoAttr is what reading an attribute that is not there fails with.
const errNoAttr = unix.ENODATA

// An O_PATH descriptor takes no fchown(2) or fchmod(2); its empty path and its
// magic link do.

func chownDir(fd int, uid, gid uint32) error {
	return unix.Fchownat(fd, "", int(uid), int(gid), unix.AT_EMPTY_PATH)
}

func chmodDir(fd int, perm uint32) error {
	return unix.Fchmodat(unix.AT_FDCWD, selfFD(fd), perm, 0)
}

// renameNew renames to a name where nothing stands.
func renameNew(from *Dir, name string, to *Dir, newName string) error {
	return unix.Renameat2(from.fd, name, to.fd, newName, unix.RENAME_NOREPLACE)
}

// noRenameFlags reports whether the kernel or the file system knows no flags
// for renames (renameat2(2) answers EINVAL or ENOSYS).
func noRenameFlags(err error) bool {
	return err == unix.EINVAL || err == unix.ENOSYS || err == unix.EOPNOTSUPP
}

// exchange swaps two entries, whatever they are, in one step.
func exchange(a *Dir, nameA string, b *Dir, nameB string) error {
	return unix.Renameat2(a.fd, nameA, b.fd, nameB, unix.RENAME_EXCHANGE)
}

// create makes the unnamed file, or a named one where the file system has no
// unnamed files.
func (s *Staged) create() error {
	fd, err := createUnnamed(s.dir)
	if err == unix.EOPNOTSUPP || err == unix.EISDIR || err == unix.ENOENT {
		s.name = Token()
		fd, err = unix.Openat(s.dir.fd, s.name, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	}
	if err != nil {
		s.name = ""
		return err
	}
	s.fd = fd
	return nil
}

func createUnnamed(dir *Dir) (int, error) {
	return unix.Openat(dir.fd, ".", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
}

// linkFile gives an unnamed file a name, which must be free.
func (s *Staged) linkFile(dir *Dir, name string) error {
	return unix.Linkat(unix.AT_FDCWD, selfFD(s.fd), dir.fd, name, unix.AT_SYMLINK_FOLLOW)
}

func setTime(fd int, mtime int64) error {
	times := []unix.Timespec{{Nsec: unix.UTIME_NOW}, unix.NsecToTimespec(mtime)}
	return unix.UtimesNanoAt(unix.AT_FDCWD, selfFD(fd), times, 0)
}

func setLinkTime(dir int, name string, mtime int64) error {
	times := []unix.Timespec{{Nsec: unix.UTIME_NOW}, unix.NsecToTimespec(mtime)}
	return unix.UtimesNanoAt(dir, name, times, unix.AT_SYMLINK_NOFOLLOW)
}

// reserve makes sure that there is room for a content of length want.
func reserve(fd int, _, want int64) error {
	if want == 0 {
		return nil
	}
	return unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, 0, want)
}

// grant lets the owner of the original file open it: it gets the permission
// bits it shall have, and those to read and write.
func (d *Dir) grant(name string, original Inode, perm uint32) bool {
	const ownerReadWrite = 0o600
	fd, err := d.open(name, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || inodeOf(&st) != original {
		return false
	}
	return unix.Fchmodat(unix.AT_FDCWD, selfFD(fd), perm|ownerReadWrite, 0) == nil
}
