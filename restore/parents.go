package restore

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"cage/internal/safefile"
	"cage/rules"
)

// parent opens the directory that holds p and rebuilds it where it is not what
// it was.
func (r *Restorer) parent(p rules.Path, result *Result) (*safefile.Dir, error) {
	dir, err := r.trees.Dir(p.Dir())
	if err == nil {
		return r.reachable(dir, p)
	}
	for range attempts {
		dir, err = r.rebuild(p.Dir(), result)
		if err == nil {
			return r.reachable(dir, p)
		}
		// Somebody is changing the same directories: look again.
		if !safefile.Missing(err) && !safefile.Obstructed(err) && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	return nil, err
}

// reachable puts the mode of the parent back where it keeps its owner from the
// entries in it.
func (r *Restorer) reachable(dir *safefile.Dir, p rules.Path) (*safefile.Dir, error) {
	_, err := dir.Stat(p.Base())
	if errors.Is(err, fs.ErrPermission) || r.unwritable(dir, p.Dir()) {
		if err := r.remode(dir, p.Dir()); err != nil {
			dir.Close()
			return nil, err
		}
	}
	return dir, nil
}

// unwritable reports whether a known directory lost its owner's write
// permission since the baseline.
func (r *Restorer) unwritable(dir *safefile.Dir, p rules.Path) bool {
	const ownerWrite = 0o200
	known, ok := r.manifest.Directory(p)
	if !ok || known.Perm&ownerWrite == 0 {
		return false
	}
	now, err := dir.Info()
	return err == nil && now.Perm&ownerWrite == 0
}

// remode gives a known directory the mode it had at the baseline.
func (r *Restorer) remode(dir *safefile.Dir, p rules.Path) error {
	known, ok := r.manifest.Directory(p)
	if !ok {
		return &fs.PathError{Op: "enter", Path: p.Rel, Err: fs.ErrPermission}
	}
	return dir.Chmod(known.Perm)
}

// rebuild goes from the anchor to the directory p, component by component, and
// mends the first that is not a directory it can enter: outermost first.
func (r *Restorer) rebuild(p rules.Path, result *Result) (*safefile.Dir, error) {
	at := rules.Path{Anchor: p.Anchor}
	dir, err := r.trees.Dir(at)
	if err != nil {
		return nil, err
	}
	if p.Rel == "" {
		return dir, nil
	}
	for name := range strings.SplitSeq(p.Rel, "/") {
		next, err := r.enter(dir, at, name, result)
		dir.Close()
		if err != nil {
			return nil, err
		}
		dir, at = next, at.Join(name)
	}
	return dir, nil
}

// enter opens the subdirectory called name and mends it where that fails.
func (r *Restorer) enter(dir *safefile.Dir, at rules.Path, name string, result *Result) (*safefile.Dir, error) {
	next, err := dir.Dir(name)
	switch {
	case err == nil:
		return next, nil
	case errors.Is(err, safefile.ErrMounted):
		err = r.uncover(at.Join(name))
	case errors.Is(err, fs.ErrPermission):
		err = r.remode(dir, at)
	case safefile.Missing(err):
		err = r.mkdir(dir, at.Join(name))
	case safefile.Obstructed(err):
		if err = r.moveAway(dir, at.Join(name), result); err == nil {
			err = r.mkdir(dir, at.Join(name))
		}
	}
	if err != nil {
		return nil, err
	}
	return dir.Dir(name)
}

// mkdir makes a directory as it was at the baseline.
func (r *Restorer) mkdir(dir *safefile.Dir, p rules.Path) error {
	known, ok := r.manifest.Directory(p)
	if !ok {
		const ordinary = 0o755
		known = safefile.Info{Perm: ordinary, UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	}
	return dir.Mkdir(p.Base(), known.Perm, known.UID, known.GID)
}
