package restore

import (
	"os"

	"cage/internal/safefile"
	"cage/rules"
)

// beside is a directory for entries that cannot go into the quarantine, on the
// mount of the directory it was made in. It is called .git and lies in one with
// a random name: git adds nothing from a directory called .git, wherever it
// lies, and nothing from one that holds nothing else. The scan does not enter
// it either.
type beside struct {
	parent, outer, inner *safefile.Dir
	name                 string
}

const hiddenName = ".git"

// openBeside makes the directory.
func openBeside(parent *safefile.Dir) (*beside, error) {
	b := &beside{parent: parent, name: safefile.Token()}
	var err error
	if b.outer, err = privateDir(parent, b.name); err != nil {
		return nil, err
	}
	if b.inner, err = privateDir(b.outer, hiddenName); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

// path returns where an entry of the directory lies, which was made in dir.
func (b *beside) path(dir rules.Path, name string) rules.Path {
	return dir.Join(b.name).Join(hiddenName).Join(name)
}

// privateDir makes a directory that only its owner can enter.
func privateDir(parent *safefile.Dir, name string) (*safefile.Dir, error) {
	const ownerOnly = 0o700
	if err := parent.Mkdir(name, ownerOnly, uint32(os.Geteuid()), uint32(os.Getegid())); err != nil {
		return nil, err
	}
	made, err := parent.Dir(name)
	if err != nil {
		_ = parent.RemoveDir(name) // somebody put something else there
	}
	return made, err
}

// close removes the directory, unless something stays in it.
func (b *beside) close() {
	if b.inner != nil {
		b.inner.Close()
		_ = b.outer.RemoveDir(hiddenName) // not empty: something was set aside
	}
	b.outer.Close()
	_ = b.parent.RemoveDir(b.name)
}
