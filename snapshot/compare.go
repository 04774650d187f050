package snapshot

import (
	"bytes"
	"crypto/sha256"
	"io"
	"time"

	"cage/internal/safefile"
	"cage/rules"

	"github.com/zeebo/blake3"
)

// Sight is what a look at a path found, compared with its baseline.
type Sight struct {
	State State
	// Same says that content, type, permissions, owner and attributes are the
	// baseline's.
	Same bool
	// Prefix says that a regular file holds a proper prefix of the baseline's
	// content, whatever its attributes: a writer may be half way through writing
	// the same again, and gives a new file a mode and an owner of its own.
	Prefix bool
	// Undressed says that a file or a link holds the whole content of the
	// baseline, and that permissions, owner or attributes are not the baseline's.
	Undressed bool
	// Born is when the inode was made of something that holds the content of the
	// baseline or half of it, undressed; zero where the system does not tell.
	Born time.Time
	// Err says why the path could not be read to the end. State then holds
	// what could be seen.
	Err error
}

// Looker compares paths with their baseline. It keeps a buffer and the last
// directory, so one goroutine uses one Looker.
type Looker struct {
	trees *Trees
	store *Store
	limit int64
	buf   []byte
	// parents keeps the last directory open.
	parents parents
	// last is the path of the file that was opened last, empty before the first.
	last rules.Path
}

// NewLooker returns a Looker that reads at most limit bytes of a file, or the
// size the file had at the baseline where that is more.
func NewLooker(trees *Trees, store *Store, limit int64) *Looker {
	return &Looker{trees: trees, store: store, limit: limit, parents: parents{trees: trees}}
}

// Forget closes the directory that was kept open for the next look, so that
// the next one resolves its path again.
func (l *Looker) Forget() {
	l.parents.leave()
	l.last = rules.Path{}
}

// Compare looks at the path of an entry. Content that was kept is compared
// byte by byte, other content by its digest.
func (l *Looker) Compare(e *Entry) Sight {
	if e.State.Kind == safefile.Regular && !e.MetadataOnly {
		return l.compareFile(e)
	}
	dir, err := l.parents.of(e.Path)
	if err != nil {
		return Sight{Err: safefile.UnlessAbsent(err)}
	}
	return l.compareIn(dir, e)
}

func (l *Looker) compareIn(dir *safefile.Dir, e *Entry) Sight {
	name := e.Path.Base()
	info, err := dir.Stat(name)
	if err != nil {
		return Sight{Err: safefile.UnlessAbsent(err)}
	}
	sight := Sight{State: State{Info: info}}
	switch {
	case info.Kind != e.State.Kind:
	case info.Kind == safefile.Symlink:
		sight.State.Link, err = dir.Readlink(name)
		sight.Err = err
		same := err == nil && sight.State.Link == e.State.Link
		sight.Same = same && sameOwner(&info, &e.State.Info)
		if sight.Undressed = same && !sight.Same; sight.Undressed {
			sight.Born = dir.Born(name)
		}
	case info.Kind != safefile.Regular:
		sight.Same = true
	default:
		sight.Same = sameMeta(&info, &e.State.Info) && info.MTime == e.State.MTime && info.Size == e.State.Size
	}
	return sight
}

func sameMeta(a, b *safefile.Info) bool { return a.Perm == b.Perm && sameOwner(a, b) }

func sameOwner(a, b *safefile.Info) bool { return a.UID == b.UID && a.GID == b.GID }

// compareFile compares what should be a regular file.
func (l *Looker) compareFile(e *Entry) Sight {
	f, info, err := l.open(e.Path)
	if err != nil {
		return unopened(info, err)
	}
	defer f.Close()
	sight := Sight{State: State{Info: info}}
	if sight.State.Attrs, sight.Err = f.Attrs(); sight.Err != nil {
		return sight
	}
	meta := sameMeta(&info, &e.State.Info) && safefile.SameAttrs(sight.State.Attrs, e.State.Attrs)
	if !e.Kept {
		same, err := l.sameDigest(f, e)
		sight.Err, sight.Same = err, same && meta
		return sight
	}
	same, prefix, err := l.sameContent(f, info.Size, e)
	sight.Err, sight.Same, sight.Prefix = err, same && meta, prefix
	if sight.Undressed = same && !meta; (same || prefix) && !meta {
		sight.Born = f.Born()
	}
	return sight
}

