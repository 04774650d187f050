package restore

import (
	"errors"
	"io/fs"
	"syscall"

	"cage/internal/safefile"
	"cage/rules"
)

// swap puts a node in the place of whatever stands at a path.
type swap struct {
	dir    *safefile.Dir // holds the path
	path   rules.Path
	node   safefile.Node
	result *Result
	// staging is where the node is prepared and what stood there goes; take is
	// given the name by which it then lies there.
	staging *safefile.Dir
	take    func(name string)
	// leave is given a name in the staging directory that could not be removed.
	leave func(name string)
}

// swapIn stages the node in the quarantine, so that one rename puts it in
// place and what stood there away; where the quarantine lies on another mount
// or cannot take it, the node is staged beside its path.
func (r *Restorer) swapIn(dir *safefile.Dir, p rules.Path, node safefile.Node, absent bool, result *Result) error {
	s := swap{dir: dir, path: p, node: node, result: result}
	if quarantine, err := r.quarantine.Dir(); err == nil {
		defer quarantine.Close()
		if node.Kind == safefile.Regular {
			r.wanted = &node
		}
		s.staging = quarantine
		s.take = func(name string) { result.quarantined(quarantine, name, p) }
		s.leave = func(name string) { r.leave(quarantine, rules.Path{}, name, false) }
		if err := s.run(r.spare, absent); err == nil || !elsewhere(err) {
			return err
		}
	}
	hidden, err := r.openBeside(dir, p.Dir())
	if err != nil {
		return err
	}
	defer hidden.close()
	s.staging = hidden.inner
	s.take = func(name string) { result.beside(hidden.inner, name, hidden.path(name), p) }
	s.leave = func(name string) { r.leave(hidden.inner, hidden.hidden(), name, false) }
	err = s.run(nil, absent)
	if unmovable(dir, p.Base(), err) {
		return s.runHere()
	}
	return err
}

// run stages the node, in the spare file if there is one, and exchanges it;
// where nothing stands it is placed. Something may have been displaced with an
// error too.
func (s *swap) run(spare *safefile.Spare, absent bool) error {
	staged, err := spare.Stage(s.staging, s.node)
	if err != nil {
		return err
	}
	defer func() {
		if left := staged.Discard(); left != "" {
			s.leave(left)
		}
	}()
	if !absent {
		displaced, err := staged.Exchange(s.dir, s.path.Base())
		if displaced != "" {
			s.take(displaced)
		}
		if errors.Is(err, safefile.ErrStaging) || !safefile.Missing(err) {
			s.result.Unset = staged.Unset
			return appeared(err)
		}
	}
	err = staged.Place(s.dir, s.path.Base())
	s.result.Unset = staged.Unset
	return appeared(err)
}

// runHere moves a directory that must stay in its directory to a random name
// there, and places the node. That itself never has a wrong name outside the
// staging directory.
func (s *swap) runHere() error {
	token := safefile.Token()
	if err := safefile.Move(s.dir, s.path.Base(), s.dir, token); err != nil {
		return err
	}
	s.result.setAside(s.dir, token, s.path.Dir().Join(token), s.path)
	const nothingThere = true
	return s.run(nil, nothingThere)
}

// elsewhere reports whether err says that the quarantine cannot be worked with
// though the directory itself might be: it is gone or full, on another mount,
// or the entry's own mode forbids to move it out of its directory.
func elsewhere(err error) bool {
	for _, errno := range []error{syscall.EXDEV, syscall.EACCES, syscall.EPERM, syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT, syscall.EINVAL} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return errors.Is(err, safefile.ErrMounted) || errors.Is(err, safefile.ErrStaging)
}

// unmovable reports whether a directory was refused to leave its directory:
// that writes its "..", which its own mode can forbid (rename(2)).
func unmovable(dir *safefile.Dir, name string, err error) bool {
	if errors.Is(err, safefile.ErrStaging) || !errors.Is(err, syscall.EACCES) {
		return false
	}
	return isDirectory(dir, name)
}

func isDirectory(dir *safefile.Dir, name string) bool {
	info, err := dir.Stat(name)
	return err == nil && info.Kind == safefile.Directory
}

// appeared says that something stood in the way where nothing should have.
func appeared(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return ErrAppeared
	}
	return err
}
