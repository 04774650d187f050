package restore

import (
	"errors"
	"os"
	"time"

	"cage/internal/safefile"
	"cage/rules"
)

// litter is something of the restorer's own that could not be removed when it
// had served: somebody took the right to do so away.
type litter struct {
	// dir holds it, by a descriptor of its own; nil where there was none to have.
	dir *safefile.Dir
	// at is the path of that directory, and name what lies in it.
	at        rules.Path
	name      string
	directory bool
}

// maxHeld bounds how many descriptors litter takes. What lies in directories
// beyond that is looked for by path.
const maxHeld = 32

// leave remembers something to be removed later.
func (r *Restorer) leave(dir *safefile.Dir, at rules.Path, name string, directory bool) {
	l := litter{at: at, name: name, directory: directory}
	if len(r.litter) < maxHeld {
		l.dir, _ = dir.Again()
	}
	r.litter = append(r.litter, l)
}

// Tidy removes what earlier restores had to leave behind. It is to be called
// now and then.
func (r *Restorer) Tidy() { r.tidy(false) }

// Clear does the same at the end, when nobody takes rights away any more:
// directories that were known at the baseline give the right to it for the
// moment.
func (r *Restorer) Clear() { r.tidy(true) }

func (r *Restorer) tidy(insist bool) {
	// What was left first lies in what was left later.
	left := r.litter[:0]
	for _, l := range r.litter {
		if r.removes(l, insist) {
			if l.dir != nil {
				l.dir.Close()
			}
			continue
		}
		left = append(left, l)
	}
	clear(r.litter[len(left):])
	r.litter = left
	for p, gone := range r.own {
		if !gone.IsZero() && time.Since(gone) > ownFor {
			delete(r.own, p)
		}
	}
}

// removes reports whether something is not there any more.
func (r *Restorer) removes(l litter, insist bool) bool {
	dir := l.dir
	if dir == nil {
		found, err := r.trees.Dir(l.at)
		if safefile.Absent(err) {
			r.forget(l)
			return true
		}
		if err != nil {
			return false
		}
		defer found.Close()
		dir = found
	}
	remove := func() error {
		if l.directory {
			return dir.RemoveDir(l.name)
		}
		return dir.Remove(l.name)
	}
	err := remove()
	if insist && errors.Is(err, os.ErrPermission) {
		err = r.opened(dir, l.at, remove)
	}
	if err != nil && !safefile.Absent(err) {
		return false
	}
	r.forget(l)
	return true
}

// forget notes that litter has gone.
func (r *Restorer) forget(l litter) {
	if l.directory {
		r.disown(l.at.Join(l.name))
	}
}

// opened runs f in a directory that was known at the baseline, or is one of the
// restorer's own, and may not be written in as it is.
func (r *Restorer) opened(dir *safefile.Dir, p rules.Path, f func() error) error {
	const access = 0o300 // to write and search
	now, err := dir.Info()
	if err != nil {
		return err
	}
	if _, known := r.manifest.Directory(p); !known && !r.Owns(p) {
		return os.ErrPermission
	}
	if err := dir.Chmod(now.Perm | access); err != nil {
		return err
	}
	defer dir.Chmod(now.Perm)
	return f()
}

// ownFor is how long a path is known as the restorer's own after it has gone:
// longer than it takes until everybody has heard of that.
const ownFor = time.Minute

// Owns reports whether a directory of the restorer's own was made at p and
// stands there, or stood there a moment ago. Others may have put something else
// there since.
func (r *Restorer) Owns(p rules.Path) bool {
	_, own := r.own[p]
	return own
}

// disown notes that what was the restorer's own has gone.
func (r *Restorer) disown(p rules.Path) { r.own[p] = time.Now() }
