//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package tempdir

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Folder is a directory of the cage's own with a path that everybody may know.
// It is held open, with the directory that it lies in: what becomes of it goes
// by those, whatever its path leads to by then. Nothing of anybody's is removed
// with it.
type Folder struct {
	path string
	dir  *os.Root
	// above is nil where that directory cannot be read.
	above *os.Root
	// self and selfAbove are the same directories as files. A file serves also
	// where somebody has closed the directory, in which an os.Root finds not even
	// ".", and where a filter refuses the new fchmodat2(2), as which it chmods.
	self, selfAbove *os.File
}

// Hold holds a directory that stands at a path. A link is none.
func Hold(path string) (*Folder, error) {
	f := &Folder{path: path}
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: unix.ENOTDIR}
	}
	if f.dir, f.self, err = openTwice(path); err != nil {
		return nil, err
	}
	f.above, f.selfAbove, _ = openTwice(filepath.Dir(path)) // its own path serves as well then
	if !f.is(info) {
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: path, Err: unix.ENOENT} // it was another one
	}
	return f, nil
}

// openTwice opens a directory as a root and as a file.
func openTwice(path string) (*os.Root, *os.File, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, nil, err
	}
	file, err := root.Open(".")
	if err != nil {
		root.Close()
		return nil, nil, err
	}
	return root, file, nil
}

// Dir is the directory, open.
func (f *Folder) Dir() *os.Root { return f.dir }

// Close lets go of the directory.
func (f *Folder) Close() error {
	if f.above != nil {
		f.above.Close()
		f.selfAbove.Close()
	}
	f.self.Close()
	return f.dir.Close()
}

// MakePrivate lets nobody but the owner into the directory, whatever somebody
// made of its mode.
func (f *Folder) MakePrivate() error {
	const ownerOnly = 0o700
	info, err := f.self.Stat()
	if err != nil || info.Mode().Perm() == ownerOnly {
		return err
	}
	return f.self.Chmod(ownerOnly)
}

// is reports whether that is the directory.
func (f *Folder) is(info fs.FileInfo) bool {
	own, err := f.self.Stat()
	return err == nil && os.SameFile(info, own)
}

// Stands reports whether its path leads to the directory.
func (f *Folder) Stands() bool {
	info, err := os.Lstat(f.path)
	return err == nil && f.is(info)
}

// Moved reports whether its path leads elsewhere than to the directory that it
// was made in.
func (f *Folder) Moved() bool {
	if f.above == nil {
		return false
	}
	there, errThere := os.Stat(filepath.Dir(f.path))
	own, errOwn := f.selfAbove.Stat()
	return errThere != nil || errOwn != nil || !os.SameFile(there, own)
}

// Empty removes what the cage made in the directory, which are the files with
// names that made says. It returns the names of whatever else lies there.
func (f *Folder) Empty(made func(name string) bool) (others []string, err error) {
	if err := f.MakePrivate(); err != nil {
		return nil, err
	}
	names, err := f.names()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		info, lookErr := f.dir.Lstat(name)
		switch {
		case errors.Is(lookErr, fs.ErrNotExist):
		case lookErr == nil && !info.IsDir() && made(name):
			if err := f.dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		default:
			others = append(others, name)
		}
	}
	return others, nil
}

func (f *Folder) names() ([]string, error) {
	entries, err := fs.ReadDir(f.dir.FS(), ".")
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // it was removed
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, nil
}

// SetAside takes what somebody put into the directory out of it, whole, and
// returns its path. Of what holds nothing itself nothing is left.
func (f *Folder) SetAside(name string) (place string, err error) {
	return f.setAside(f.dir, name, filepath.Join(filepath.Base(f.path), name), func() bool { return f.lies() && !f.Moved() })
}

// SetPlaceAside does the same with whatever stands in the directory's place.
func (f *Folder) SetPlaceAside() (place string, err error) {
	if f.above == nil {
		return "", &fs.PathError{Op: "set aside", Path: f.path, Err: unix.EACCES}
	}
	name := filepath.Base(f.path)
	return f.setAside(f.above, name, name, func() bool { return !f.Moved() })
}

func (f *Folder) setAside(in *os.Root, name, fromAbove string, reachable func() bool) (place string, err error) {
	info, err := in.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if HoldsNothing(info) || info.IsDir() {
		err := in.Remove(name)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		if errors.Is(err, unix.EBUSY) {
			return "", &fs.PathError{Op: "set aside", Path: filepath.Join(filepath.Dir(f.path), fromAbove), Err: errMounted}
		}
		if !info.IsDir() {
			return "", err
		}
	}
	if f.above == nil || !reachable() {
		return "", &fs.PathError{Op: "set aside", Path: name, Err: errMoved}
	}
	var id [8]byte
	rand.Read(id[:]) // never fails
	aside := asidePrefix + hex.EncodeToString(id[:])
	if err := f.above.Rename(fromAbove, aside); err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(f.path), aside), nil
}

// asidePrefix is how that is called which somebody put where it does not belong.
const asidePrefix = "gantry-cage-found-"

var (
	errMounted = errors.New("something is mounted there")
	errMoved   = errors.New("its directory was moved")
)

// HoldsNothing reports whether a file is one that keeps nothing of anybody's.
func HoldsNothing(info fs.FileInfo) bool {
	return !info.IsDir() && (!info.Mode().IsRegular() || info.Size() == 0)
}

// lies reports whether the directory has its name where it was made.
func (f *Folder) lies() bool {
	if f.above == nil {
		return f.Stands()
	}
	info, err := f.above.Lstat(filepath.Base(f.path))
	return err == nil && f.is(info)
}

// Remove removes the directory, if it is empty, from where it was made. One that
// was moved away stays where it is.
func (f *Folder) Remove() error {
	if !f.lies() {
		return nil
	}
	var err error
	if f.above == nil {
		err = os.Remove(f.path)
	} else {
		err = f.above.Remove(filepath.Base(f.path))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Clear removes what the cage made in the directory, and the directory. It is an
// error that something else lies there, or stands in its place: that stays.
func (f *Folder) Clear(made func(name string) bool) error {
	others, err := f.Empty(made)
	switch {
	case err != nil:
		return err
	case len(others) > 0:
		return fmt.Errorf("%s holds what the cage did not put there: %q", f.path, others[0])
	}
	if err := f.Remove(); err != nil {
		return err
	}
	if _, err := os.Lstat(f.path); err == nil {
		return fmt.Errorf("something else stands in the place of %s", f.path)
	}
	return nil
}
