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
	"io/fs"
	"syscall"

	"cage/internal/safefile"
	"cage/rules"
	"cage/snapshot"
)

// Displaced is what stood in the way of a restore. Exactly one of Quarantined,
// File, Beside and Content says where it is now.
type Displaced struct {
	Path rules.Path
	Info safefile.Info
	// Quarantined is its name in the quarantine directory.
	Quarantined string
	// File holds a regular file that has no name any more.
	File *safefile.File
	// Beside is where it was set aside on its own mount.
	Beside rules.Path
	// Content is what a write in place replaced.
	Content []byte
}

// Result says what a restore did.
type Result struct {
	// Err says why the path is not back; nil where it is.
	Err error
	// Displaced is what stood in the way, parents first.
	Displaced []Displaced
	// Unset names the attributes that the system refused to set back.
	Unset []safefile.UnsetAttr
	// InPlace says that the original file was overwritten because nothing
	// could be exchanged there.
	InPlace bool
	// State is what stands at the path now, where the restore succeeded.
	State snapshot.State
}

// ErrAppeared is returned where something appeared at a path while it was
// being put back: it must be compared before anything replaces it.
var ErrAppeared = errors.New("something appeared there meanwhile")

// ErrMoved is returned where a directory was moved away during every attempt.
var ErrMoved = errors.New("its directory was moved away meanwhile")

// ErrChanged is returned where the path had changed again right after the
// restore.
var ErrChanged = errors.New("it was changed again at once")

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
}

// New returns a Restorer.
func New(trees *snapshot.Trees, plan *rules.Plan, manifest *snapshot.Manifest, store *snapshot.Store, quarantine Quarantine, limit int64) *Restorer {
	return &Restorer{
		trees: trees, plan: plan, manifest: manifest, store: store, quarantine: quarantine,
		look: snapshot.NewLooker(trees, store, limit),
	}
}

