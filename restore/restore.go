// Package restore puts one change back and says what happened: a baseline
// entry is written anew and exchanged for whatever stands at its path, an
// added entry is moved away. Parents that were removed or replaced are rebuilt
// first, outermost first.
//
// It promises that it destroys nothing (what stood in the way is moved, held
// or set aside, and returned), that it follows no symlink, and that it changes
// the mode only of directories it knew at the baseline. It runs no commands
// and knows no events; one goroutine uses one Restorer.
package restore

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"cage/internal/safefile"
	"cage/rules"
	"cage/snapshot"
)

// Result says what a restore did.
type Result struct {
	// Err says why the path is not back; nil where it is.
	Err error
	// Displaced is what stood in the way, parents first.
	Displaced []Displaced
	// Reset are the directories on the way that were given their owner and mode
	// again, because they could not be worked in.
	Reset []rules.Path
	// Uncovered says that a mount was taken away.
	Uncovered bool
	// Untouched says that the path itself was whole once the way to it was.
	Untouched bool
	// Unset names the attributes that the system refused to set back.
	Unset []safefile.UnsetAttr
	// State is what stands at the path now, where the restore succeeded.
	State snapshot.State
}

// ErrAppeared is returned where something appeared at a path while it was
// being put back: it must be compared before anything replaces it.
var ErrAppeared = fmt.Errorf("something appeared there meanwhile: %w", syscall.EEXIST)

// ErrMoved is returned where a directory was moved away during every attempt.
var ErrMoved = fmt.Errorf("its directory was moved away meanwhile: %w", syscall.ESTALE)

// ErrChanged is returned where the path had changed again right after the
// restore.
var ErrChanged = fmt.Errorf("it was changed again at once: %w", syscall.EBUSY)

// attempts bounds how often a restore starts anew because somebody moves
// directories about meanwhile; a rescan tries again later.
const attempts = 8

// Quarantine opens the directory that displaced entries are moved to, for the
// caller to close. It returns an error where there is none.
type Quarantine interface {
	Dir() (*safefile.Dir, error)
}

// Restorer puts entries of one manifest back.
type Restorer struct {
	trees      *snapshot.Trees
	manifest   *snapshot.Manifest
	store      *snapshot.Store
	plan       *rules.Plan
	quarantine Quarantine
	look       *snapshot.Looker
	// spare is a file for the next entry staged in the quarantine. It is made
	// to hold what was wanted last: who changed a file once may do so again.
	spare  *safefile.Spare
	wanted *safefile.Node
	// litter is what could not be removed yet, what lies within other litter
	// first.
	litter []litter
	// own are the paths of directories that were made for the moment, each with
	// the time since when it has gone; zero while it has not.
	own map[rules.Path]time.Time
}

// New returns a Restorer.
func New(trees *snapshot.Trees, plan *rules.Plan, manifest *snapshot.Manifest, store *snapshot.Store, quarantine Quarantine, limit int64) *Restorer {
	return &Restorer{
		trees: trees, plan: plan, manifest: manifest, store: store, quarantine: quarantine,
		look: snapshot.NewLooker(trees, store, limit), own: make(map[rules.Path]time.Time),
	}
}

// readyBytes bounds what is written ahead, 8 MiB: everything else waits for that.
const readyBytes = 8 << 20

// Wants reports whether Prepare has something to do.
func (r *Restorer) Wants() bool { return r.wanted != nil && r.spare.Used() }

// Prepare makes ahead what the next restore would need most of its time for. It
// is to be called when there is time, and does nothing before the first
// restore.
func (r *Restorer) Prepare() {
	if !r.Wants() {
		return
	}
	node := *r.wanted
	r.wanted = nil
	if len(node.Content) > readyBytes {
		node.Content = nil
	}
	if quarantine, err := r.quarantine.Dir(); err == nil {
		r.spare = safefile.NewSpare(quarantine, node)
		quarantine.Close()
	}
}

// Close lets go of what was prepared and removes what was left behind.
func (r *Restorer) Close() {
	r.spare.Close()
	r.Clear()
	for _, l := range r.litter {
		if l.dir != nil {
			l.dir.Close()
		}
	}
	r.litter = nil
}

// Put makes the baseline entry e stand at its path again. Where the caller saw
// nothing there, something that appears meanwhile is not replaced: the error
// is then ErrAppeared.
func (r *Restorer) Put(e *snapshot.Entry, absent bool) Result {
	var result Result
	node := r.node(e)
	w := way{Restorer: r, result: &result, rebuilds: true}
	for range attempts {
		dir, err := w.parent(e.Path)
		if err != nil {
			result.Err = err
			return result
		}
		err = w.work(dir, e.Path.Dir(), func() error { return r.putIn(dir, e, node, absent, &result) })
		// Nothing is missing unless this directory or the quarantine was taken
		// away meanwhile.
		again := safefile.Missing(err) || !dir.SameDir()
		dir.Close()
		if !again {
			r.verify(e, err, &result)
			return result
		}
	}
	result.Err = ErrMoved
	return result
}

func (r *Restorer) node(e *snapshot.Entry) safefile.Node {
	content, _ := r.store.Get(e.State.Content)
	return safefile.Node{
		Kind: e.State.Kind, Perm: e.State.Perm, UID: e.State.UID, GID: e.State.GID, MTime: e.State.MTime,
		Attrs: e.State.Attrs, Link: e.State.Link, Content: content,
	}
}

// verify looks at the path once more. Attributes that could not be set are no
// difference.
func (r *Restorer) verify(e *snapshot.Entry, err error, result *Result) {
	if err != nil {
		result.Err = err
		return
	}
	r.look.Forget()
	defer r.look.Forget()
	sight := r.look.Compare(e)
	if !sight.Same && len(result.Unset) > 0 {
		sight = r.look.Compare(e.WithAttributes(result.Unset, sight.State))
	}
	result.State = sight.State
	switch {
	case sight.Err != nil:
		result.Err = sight.Err
	case !sight.Same:
		result.Err = ErrChanged
	}
}

