package kept

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"

	"cage/internal/safefile"
)

// errNoQuarantine is returned outside git.
var errNoQuarantine = errors.New("there is no git directory to hold a quarantine")

// errForeign is returned where somebody's own directory stands in the place of
// the quarantine.
var errForeign = errors.New("another directory stands in the place of the quarantine")

// Dir opens the quarantine directory, which is made when it is first needed,
// and made again when somebody took it away. The caller closes it.
func (k *Keeper) Dir() (*safefile.Dir, error) {
	if k.GitDir == nil {
		return nil, errNoQuarantine
	}
	dir, err := k.GitDir.Dir(QuarantineName + "/" + k.Session)
	if err == nil && private(dir) {
		return dir, nil
	}
	if err == nil {
		dir.Close()
	}
	top, err := k.GitDir.Dir("")
	if err != nil {
		return nil, err
	}
	defer top.Close()
	all, err := privateDir(top, QuarantineName, foreign)
	if err != nil {
		return nil, err
	}
	defer all.Close()
	return privateDir(all, k.Session, func(*safefile.Dir) bool { return false })
}

const ownerOnly = 0o700

func private(dir *safefile.Dir) bool {
	info, err := dir.Info()
	return err == nil && info.Perm == ownerOnly
}

// foreign reports whether the directory of all quarantines holds what no session
// put there: it is somebody's own, moved to that place.
func foreign(dir *safefile.Dir) bool {
	entries, err := dir.ReadDir()
	return err == nil && slices.ContainsFunc(entries, func(entry safefile.DirEntry) bool { return !sessionName(entry.Name) })
}

// privateDir opens or makes a directory that its owner can enter and nobody
// else. A symlink in its place, which holds nothing itself, is removed; one that
// is foreign keeps its mode, and is none.
func privateDir(parent *safefile.Dir, name string, foreign func(*safefile.Dir) bool) (*safefile.Dir, error) {
	dir, err := openOrMake(parent, name)
	if info, statErr := parent.Stat(name); safefile.Obstructed(err) && statErr == nil && info.Kind == safefile.Symlink {
		if err := parent.Remove(name); err != nil {
			return nil, err
		}
		dir, err = openOrMake(parent, name)
	}
	if err != nil || private(dir) {
		return dir, err
	}
	if foreign(dir) {
		dir.Close()
		return nil, errForeign
	}
	if err := dir.Chmod(ownerOnly); err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
}

func openOrMake(parent *safefile.Dir, name string) (*safefile.Dir, error) {
	err := parent.Mkdir(name, ownerOnly, uint32(os.Geteuid()), uint32(os.Getegid()))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return parent.Dir(name)
}

// lies opens the quarantine if a version still lies there by its name; nil says
// that it does not, and an error that nobody can tell. Of a version that could
// not be seen when it came this says what it is.
func (k *Keeper) lies(v *Version) (*safefile.Dir, error) {
	if v.Quarantined == "" {
		return nil, nil
	}
	dir, err := k.Dir()
	if err != nil {
		return nil, unlessLost(err)
	}
	info, err := dir.Stat(v.Quarantined)
	if err == nil && v.Info.Kind == safefile.None {
		v.Info = info
	}
	if err != nil || info.Inode != v.Info.Inode {
		dir.Close()
		return nil, unlessLost(err)
	}
	return dir, nil
}

// unlessLost drops an error that says that nothing lies in the quarantine.
func unlessLost(err error) error {
	if errors.Is(err, errNoQuarantine) || errors.Is(err, errForeign) {
		return nil
	}
	return safefile.UnlessAbsent(err)
}

// placeOf returns where a version lies in the quarantine.
func (k *Keeper) placeOf(v *Version) string {
	return path.Join(k.GitDir.Path(), QuarantineName, k.Session, v.Quarantined)
}

// removeQuarantine removes the session's folder and the one above it, as far
// as they are empty.
func (k *Keeper) removeQuarantine() {
	if k.GitDir == nil {
		return
	}
	if all, err := k.GitDir.Dir(QuarantineName); err == nil {
		_ = all.RemoveDir(k.Session) // not empty: something is kept there
		all.Close()
	}
	if top, err := k.GitDir.Dir(""); err == nil {
		_ = top.RemoveDir(QuarantineName) // not empty: other sessions keep something
		top.Close()
	}
}
