package restore

import (
	"errors"
	"os"
	"time"

	"cage/internal/safefile"
	"cage/rules"
)

// beside is a directory for entries that cannot go into the quarantine, on the
// mount of the directory it was made in. It is called .git and lies in one with
// a random name: git adds nothing from a directory called .git, wherever it
// lies, and nothing from one that holds nothing else. The scan does not enter
// it either.
type beside struct {
	*Restorer
	parent, outer, inner *safefile.Dir
	// at is the path of the outer directory.
	at rules.Path
}

const hiddenName = ".git"

// openBeside makes the directory in parent, which is at a path.
func (r *Restorer) openBeside(parent *safefile.Dir, at rules.Path) (*beside, error) {
	b := &beside{Restorer: r, parent: parent, at: at.Join(safefile.Token())}
	var err error
	if b.outer, err = r.privateDir(parent, b.at); err != nil {
		return nil, err
	}
	if b.inner, err = r.privateDir(b.outer, b.hidden()); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

// hidden returns the path of the inner directory.
func (b *beside) hidden() rules.Path { return b.at.Join(hiddenName) }

// path returns where an entry of the directory lies.
func (b *beside) path(name string) rules.Path { return b.hidden().Join(name) }

// privateDir makes a directory that only its owner can enter.
func (r *Restorer) privateDir(parent *safefile.Dir, p rules.Path) (*safefile.Dir, error) {
	const ownerOnly = 0o700
	r.own[p] = time.Time{} // before anybody can hear of it
	made, err := parent.MakeDir(p.Base(), ownerOnly, uint32(os.Geteuid()), uint32(os.Getegid()))
	switch {
	case errors.Is(err, safefile.ErrLeft):
		r.leave(parent, p.Dir(), p.Base(), true)
	case err != nil:
		r.disown(p)
	}
	return made, err
}

// close removes the directory, unless something stays in it.
func (b *beside) close() {
	if b.inner != nil {
		b.inner.Close()
		b.remove(b.outer, b.hidden())
	}
	b.outer.Close()
	b.remove(b.parent, b.at)
}

// remove removes one of the two directories. One that is not empty holds what
// was set aside, or what is to be removed before it.
func (b *beside) remove(from *safefile.Dir, p rules.Path) {
	switch err := from.RemoveDir(p.Base()); {
	case err == nil, safefile.Absent(err):
		b.disown(p)
	default:
		b.leave(from, p.Dir(), p.Base(), true)
	}
}
