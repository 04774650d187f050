package restore

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"cage/internal/safefile"
	"cage/rules"
)

// way goes from an anchor down to a directory and clears what keeps the owner
// out: a mount that was put there, a mode that was changed.
type way struct {
	*Restorer
	result *Result
	// rebuilds says that directories which are not there any more are made
	// again, and what stands in their place is moved away.
	rebuilds bool
}

// parent opens the directory that holds p and rebuilds it where it is not what
// it was.
func (w way) parent(p rules.Path) (*safefile.Dir, error) {
	dir, err := w.trees.Dir(p.Dir())
	for range attempts {
		if err == nil {
			return dir, nil
		}
		dir, err = w.descend(p.Dir())
		// Somebody may be changing the same directories: look again.
		if !w.rebuilds || !safefile.Absent(err) && !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return dir, err
}

// descend goes to the directory p, component by component, and mends the first
// that it cannot enter: outermost first.
func (w way) descend(p rules.Path) (*safefile.Dir, error) {
	at := rules.Path{Anchor: p.Anchor}
	dir, err := w.trees.Dir(at)
	if err != nil {
		return nil, err
	}
	if p.Rel == "" {
		return dir, nil
	}
	for name := range strings.SplitSeq(p.Rel, "/") {
		next, err := w.enter(dir, at, name)
		dir.Close()
		if err != nil {
			return nil, err
		}
		dir, at = next, at.Join(name)
	}
	return dir, nil
}

// enter opens the subdirectory called name and mends it where that fails.
func (w way) enter(dir *safefile.Dir, at rules.Path, name string) (*safefile.Dir, error) {
	next, err := dir.Dir(name)
	if err == nil {
		return next, nil
	}
	if err := w.mend(dir, at, name, err); err != nil {
		return nil, err
	}
	return dir.Dir(name)
}

// mend clears the reason why a subdirectory could not be entered.
func (w way) mend(dir *safefile.Dir, at rules.Path, name string, why error) error {
	p := at.Join(name)
	switch {
	case errors.Is(why, safefile.ErrMounted):
		return w.uncover(p, w.result)
	case errors.Is(why, fs.ErrPermission):
		return w.reset(dir, at)
	case w.rebuilds && safefile.Missing(why):
		return w.work(dir, at, func() error { return w.mkdir(dir, p) })
	case w.rebuilds && safefile.Obstructed(why):
		return w.work(dir, at, func() error {
			if err := w.moveAway(dir, p, w.result); err != nil {
				return err
			}
			return w.mkdir(dir, p)
		})
	}
	return why
}

// reset gives a known directory the owner and mode that it had at the
// baseline. An owner that may not be set is left.
func (w way) reset(dir *safefile.Dir, p rules.Path) error {
	known, ok := w.manifest.Directory(p)
	if !ok {
		return &fs.PathError{Op: "enter", Path: p.Rel, Err: fs.ErrPermission}
	}
	_, err := dir.Own(known.Perm, known.UID, known.GID)
	if err == nil && !slices.Contains(w.result.Reset, p) {
		w.result.Reset = append(w.result.Reset, p)
	}
	return err
}

// work runs f, which changes entries of dir, with its owner's right to do so: a
// known directory that lost it gets it back, and one that never had it has it
// for the moment. Where that may not be given, f fails and says so.
func (w way) work(dir *safefile.Dir, p rules.Path, f func() error) error {
	const access = 0o300 // to write and search
	known, ok := w.manifest.Directory(p)
	now, err := dir.Info()
	if err != nil || !ok || now.Perm&access == access {
		return f()
	}
	if now.Perm != known.Perm {
		_ = w.reset(dir, p)
	}
	if known.Perm&access != access && dir.Chmod(known.Perm|access) == nil {
		defer dir.Chmod(known.Perm)
	}
	return f()
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

// Reset gives a known directory the owner and mode that it had at the baseline.
// One that is gone is left so: what was in it is put back for itself.
func (r *Restorer) Reset(p rules.Path) Result {
	var result Result
	dir, err := way{Restorer: r, result: &result}.descend(p)
	if err != nil {
		result.Err = safefile.UnlessAbsent(err)
		return result
	}
	defer dir.Close()
	if known, ok := r.manifest.Directory(p); ok {
		unowned, err := dir.Own(known.Perm, known.UID, known.GID)
		result.Err = cmp.Or(err, unowned)
	}
	return result
}
