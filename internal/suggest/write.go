package suggest

import (
	"errors"
	"os"
	"time"

	"cage/internal/safefile"
)

// FileName is the name of the file for proposals, at the top of the root. No
// session reads it.
const FileName = ".cage.yaml.suggested"

// ErrExists is returned where a file for proposals stands there already.
var ErrExists = errors.New("it exists already")

// ErrOccupied is returned where something that is no regular file has its name.
var ErrOccupied = errors.New("something that is no regular file stands there")

// Write puts a document into the file for proposals, in one step. A file that
// is there is replaced if so asked; whatever else is there stays, and a link is
// not followed.
func Write(root *safefile.Root, document []byte, replace bool) error {
	top, err := root.Dir("")
	if err != nil {
		return err
	}
	defer top.Close()
	there, err := top.Stat(FileName)
	switch {
	case safefile.Missing(err):
	case err != nil:
		return err
	case there.Kind != safefile.Regular:
		return ErrOccupied
	case !replace:
		return ErrExists
	}
	const readable = 0o644
	staged, err := safefile.Stage(top, safefile.Node{
		Kind: safefile.Regular, Perm: readable, UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()),
		MTime: time.Now().UnixNano(), Content: document,
	})
	if err != nil {
		return err
	}
	defer staged.Discard()
	if there.Kind == safefile.None {
		err := staged.Place(top, FileName)
		if errors.Is(err, os.ErrExist) {
			err = ErrExists // somebody was quicker
		}
		return err
	}
	old, err := staged.Exchange(top, FileName)
	if old != "" {
		err = errors.Join(err, top.Remove(old))
	}
	return err
}
