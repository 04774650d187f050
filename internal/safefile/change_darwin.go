package safefile

import "golang.org/x/sys/unix"

// renameNew renames to a name where nothing stands.
func renameNew(from *Dir, name string, to *Dir, newName string) error {
	return unix.RenameatxNp(from.fd, name, to.fd, newName, unix.RENAME_EXCL)
}

// exchange swaps two entries, whatever they are, in one step.
func exchange(a *Dir, nameA string, b *Dir, nameB string) error {
	return unix.RenameatxNp(a.fd, nameA, b.fd, nameB, unix.RENAME_SWAP)
}

// reserve makes sure that there is room for a content of length want in a file
// of the given size.
func reserve(fd int, size, want int64) error {
	if want <= size {
		return nil
	}
	return unix.FcntlFstore(uintptr(fd), unix.F_PREALLOCATE, &unix.Fstore_t{
		Flags: unix.F_ALLOCATEALL, Posmode: unix.F_PEOFPOSMODE, Length: want - size,
	})
}
