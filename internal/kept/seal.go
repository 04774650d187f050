package kept

import (
	"bytes"
	"errors"
	"hash"
	"io"
	"os"

	"cage/internal/safefile"
	"cage/snapshot"
)

// errTooLarge is the fate of what has no place of its own and is too large to
// be copied.
var errTooLarge = errors.New("keep a displaced version: it is too large to be copied")

// errTakenAway is the fate of what somebody took out of the quarantine.
var errTakenAway = errors.New("keep a displaced version: somebody took it out of the quarantine")

// seal says where a version is for good. It reports false where that has to
// wait: somebody still writes it, or nothing takes a copy of it now. At the end
// it stays in the quarantine where somebody still writes it, and is taken as it
// is where it has no place there.
func (k *Keeper) seal(v *Version, last bool) (Sealed, bool) {
	s := Sealed{Tag: v.Tag, Path: v.Path, Info: v.Info, Came: v.came, size: v.Info.Size, Quarantined: v.Quarantined}
	switch {
	case v.Content != nil:
		sealed := k.sealContent(v.Content, &s)
		return s, sealed || last
	case v.Beside != "":
		s.Place = v.Beside
		if v.Info.Kind == safefile.Symlink {
			if target, err := os.Readlink(v.Beside); err == nil {
				s.Digest = snapshot.DigestOfLink(target)
			}
		}
		return s, true
	}
	dir, unknown := k.lies(v)
	lies := dir != nil
	if s.Info, s.size = v.Info, v.Info.Size; lies {
		defer dir.Close()
		s.Place = dir.Abs(v.Quarantined)
	}
	if unknown != nil && v.File == nil {
		s.Place, s.Err = k.placeOf(v), unknown
		return s, last || !safefile.Exhausted(unknown)
	}
	switch {
	case v.Info.Kind == safefile.Regular:
		sealed := k.sealFile(v, dir, &s, last)
		if unknown != nil && s.Err != nil {
			s.Place = k.placeOf(v)
		}
		return s, sealed
	case !lies:
		s.Err = errTakenAway
	case v.Info.Kind == safefile.Symlink:
		if target, err := dir.Readlink(v.Quarantined); err == nil {
			s.Digest, s.Identity = snapshot.DigestOfLink(target), k.identity([]byte(target))
		}
	}
	return s, true
}

