package spawn

import (
	"crypto/rand"
	"encoding/hex"
	"os"

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
	temp, err := tempdir.Make(os.TempDir(), hex.EncodeToString(id[:]))
	if err != nil {
		return nil, err
	}
	spec.Env, _ = Environment{Policy: Inherit, Set: []string{"TMPDIR=" + temp.Path()}}.Apply(spec.Env)
	return temp, nil
}

func removeTemp(temp *tempdir.Dir) error {
	if temp == nil {
		return nil
	}
	return temp.Remove()
}
