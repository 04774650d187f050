package snapshot

import (
	"cage/internal/safefile"
	"cage/rules"
)

// Visitor is told what a walk meets.
type Visitor struct {
	// Enter is called for a directory after it was opened and before it is
	// read, so that a watch set there misses nothing.
	Enter func(dir rules.Path)
	// Found is called for everything that the plan classifies, and for symlinks
	// on the way to places that revert rules name by their path.
	Found func(p rules.Path, kind safefile.Kind, v rules.Verdict)
	// Denied is called for a directory that could not be entered: its mode
	// forbids it, or a mount was put over it.
	Denied func(dir rules.Path, err error)
	// Unseen is called for a directory of which the walk learnt nothing, or not
	// everything: the look failed for a reason that is none of the directory's. So
	// it is for what may be a directory.
	Unseen func(dir rules.Path, err error)
}

// Walk goes through the anchors as far as the plan wants to see them.
func Walk(trees *Trees, plan *rules.Plan, v Visitor) {
	for _, top := range plan.Tops() {
		WalkBelow(trees, plan, top, v)
	}
}

// WalkBelow goes through one directory and what lies below it.
func WalkBelow(trees *Trees, plan *rules.Plan, dir rules.Path, v Visitor) {
	if !plan.Enter(dir) {
		return
	}
	open, err := trees.Dir(dir)
	if err != nil {
		v.deny(dir, err)
		return
	}
	w := walker{trees: trees, plan: plan, Visitor: v}
	w.walk(dir, open, 0)
}

// heldLevels is how many directories a walk holds open, one in the other. What
// lies deeper, or where there are not as many descriptors to be had, is opened
// by its path when the one above is closed.
const heldLevels = 16

type walker struct {
	trees *Trees
	plan  *rules.Plan
	Visitor
}

// walk visits an open directory, which it closes, so many levels down.
func (w *walker) walk(dir rules.Path, open *safefile.Dir, level int) {
	deeper := w.visit(dir, open, level)
	open.Close()
	for _, p := range deeper {
		below, err := w.trees.DirToRead(p)
		if err != nil {
			w.deny(p, err)
			continue
		}
		w.walk(p, below, level+1)
	}
}

// visit goes through an open directory, and returns the subdirectories that are
// to be walked when it is closed.
func (w *walker) visit(dir rules.Path, open *safefile.Dir, level int) (deeper []rules.Path) {
	if w.Enter != nil {
		w.Enter(dir)
	}
	entries, err := open.ReadDir()
	if err != nil {
		w.deny(dir, err)
	}
	return w.meet(dir, open, level, entries)
}

// meet goes through the entries of a directory.
func (w *walker) meet(dir rules.Path, open *safefile.Dir, level int, entries []safefile.DirEntry) (deeper []rules.Path) {
	for _, entry := range entries {
		p := dir.Join(entry.Name)
		if entry.Kind == safefile.Directory {
			if w.plan.Enter(p) && (level >= heldLevels || !w.descend(p, open, level+1)) {
				deeper = append(deeper, p)
			}
			continue
		}
		classify := w.plan.Classify
		if entry.Kind == safefile.Symlink {
			classify = w.plan.ClassifyRecorded // it may lead to what a rule names by its path
		}
		verdict, ok := classify(p)
		if ok && w.Found != nil {
			w.Found(p, entry.Kind, verdict)
		}
		if entry.Err != nil && w.plan.Enter(p) && (!ok || w.plan.Covers(p)) {
			w.deny(p, entry.Err) // it may be a directory
		}
	}
	return deeper
}

// descend enters a subdirectory. It reports false where it lacked a descriptor.
func (w *walker) descend(p rules.Path, parent *safefile.Dir, level int) bool {
	open, err := parent.DirToRead(p.Base())
	switch {
	case safefile.Exhausted(err):
		return false
	case err != nil:
		w.deny(p, err)
	default:
		w.walk(p, open, level)
	}
	return true
}

func (v Visitor) deny(dir rules.Path, err error) {
	// A directory that went away or was swapped while the walk came by is
	// reported by the events of its parent.
	switch {
	case safefile.Hidden(err) && v.Denied != nil:
		v.Denied(dir, err)
	case safefile.Unseen(err) && v.Unseen != nil:
		v.Unseen(dir, err)
	}
}

// Survey is what a walk of the trees met.
type Survey struct {
	// Found is everything that a Visitor's Found is called for.
	Found []rules.Path
	// Denied are directories that could not be entered.
	Denied []rules.Path
	// Unseen are directories of which the walk learnt nothing, or not
	// everything.
	Unseen []Unseen
	// Covered are the directories that are, or lie in, trees under a revert
	// rule.
	Covered []rules.Path
	// Doubtful are the directories that the plan finds so.
	Doubtful []rules.Path
	// Directories counts those that were entered.
	Directories int
}

// Unseen is a place that a look learnt nothing about, and why.
type Unseen struct {
	Path rules.Path
	Err  error
}

// Look walks the trees for everything that the plan classifies. The hooks, nil
// where they are not wanted, are called as those of a Visitor, and before the
// survey notes the same.
func Look(trees *Trees, plan *rules.Plan, enter, found func(rules.Path)) Survey {
	var s Survey
	Walk(trees, plan, Visitor{
		Enter: func(dir rules.Path) {
			if enter != nil {
				enter(dir)
			}
			s.Directories++
			if plan.Doubtful(dir) {
				s.Doubtful = append(s.Doubtful, dir)
			}
			if plan.Covers(dir) {
				s.Covered = append(s.Covered, dir)
			}
		},
		Found: func(p rules.Path, _ safefile.Kind, _ rules.Verdict) {
			if found != nil {
				found(p)
			}
			s.Found = append(s.Found, p)
		},
		Denied: func(dir rules.Path, _ error) { s.Denied = append(s.Denied, dir) },
		Unseen: func(dir rules.Path, err error) { s.Unseen = append(s.Unseen, Unseen{dir, err}) },
	})
	return s
}