// sealContent copies what was only held in memory and reports whether it could.
func (k *Keeper) sealContent(content []byte, s *Sealed) bool {
	s.Digest, s.Identity = snapshot.DigestOf(content), k.identity(content)
	if k.Drop {
		return true
	}
	s.Place, s.Err = k.storeHomeless(func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
	return s.Err == nil
}

// identify returns the caller's own hash of a version as it is now; nil where
// there is none, and of a file past DigestLimit: whoever gives it to the keeper
// waits for that.
func (k *Keeper) identify(v *Version) []byte {
	if v.Content != nil || k.Identify == nil {
		return k.identity(v.Content)
	}
	dir, _ := k.lies(v) // what is not seen now has no identity
	if dir != nil {
		defer dir.Close()
	}
	switch {
	case v.Info.Kind == safefile.Symlink && dir != nil:
		if target, err := dir.Readlink(v.Quarantined); err == nil {
			return k.identity([]byte(target))
		}
	case v.Info.Kind == safefile.Regular && v.Info.Size <= k.DigestLimit && v.open(dir) == nil:
		h := k.Identify(v.Info.Size)
		n, err := io.Copy(h, io.NewSectionReader(readerAt{v.File}, 0, v.Info.Size))
		if err == nil && n == v.Info.Size {
			return h.Sum(nil)
		}
	}
	return nil
}

// identity returns the caller's own hash of content; nil where it has none.
func (k *Keeper) identity(content []byte) []byte {
	if k.Identify == nil {
		return nil
	}
	h := k.Identify(int64(len(content)))
	h.Write(content)
	return h.Sum(nil)
}

// sealFile copies a regular file. One that lies in the quarantine stays there
// where it cannot be copied, and where somebody writes it to the end.
func (k *Keeper) sealFile(v *Version, dir *safefile.Dir, s *Sealed, last bool) bool {
	if err := v.open(dir); err != nil {
		if (errors.Is(err, safefile.ErrBusy) || safefile.Exhausted(err)) && !last {
			return false
		}
		s.Err = err
		if k.Drop && dir != nil {
			s.Place, s.Err = "", dir.Remove(v.Quarantined)
		}
		return true
	}
	if v.File.BeingWritten() {
		if !last {
			return false
		}
		if dir != nil && !k.Drop {
			// A copy would lack what is still to come.
			v.File.Close()
			s.Err = errUnsettled
			return true
		}
	}
	place, err := k.copyOut(v.File, s, dir != nil, last)
	if !last && (err != nil && dir == nil || changedSince(v.File, s)) {
		return false
	}
	v.File.Close()
	s.Err = err
	if place != "" || k.Drop {
		s.Place = place
		if dir != nil {
			_ = dir.Remove(v.Quarantined) // else it is kept twice
		}
	}
	return true
}

// open opens the file if it is not open yet.
func (v *Version) open(dir *safefile.Dir) error {
	switch {
	case v.File != nil:
		return nil
	case dir == nil && v.Quarantined == "":
		return errTooLarge
	case dir == nil:
		return errTakenAway
	}
	file, _, err := dir.Open(v.Quarantined)
	if err == nil {
		v.File = file
	}
	return err
}

// errUnsettled is the fate of half of what somebody writes: it is not kept as a
// copy.
var errUnsettled = errors.New("somebody writes it")

// copyOut copies a regular file into the store and takes its digests on the
// way. What is dropped, or stays where it lies because of the budget, only has
// its digests taken.
func (k *Keeper) copyOut(file *safefile.File, s *Sealed, lies, last bool) (place string, err error) {
	if info, err := file.Info(); err == nil {
		s.Info = info
	}
	s.Attrs, _ = file.Attrs()
	write := func(w io.Writer) error {
		err := k.digest(file, s, w)
		if err == nil && !last && changedSince(file, s) {
			err = errUnsettled
		}
		return err
	}
	switch {
	case k.Drop || lies && k.copied+s.Info.Size > copyBudget:
		return "", k.digestOnly(file, s)
	case s.Info.Size > copyBudget:
		return "", errTooLarge
	case lies:
		if place, err = store(k.Store, write); err != nil {
			_ = k.digestOnly(file, s) // the store's error says more
		}
	default:
		place, err = k.storeHomeless(write)
	}
	if err == nil {
		k.copied += s.Info.Size
	}
	return place, err
}

// changedSince reports whether somebody wrote the file after it was looked at.
func changedSince(file *safefile.File, s *Sealed) bool {
	now, err := file.Info()
	return err == nil && (now.Size != s.Info.Size || now.MTime != s.Info.MTime)
}

func (k *Keeper) digestOnly(file *safefile.File, s *Sealed) error {
	if s.Info.Size > k.DigestLimit {
		return nil
	}
	return k.digest(file, s, io.Discard)
}

// digest reads a file to its end into w and notes its digests.
func (k *Keeper) digest(file *safefile.File, s *Sealed, w io.Writer) error {
	sum := snapshot.NewDigest()
	writers := []io.Writer{sum, w}
	var identity, beginning hash.Hash
	if k.Identify != nil {
		identity = k.Identify(s.Info.Size)
		writers = append(writers, identity)
	}
	if identity != nil && s.size < s.Info.Size {
		beginning = k.Identify(s.size)
		writers = append(writers, &first{w: beginning, left: s.size})
	}
	read, err := io.Copy(io.MultiWriter(writers...), io.NewSectionReader(readerAt{file}, 0, s.Info.Size))
	if err != nil {
		return err
	}
	if read != s.Info.Size {
		return io.ErrUnexpectedEOF
	}
	sum.Sum(s.Digest[:0])
	if identity != nil {
		s.Identity = identity.Sum(nil)
		s.Began = beginning != nil && bytes.Equal(beginning.Sum(nil), s.Came)
	}
	return nil
}

// first passes the first bytes on and drops the others.
type first struct {
	w    io.Writer
	left int64
}

func (f *first) Write(p []byte) (int, error) {
	n := min(f.left, int64(len(p)))
	f.left -= n
	if _, err := f.w.Write(p[:n]); err != nil {
		return 0, err
	}
	return len(p), nil
}

// readerAt gives a file the contract of io.ReaderAt: a short read has a reason.
type readerAt struct{ file *safefile.File }

func (r readerAt) ReadAt(buf []byte, offset int64) (int, error) {
	n, err := r.file.ReadAt(buf, offset)
	if err == nil && n < len(buf) {
		err = io.EOF
	}
	return n, err
}
