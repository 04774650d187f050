//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

// Package tempdir makes and removes temporary directories that belong to one
// run, and removes what the cage keeps in folders that others can reach.
//
// It promises that a removal reaches nothing outside: it goes by open
// directories of this user, follows no link, crosses no mount, and leaves alone
// what stands in the place of the directory that was made. That of a temporary
// directory is not kept from its work by permissions, depth or names; of a folder
// only what the cage put there is removed. It does not defend a directory against
// the user that it belongs to.
package tempdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// prefix is how a directory is called before the id of its run.
const prefix = "gantry-cage-tmp-"

// Dir is the directory of a run that lives: while it is held, nobody takes it
// for one that was left.
type Dir struct {
	path string
	held *os.File
}

// Path is where the directory of a run lies in a parent.
func Path(parent, id string) string { return filepath.Join(parent, prefix+id) }

// Make makes the directory of a run, for this user alone. The id consists of
// letters and digits.
func Make(parent, id string) (*Dir, error) {
	if err := check(id); err != nil {
		return nil, err
	}
	d := &Dir{path: Path(parent, id)}
	if err := os.Mkdir(d.path, 0o700); err != nil {
		return nil, fmt.Errorf("make the private temporary directory: %w", err)
	}
	var err error
	if d.held, err = os.Open(d.path); err == nil {
		err = unix.Flock(int(d.held.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("hold the private temporary directory: %w", err), d.Remove())
	}
	return d, nil
}

// Path is where the directory was made.
func (d *Dir) Path() string { return d.path }

// ID is that of its run.
func (d *Dir) ID() string { return strings.TrimPrefix(filepath.Base(d.path), prefix) }

// Remove removes the directory with all that it holds. The error names the first
// thing that could not be removed. Another directory in its place stays, unless it
// is empty.
func (d *Dir) Remove() error {
	defer d.held.Close()
	return remove(filepath.Dir(d.path), filepath.Base(d.path), d.held)
}

// Remove removes the directory of a run that has ended without doing so. There
// may be none.
func Remove(parent, id string) error {
	if err := check(id); err != nil {
		return err
	}
	return remove(parent, prefix+id, nil)
}

func check(id string) error {
	for _, r := range id {
		if !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9') {
			return fmt.Errorf("%q names no run", id)
		}
	}
	if id == "" {
		return errors.New("no run is named")
	}
	return nil
}

// Left returns the directories of this user in a parent whose runs are gone.
func Left(parent string) ([]string, error) {
	entries, err := os.ReadDir(parent)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for private temporary directories: %w", err)
	}
	var left []string
	for _, entry := range entries {
		id, named := strings.CutPrefix(entry.Name(), prefix)
		if path := filepath.Join(parent, entry.Name()); named && check(id) == nil && isLeft(path) {
			left = append(left, path)
		}
	}
	return left, nil
}

// isLeft reports whether a directory is one of this user that nobody holds. Of one
// that cannot be opened nobody knows.
func isLeft(path string) bool {
	var is unix.Stat_t
	if err := unix.Lstat(path, &is); err != nil || is.Mode&unix.S_IFMT != unix.S_IFDIR || int(is.Uid) != os.Geteuid() {
		return false
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return !errors.Is(unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// remove removes a directory in a parent, which is the one that is held where one
// is.
func remove(parent, name string, held *os.File) error {
	err := removeIn(parent, name, held)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return fmt.Errorf("remove the private temporary directory %s: %w", filepath.Join(parent, name), err)
}

func removeIn(parent, name string, held *os.File) error {
	above, err := unix.Open(parent, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(above)
	top, err := open(above, name, theUsers)
	if err != nil {
		return err
	}
	defer unix.Close(top)
	if held != nil && !same(top, int(held.Fd())) {
		if unix.Unlinkat(above, name, unix.AT_REMOVEDIR) == nil {
			return nil
		}
		return errors.New("another directory stands in its place")
	}
	failed := (&emptying{top: top}).run()
	if err := unix.Unlinkat(above, name, unix.AT_REMOVEDIR); err != nil {
		return errors.Join(failed, err)
	}
	return nil
}

// same reports whether two descriptors are of the same directory.
func same(a, b int) bool {
	var one, other unix.Stat_t
	return unix.Fstat(a, &one) == nil && unix.Fstat(b, &other) == nil && one.Dev == other.Dev && one.Ino == other.Ino
}

// emptying removes what a directory holds. Whatever lies deeper is moved up into
// it before: there is no path that is too long, and never more than two
// directories are open.
type emptying struct {
	top   int
	moved int
	// first is the first thing that could not be removed.
	first error
}

// mostPasses bounds how often a directory is read again into which somebody who
// refused to die may still write.
const mostPasses = 16

func (e *emptying) run() error {
	for range mostPasses {
		e.first = nil
		names, err := list(e.top)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			return nil
		}
		progress := false
		for len(names) > 0 {
			name := names[len(names)-1]
			names = names[:len(names)-1]
			more, err := e.remove(name)
			if err != nil && !errors.Is(err, unix.ENOENT) {
				e.note(name, err)
			}
			progress = progress || err == nil
			names = append(names, more...)
		}
		if !progress {
			break
		}
	}
	return e.first
}

func (e *emptying) note(name string, err error) {
	if e.first == nil {
		e.first = &fs.PathError{Op: "remove", Path: name, Err: err}
	}
}

// remove removes one thing in the directory. Those are what it moved up for that.
func (e *emptying) remove(name string) (those []string, err error) {
	gone := unix.Unlinkat(e.top, name, 0)
	if gone == nil {
		return nil, nil
	}
	dir, err := open(e.top, name, anybodys)
	if err != nil {
		if errors.Is(err, unix.ENOTDIR) {
			return nil, gone // no directory: that was not why it stayed
		}
		return nil, err
	}
	defer unix.Close(dir)
	names, err := list(dir)
	if err != nil {
		return nil, err
	}
	for _, inner := range names {
		if unix.Unlinkat(dir, inner, 0) == nil {
			continue
		}
		up, err := e.moveUp(dir, inner)
		if err != nil {
			e.note(name+"/"+inner, err)
			continue
		}
		those = append(those, up)
	}
	return those, unix.Unlinkat(e.top, name, unix.AT_REMOVEDIR)
}

// moveUp moves what could not be removed in a directory into the top one.
func (e *emptying) moveUp(dir int, name string) (up string, err error) {
	// To move a directory takes the right to write it: its entry .. changes.
	inner, err := open(dir, name, anybodys)
	if err == nil {
		unix.Close(inner)
	} else if !errors.Is(err, unix.ENOTDIR) {
		return "", err
	}
	for {
		e.moved++
		up = "moved-" + strconv.Itoa(e.moved)
		err := unix.Renameat(dir, name, e.top, up)
		// Another directory of that name is in the way, or a file.
		if !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) && !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.EISDIR) {
			return up, err
		}
	}
}

// list returns the names in an open directory.
func list(dir int) ([]string, error) {
	fd, err := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "directory")
	defer f.Close()
	return f.Readdirnames(-1)
}

// owner says whose directories are opened.
type owner bool

const (
	theUsers owner = true
	anybodys owner = false
)

func (o owner) check(is unix.Stat_t) error {
	if o == theUsers && int(is.Uid) != os.Geteuid() {
		return errors.New("it belongs to another user")
	}
	return nil
}

// all is what a directory takes to be emptied.
const all = 0o700
