package spawn

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"

	"cage/internal/proc"
	"cage/internal/tempdir"
)

// makeTemp makes the run's own temporary directory, where it is to have one.
func (c Command) makeTemp(spec *proc.Spec) (*tempdir.Dir, error) {
	if !c.PrivateTmp {
		return nil, nil
	}
	var id [8]byte
	rand.Read(id[:])
	// The command may start elsewhere.
	parent, err := filepath.Abs(os.TempDir())
	if err != nil {
		return nil, err
	}
	temp, err := tempdir.Make(parent, hex.EncodeToString(id[:]))
	if err != nil {
		return nil, err
	}
	spec.Env, _ = Environment{Policy: Inherit, Set: []string{"TMPDIR=" + temp.Path()}}.Apply(spec.Env)
	return temp, nil
}

// ownTemp is where the run's own temporary directory lies; zero for none.
type ownTemp struct{ Parent, ID string }

func tempOf(temp *tempdir.Dir) ownTemp {
	if temp == nil {
		return ownTemp{}
	}
	return ownTemp{Parent: filepath.Dir(temp.Path()), ID: temp.ID()}
}

// remove is for whoever did not make the directory.
func (o ownTemp) remove() error {
	if o.ID == "" {
		return nil
	}
	return tempdir.Remove(o.Parent, o.ID)
}

func removeTemp(temp *tempdir.Dir) error {
	if temp == nil {
		return nil
	}
	return temp.Remove()
}
