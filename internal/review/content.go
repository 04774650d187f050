package review

import (
	"fmt"
	"io"
	"path/filepath"

	"cage/internal/kept"
	"cage/internal/safefile"
	"cage/rules"
	"cage/snapshot"
)

// most bounds, in bytes, the size of a version that is shown or put back: 64
// MiB.
const most = 64 << 20

// Desk is where versions are looked at: the directories of the current root,
// and the folders with what was kept.
type Desk struct {
	Trees *snapshot.Trees
	// Sessions holds a store for every session; Spare names the folder for what
	// that could not take.
	Sessions string
	Spare    func(session string) string
}

// content is what a file or a link holds.
type content struct {
	data []byte
	link string // target of a symlink
}

func (c content) digest(kind safefile.Kind) snapshot.Digest {
	if kind == safefile.Symlink {
		return snapshot.DigestOfLink(c.link)
	}
	return snapshot.DigestOf(c.data)
}

// store returns the folder for copies of a version.
func (d *Desk) store(s *Session, v *Version) string {
	name := s.ID
	if v.Recovered {
		name += kept.RecoveredSuffix
	}
	return filepath.Join(d.Sessions, name)
}

// Place returns where a version lies: an absolute path.
func (d *Desk) Place(s *Session, v *Version) string {
	switch v.Spot.Room {
	case kept.Stored:
		return filepath.Join(d.store(s, v), v.Spot.Name)
	case kept.Spared:
		return filepath.Join(d.Spare(s.ID), v.Spot.Name)
	default:
		return s.Layout.Abs(s.spot(v))
	}
}

// spot returns where a version lies that was not copied.
func (s *Session) spot(v *Version) rules.Path {
	if v.Spot.Room != kept.Quarantined {
		return v.Spot.Path
	}
	quarantine := rules.Path{Anchor: rules.CommonDir, Rel: kept.QuarantineName}
	if s.Layout.GitDir != "" {
		quarantine.Anchor = rules.GitDir
	}
	return quarantine.Join(s.ID).Join(v.Spot.Name)
}

// read returns what a version of a session in this root holds, if that is what
// the session wrote down.
func (d *Desk) read(s *Session, v *Version) (content, error) {
	switch {
	case !samePlace(d.Trees.Layout(), s.Layout):
		return content{}, d.useless(s, v, "the session was in another root", nil)
	case v.Info.Kind != safefile.Regular && v.Info.Kind != safefile.Symlink:
		return content{}, d.useless(s, v, "it is a "+v.Info.Kind.String(), nil)
	case v.Digest == (snapshot.Digest{}) || v.Info.Size > most:
		return content{}, d.useless(s, v, "it was not read, being too large or still being written", nil)
	}
	var c content
	var err error
	if v.Spot.Room == kept.Stored || v.Spot.Room == kept.Spared {
		c.data, err = kept.ReadCopy(d.Place(s, v), most)
	} else {
		c, err = d.readAt(s.spot(v), v.Info.Kind)
	}
	if err != nil {
		return content{}, d.useless(s, v, "it cannot be read", err)
	}
	if c.digest(v.Info.Kind) != v.Digest {
		return content{}, d.useless(s, v, "it is not what the session displaced: somebody changed it since", nil)
	}
	return c, nil
}

// useless is the error of a version that cannot be used, whatever stands at its
// path.
func (d *Desk) useless(s *Session, v *Version, why string, cause error) error {
	return &Error{Reason: why, Cause: cause, Hint: d.byHand(s, v)}
}

func (d *Desk) byHand(s *Session, v *Version) string {
	return "see to it by hand; the version lies at " + d.Place(s, v)
}

// readAt reads a file or a link below an anchor, without following anything.
func (d *Desk) readAt(p rules.Path, kind safefile.Kind) (content, error) {
	dir, err := d.Trees.Dir(p.Dir())
	if err != nil {
		return content{}, err
	}
	defer dir.Close()
	return readIn(dir, p.Base(), kind)
}

func readIn(dir *safefile.Dir, name string, kind safefile.Kind) (content, error) {
	if kind == safefile.Symlink {
		target, err := dir.Readlink(name)
		return content{link: target}, err
	}
	file, info, err := dir.Open(name)
	if err != nil {
		return content{}, err
	}
	defer file.Close()
	if info.Size > most {
		return content{}, fmt.Errorf("it has %d bytes", info.Size)
	}
	data := make([]byte, info.Size)
	n, err := file.ReadAt(data, 0)
	if err == nil && int64(n) < info.Size {
		err = io.ErrUnexpectedEOF
	}
	return content{data: data[:n]}, err
}

// see looks at a path. That nothing stands there is no error; that something on
// the way is no directory is one.
func (d *Desk) see(p rules.Path) (snapshot.State, content, error) {
	var now snapshot.State
	dir, err := d.Trees.Dir(p.Dir())
	if safefile.Missing(err) {
		return now, content{}, nil
	}
	if err != nil {
		return now, content{}, err
	}
	defer dir.Close()
	now.Info, err = dir.Stat(p.Base())
	if safefile.Missing(err) {
		return snapshot.State{}, content{}, nil
	}
	var c content
	if err == nil && (now.Kind == safefile.Symlink || now.Kind == safefile.Regular) {
		c, err = readIn(dir, p.Base(), now.Kind)
		now.Digest = c.digest(now.Kind)
	}
	return now, c, err
}