// putIn restores into an open directory: by exchange where that is possible,
// in place where it is not. What only could not be reached is left.
func (r *Restorer) putIn(dir *safefile.Dir, e *snapshot.Entry, node safefile.Node, absent bool, result *Result) error {
	if err := r.uncover(e.Path, result); err != nil {
		return err
	}
	if result.Untouched = r.wasOutOfReach(e, result); result.Untouched {
		return nil
	}
	err := r.swapIn(dir, e.Path, node, absent, result)
	if err == nil || !onlyInPlace(err) || node.Kind != safefile.Regular {
		return err
	}
	if inPlaceErr := overwrite(dir, e, node, result); inPlaceErr != nil {
		return fmt.Errorf("%w (nor in place: %v)", err, inPlaceErr)
	}
	return nil
}

// wasOutOfReach reports whether the entry is whole after the way to it was
// cleared.
func (r *Restorer) wasOutOfReach(e *snapshot.Entry, result *Result) bool {
	if !result.Uncovered && len(result.Reset) == 0 {
		return false
	}
	r.look.Forget()
	defer r.look.Forget()
	return r.look.Compare(e).Same
}

// overwrite writes the node into the file of the baseline.
func overwrite(dir *safefile.Dir, e *snapshot.Entry, node safefile.Node, result *Result) error {
	seen, _ := dir.Stat(e.Path.Base())
	old, unset, err := safefile.Overwrite(dir, e.Path.Base(), node, e.State.Inode, e.State.Nlink)
	if old != nil || err == nil {
		result.Displaced = append(result.Displaced, Displaced{Path: e.Path, Info: seen, Content: old})
	}
	if err == nil {
		result.Unset = unset
	}
	return err
}

// onlyInPlace reports whether err says that entries of a directory cannot be
// exchanged though the file itself might still be written: a mount point, an
// immutable or read-only directory, a full disk, a file system in layers.
func onlyInPlace(err error) bool {
	for _, errno := range []error{syscall.EBUSY, syscall.EPERM, syscall.EACCES, syscall.ENOSPC, syscall.EDQUOT, syscall.EXDEV} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// uncover takes away mounts that were put over a path after the start.
func (r *Restorer) uncover(p rules.Path, result *Result) error {
	root := r.trees.Root(p.Anchor)
	if !root.MountedOver(p.Rel) {
		return nil
	}
	if err := root.Detach(p.Rel); err != nil {
		return err
	}
	result.Uncovered = true
	return nil
}

// Remove moves an added entry away, whatever it is, and with it the
// directories that were made for it, if they are empty now. A directory that
// was known at its path is made again.
func (r *Restorer) Remove(p rules.Path) Result {
	var result Result
	w := way{Restorer: r, result: &result}
	dir, err := w.parent(p)
	if err != nil {
		result.Err = safefile.UnlessAbsent(err)
		return result
	}
	defer dir.Close()
	result.Err = safefile.UnlessAbsent(w.work(dir, p.Dir(), func() error { return r.removeFrom(dir, p, &result) }))
	if len(result.Displaced) > 0 {
		r.prune(p.Dir())
	}
	return result
}

// removeFrom moves an added entry out of an open directory.
func (r *Restorer) removeFrom(dir *safefile.Dir, p rules.Path, result *Result) error {
	if err := r.uncover(p, result); err != nil {
		return err
	}
	if result.Uncovered && isDirectory(dir, p.Base()) {
		_ = dir.RemoveDir(p.Base()) // not empty: what is in it is judged for itself
		return nil
	}
	if err := r.moveAway(dir, p, result); err != nil {
		return err
	}
	if _, known := r.manifest.Directory(p); known {
		return r.mkdir(dir, p)
	}
	return nil
}

// moveAway takes an entry out of the directory, into the quarantine or beside.
func (r *Restorer) moveAway(dir *safefile.Dir, p rules.Path, result *Result) error {
	token := safefile.Token()
	if quarantine, err := r.quarantine.Dir(); err == nil {
		defer quarantine.Close()
		err := safefile.Move(dir, p.Base(), quarantine, token)
		if err == nil {
			result.quarantined(quarantine, token, p)
			return nil
		}
		if !elsewhere(err) && !(safefile.Missing(err) && stands(dir, p.Base())) {
			return err
		}
	}
	hidden, err := r.openBeside(dir, p.Dir())
	if err != nil {
		return err
	}
	defer hidden.close()
	err = safefile.Move(dir, p.Base(), hidden.inner, token)
	if err == nil {
		result.beside(hidden.inner, token, hidden.path(token), p)
		return nil
	}
	if !unmovable(dir, p.Base(), err) {
		return err
	}
	if err := safefile.Move(dir, p.Base(), dir, token); err != nil {
		return err
	}
	result.setAside(dir, token, p.Dir().Join(token), p)
	return nil
}

func stands(dir *safefile.Dir, name string) bool {
	_, err := dir.Stat(name)
	return err == nil
}

// prune removes empty directories of protected trees that were not there at
// the baseline.
func (r *Restorer) prune(dir rules.Path) {
	for dir.Rel != "" && r.plan.Covers(dir) {
		if _, known := r.manifest.Directory(dir); known {
			return
		}
		parent, err := r.trees.Dir(dir.Dir())
		if err != nil {
			return
		}
		err = parent.RemoveDir(dir.Base())
		parent.Close()
		if err != nil {
			return
		}
		dir = dir.Dir()
	}
}