// open opens a file by its path. A directory is kept open only once a second
// file in a row lies in it: for one alone that would be a detour.
func (l *Looker) open(p rules.Path) (*safefile.File, safefile.Info, error) {
	alone := l.last.Rel == "" || l.last.Dir() != p.Dir()
	l.last = p
	if alone {
		return l.trees.Root(p.Anchor).Reopen(p.Rel)
	}
	dir, err := l.parents.of(p)
	if err != nil {
		return nil, safefile.Info{}, err
	}
	return dir.Reopen(p.Base())
}

// unopened is what was seen where no regular file could be opened: another
// type, nothing, or a file that may not be read.
func unopened(info safefile.Info, err error) Sight {
	switch {
	case info.Kind != safefile.None && info.Kind != safefile.Regular:
		return Sight{State: State{Info: info}}
	case safefile.Absent(err):
		return Sight{}
	default:
		return Sight{State: State{Info: info}, Err: err}
	}
}

// chunk is how much of a file is compared at a time: little enough to stay in
// the processor's cache, so that a large file costs no memory.
const chunk = 128 << 10

// sameContent compares a file with the content kept of it, as far as they are
// the same.
func (l *Looker) sameContent(f *safefile.File, size int64, e *Entry) (same, prefix bool, err error) {
	want, _ := l.store.Get(e.State.Content)
	if size > int64(len(want)) {
		return false, false, nil
	}
	l.grow(len(want) + 1)
	for rest := want; ; {
		// A byte more than is expected, so that the end is seen as well.
		got := l.buf[:min(len(l.buf), len(rest)+1)]
		n, err := f.ReadSome(got, int64(len(want)-len(rest)))
		if err != nil || n > len(rest) || !bytes.Equal(got[:n], rest[:n]) {
			return false, false, err
		}
		switch {
		case n == len(rest) && n < len(got):
			return true, false, nil
		case n == 0:
			return false, true, nil
		}
		rest = rest[n:]
	}
}

// grow makes the buffer large enough for so many bytes, or for a chunk of them.
func (l *Looker) grow(size int) {
	if size = min(size, chunk); len(l.buf) < size {
		l.buf = make([]byte, max(size, 4<<10))
	}
}

// sameDigest compares a file whose content was not kept.
func (l *Looker) sameDigest(f *safefile.File, e *Entry) (bool, error) {
	info, err := f.Info()
	if err != nil || info.Size != e.State.Size {
		return false, err
	}
	id, _, _, err := Hash(f, e.State.Size)
	return id == e.State.Content, err
}

// Hash reads a file from its beginning, at most limit bytes of it, and returns
// the address and the digest of what it read. Whole is false where the file
// goes on after that.
func Hash(f *safefile.File, limit int64) (id ID, digest Digest, whole bool, err error) {
	address, sum := blake3.New(), sha256.New()
	buf := make([]byte, 256<<10)
	var offset int64
	for {
		chunk := buf[:min(int64(len(buf)), limit+1-offset)]
		n, err := f.ReadAt(chunk, offset)
		if err != nil {
			return id, digest, false, err
		}
		if offset+int64(n) > limit {
			return id, digest, false, nil
		}
		io.MultiWriter(address, sum).Write(chunk[:n])
		offset += int64(n)
		if n < len(chunk) {
			address.Sum(id[:0])
			sum.Sum(digest[:0])
			return id, digest, true, nil
		}
	}
}

// Digest returns the digest of what a look found in the place of an entry, as
// far as it may be read; zero where there is nothing to digest.
func (l *Looker) Digest(e *Entry, sight Sight) Digest {
	switch sight.State.Kind {
	case safefile.Symlink:
		return DigestOfLink(sight.State.Link)
	case safefile.Regular:
		return l.digestFile(e.Path, max(l.limit, e.State.Size))
	default:
		return Digest{}
	}
}

// DigestNew returns the digest of what stands at a path that the baseline does
// not have, as far as it may be read.
func (l *Looker) DigestNew(p rules.Path) Digest {
	dir, err := l.parents.of(p)
	if err != nil {
		return Digest{}
	}
	if target, err := dir.Readlink(p.Base()); err == nil {
		return DigestOfLink(target)
	}
	return l.digestFile(p, l.limit)
}

func (l *Looker) digestFile(p rules.Path, limit int64) Digest {
	dir, err := l.parents.of(p)
	if err != nil {
		return Digest{}
	}
	f, _, err := dir.Open(p.Base())
	if err != nil {
		return Digest{}
	}
	defer f.Close()
	_, digest, _, err := Hash(f, limit)
	if err != nil {
		return Digest{}
	}
	return digest
}