// Put makes the baseline entry e stand at its path again. Where the caller saw
// nothing there, something that appears meanwhile is not replaced: the error
// is then ErrAppeared.
func (r *Restorer) Put(e *snapshot.Entry, absent bool) Result {
	var result Result
	node := r.node(e)
	for range attempts {
		dir, err := r.parent(e.Path, &result)
		if err != nil {
			result.Err = err
			return result
		}
		err = r.putIn(dir, e, node, absent, &result)
		moved := err == nil && !dir.SameDir()
		dir.Close()
		if !moved {
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
		sight = r.look.Compare(e.WithAttributes(sight.State))
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
// in place where it is not.
func (r *Restorer) putIn(dir *safefile.Dir, e *snapshot.Entry, node safefile.Node, absent bool, result *Result) error {
	if err := r.uncover(e.Path); err != nil {
		return err
	}
	err := r.swapIn(dir, e.Path, node, absent, result)
	if err == nil || !onlyInPlace(err) || node.Kind != safefile.Regular {
		return err
	}
	old, unset, inPlaceErr := safefile.Overwrite(dir, e.Path.Base(), node, e.State.Inode, e.State.Nlink)
	if old != nil {
		info := e.State.Info
		info.Size = int64(len(old))
		result.Displaced = append(result.Displaced, Displaced{Path: e.Path, Info: info, Content: old})
	}
	if inPlaceErr != nil {
		return fmt.Errorf("%w (nor in place: %v)", err, inPlaceErr)
	}
	result.Unset, result.InPlace = unset, true
	return nil
}

// onlyInPlace reports whether err says that entries of a directory cannot be
// exchanged though the file itself might still be written: a mount point, an
// immutable or read-only directory, a full disk.
func onlyInPlace(err error) bool {
	for _, errno := range []error{syscall.EBUSY, syscall.EPERM, syscall.EACCES, syscall.ENOSPC, syscall.EDQUOT} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// uncover takes away mounts that were put over a path after the start.
func (r *Restorer) uncover(p rules.Path) error {
	root := r.trees.Root(p.Anchor)
	if !root.MountedOver(p.Rel) {
		return nil
	}
	return root.Detach(p.Rel)
}

// swapIn stages the node in the quarantine, so that one rename puts it in
// place and what stood there away; where the quarantine lies on another mount
// or cannot take it, the node is staged beside its path.
func (r *Restorer) swapIn(dir *safefile.Dir, p rules.Path, node safefile.Node, absent bool, result *Result) error {
	if quarantine, err := r.quarantine.Dir(); err == nil {
		defer quarantine.Close()
		displaced, unset, err := swap(quarantine, dir, p.Base(), node, absent)
		if displaced != "" {
			result.add(quarantine, displaced, Displaced{Path: p, Quarantined: displaced})
		}
		if err == nil || !elsewhere(err) {
			result.Unset = unset
			return err
		}
	}
	displaced, unset, err := swap(dir, dir, p.Base(), node, absent)
	if displaced != "" {
		result.beside(dir, displaced, p)
	}
	result.Unset = unset
	return err
}

// elsewhere reports whether err says that the entry cannot be moved into the
// quarantine though it might be moved within its directory: another mount, or
// a directory that its own mode forbids to move (rename(2) writes its "..").
func elsewhere(err error) bool {
	for _, errno := range []error{syscall.EXDEV, syscall.EACCES, syscall.EPERM, syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT, syscall.EINVAL} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return errors.Is(err, safefile.ErrMounted)
}

// swap stages a node in one directory and puts it in place in another. It
// returns the name under which the displaced entry now lies in the staging
// directory, empty where nothing stood in the way; that holds with an error
// too.
func swap(staging, dir *safefile.Dir, name string, node safefile.Node, absent bool) (string, []safefile.UnsetAttr, error) {
	staged, err := safefile.Stage(staging, node)
	if err != nil {
		return "", nil, err
	}
	defer staged.Discard()
	if !absent {
		displaced, err := staged.Exchange(dir, name)
		if !safefile.Missing(err) {
			return displaced, staged.Unset, err
		}
	}
	err = staged.Place(dir, name)
	if errors.Is(err, fs.ErrExist) {
		err = ErrAppeared
	}
	return "", staged.Unset, err
}

func (result *Result) add(dir *safefile.Dir, name string, d Displaced) {
	// Whatever cannot be looked at any more was taken away by somebody else.
	d.Info, _ = dir.Stat(name)
	result.Displaced = append(result.Displaced, d)
}

// beside takes charge of what was displaced to a random name in its own
// directory: a regular file loses that name and is held by its descriptor,
// anything else stays there.
func (result *Result) beside(dir *safefile.Dir, name string, p rules.Path) {
	if file, info, err := safefile.Unname(dir, name); err == nil {
		result.Displaced = append(result.Displaced, Displaced{Path: p, Info: info, File: file})
		return
	}
	result.add(dir, name, Displaced{Path: p, Beside: p.Dir().Join(name)})
}

// Remove moves an added entry away, whatever it is, and with it the
// directories that were made for it, if they are empty now.
func (r *Restorer) Remove(p rules.Path) Result {
	var result Result
	dir, err := r.trees.Dir(p.Dir())
	if err != nil {
		result.Err = unlessGone(err)
		return result
	}
	defer dir.Close()
	if err := r.uncover(p); err != nil {
		result.Err = err
		return result
	}
	result.Err = unlessGone(r.moveAway(dir, p, &result))
	if result.Err == nil {
		r.prune(p.Dir())
	}
	return result
}

func unlessGone(err error) error {
	if safefile.Missing(err) || safefile.Obstructed(err) {
		return nil
	}
	return err
}

// moveAway takes an entry out of the directory, into the quarantine or beside.
func (r *Restorer) moveAway(dir *safefile.Dir, p rules.Path, result *Result) error {
	token := safefile.Token()
	if quarantine, err := r.quarantine.Dir(); err == nil {
		defer quarantine.Close()
		err := safefile.Move(dir, p.Base(), quarantine, token)
		if err == nil {
			result.add(quarantine, token, Displaced{Path: p, Quarantined: token})
			return nil
		}
		if !elsewhere(err) {
			return err
		}
	}
	if err := safefile.Move(dir, p.Base(), dir, token); err != nil {
		return err
	}
	result.beside(dir, token, p)
	return nil
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
