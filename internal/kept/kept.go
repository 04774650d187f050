// Package kept looks after displaced versions: what stood in the way of a
// restore. It lends the quarantine that they are moved to, copies regular files
// out of it into the session's store once nobody writes them any more, and
// says where each version is.
//
// It promises that a version is never destroyed before its copy is complete
// and verified, and that the quarantine is gone at the end unless something
// still lies in it. It does not decide what is displaced.
package kept

import (
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"cage/internal/safefile"
	"cage/rules"
	"cage/snapshot"

	"github.com/zeebo/blake3"
)

// QuarantineName is the folder in the git directory that holds a quarantine
// for every session.
const QuarantineName = "gantry-cage-kept"

// copyBudget bounds what one session copies out of its quarantine: 64 MiB. What
// goes past it stays in the quarantine.
const copyBudget = 64 << 20

// incoming starts the name of a copy that is being written.
const incoming = "incoming-"

// Options say where a session's displaced versions go.
type Options struct {
	// GitDir holds the quarantine; nil outside git.
	GitDir *safefile.Root
	// Store is the folder for copies of this session; it is made when the first
	// copy is.
	Store string
	// Session names the quarantine.
	Session string
	// Drop lets regular files go instead of copying them.
	Drop bool
	// Identify returns the hash by which the caller knows content of a size;
	// nil where it does not care.
	Identify func(size int64) hash.Hash
	// Digest bounds the size in bytes of a version whose digest is taken though
	// it is not copied.
	DigestLimit int64
}

// Version is one displaced version.
type Version struct {
	// Tag is the caller's; Sealed carries it on.
	Tag  int
	Path rules.Path
	Info safefile.Info
	// Where a quarantined, held or set-aside version stands before it is sealed;
	// the same alternatives as restore.Displaced.
	Quarantined string
	File        *safefile.File
	Beside      string
	Content     []byte
}

// Sealed is what became of a version when nobody could change it any more.
type Sealed struct {
	Tag  int
	Path rules.Path
	Info safefile.Info
	// Place is an absolute path, empty where the version was let go.
	Place string
	// Digest is the SHA-256 of its content; zero where it was not read.
	Digest snapshot.Digest
	// Identity is the caller's own hash of the content; empty where it was not
	// read to the end.
	Identity []byte
	// Attrs are the extended attributes of a regular file.
	Attrs []safefile.Attr
	// Err says why the version could not be copied. It then lies at Place, or
	// is lost where Place is empty.
	Err error
}

// Keeper looks after the displaced versions of one session.
type Keeper struct {
	Options
	mu      sync.Mutex
	pending []Version
	sealed  []Sealed
	copied  int64
	wake    chan struct{} // there is something to seal, or the end has come
	done    chan struct{} // there are sealed versions to take
	closing bool
	stopped chan struct{}
}

// Open returns a Keeper and starts its sealing beside the caller.
func Open(o Options) *Keeper {
	k := &Keeper{
		Options: o,
		wake:    make(chan struct{}, 1), done: make(chan struct{}, 1), stopped: make(chan struct{}),
	}
	go k.run()
	return k
}

// errNoQuarantine is returned outside git.
var errNoQuarantine = errors.New("there is no git directory to hold a quarantine")

// Dir opens the quarantine directory, which is made when it is first needed and
// made again when somebody took it away. The caller closes it.
func (k *Keeper) Dir() (*safefile.Dir, error) {
	if k.GitDir == nil {
		return nil, errNoQuarantine
	}
	dir, err := k.GitDir.Dir(QuarantineName + "/" + k.Session)
	if !safefile.Missing(err) {
		return dir, err
	}
	top, err := k.GitDir.Dir("")
	if err != nil {
		return nil, err
	}
	defer top.Close()
	all, err := privateDir(top, QuarantineName)
	if err != nil {
		return nil, err
	}
	defer all.Close()
	return privateDir(all, k.Session)
}

// privateDir opens or makes a directory that only its owner can enter.
func privateDir(parent *safefile.Dir, name string) (*safefile.Dir, error) {
	const ownerOnly = 0o700
	err := parent.Mkdir(name, ownerOnly, uint32(os.Geteuid()), uint32(os.Getegid()))
	if err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	return parent.Dir(name)
}

// Keep takes charge of a displaced version.
func (k *Keeper) Keep(v Version) {
	k.mu.Lock()
	k.pending = append(k.pending, v)
	k.mu.Unlock()
	signal(k.wake)
}

// Adopt takes charge of what already lies in the session's quarantine, left
// there by a keeper that was killed.
func (k *Keeper) Adopt() {
	if k.GitDir == nil {
		return
	}
	dir, err := k.GitDir.Dir(QuarantineName + "/" + k.Session)
	if err != nil {
		return // there is none
	}
	defer dir.Close()
	entries, err := dir.ReadDir()
	if err != nil {
		return // it stays where it is
	}
	for _, entry := range entries {
		if info, err := dir.Stat(entry.Name); err == nil {
			k.Keep(Version{Quarantined: entry.Name, Info: info})
		}
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Ready is signalled when there are sealed versions to take.
func (k *Keeper) Ready() <-chan struct{} { return k.done }

// Take returns the versions that were sealed since the last call.
func (k *Keeper) Take() []Sealed {
	k.mu.Lock()
	defer k.mu.Unlock()
	sealed := k.sealed
	k.sealed = nil
	return sealed
}

// Finish seals everything that is left, now that nobody writes it any more,
// and removes the quarantine if it is empty. The last versions are there to
// Take afterwards.
func (k *Keeper) Finish() {
	k.mu.Lock()
	k.closing = true
	k.mu.Unlock()
	signal(k.wake)
	<-k.stopped
	k.removeQuarantine()
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

// Backoff between two looks at a version that somebody still writes.
const (
	firstLook = 20 * time.Millisecond
	lastLook  = time.Second
)

func (k *Keeper) run() {
	defer close(k.stopped)
	pause := firstLook
	for {
		left, closing := k.sealPending()
		if closing {
			return
		}
		var again <-chan time.Time
		if left {
			again = time.After(pause)
			pause = min(2*pause, lastLook)
		} else {
			pause = firstLook
		}
		select {
		case <-k.wake:
		case <-again:
		}
	}
}

// sealPending seals what can be sealed and reports whether versions are left
// because somebody writes them, and whether the keeper is closing.
func (k *Keeper) sealPending() (left, closing bool) {
	k.mu.Lock()
	batch := k.pending
	k.pending, closing = nil, k.closing
	k.mu.Unlock()
	var wait []Version
	for _, v := range batch {
		sealed, ok := k.seal(v, closing)
		if !ok {
			wait = append(wait, v)
			continue
		}
		k.mu.Lock()
		k.sealed = append(k.sealed, sealed)
		k.mu.Unlock()
		signal(k.done)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pending = append(wait, k.pending...)
	return len(k.pending) > 0, closing && len(k.pending) == 0
}

// seal says where a version is for good. It reports false where somebody still
// writes it; at the end it is taken as it is.
func (k *Keeper) seal(v Version, last bool) (Sealed, bool) {
	s := Sealed{Tag: v.Tag, Path: v.Path, Info: v.Info}
	switch {
	case v.Content != nil:
		k.sealContent(v, &s)
		return s, true
	case v.File != nil:
		if !last && v.File.BeingWritten() {
			return s, false
		}
		s.Place, s.Err = k.copyOut(v.File, &s, true)
		v.File.Close()
		return s, true
	case v.Beside != "":
		s.Place = v.Beside
		return s, true
	default:
		return k.sealQuarantined(v, s, last)
	}
}

func (k *Keeper) sealContent(v Version, s *Sealed) {
	s.Digest = snapshot.DigestOf(v.Content)
	if k.Identify != nil {
		h := k.Identify(int64(len(v.Content)))
		h.Write(v.Content)
		s.Identity = h.Sum(nil)
	}
	if k.Drop {
		return
	}
	s.Place, s.Err = k.store(func(w io.Writer) error {
		_, err := w.Write(v.Content)
		return err
	})
}

// sealQuarantined copies a regular file out of the quarantine; anything else,
// and what goes past the budget, stays there.
func (k *Keeper) sealQuarantined(v Version, s Sealed, last bool) (Sealed, bool) {
	dir, err := k.Dir()
	if err != nil {
		s.Err = err
		return s, true
	}
	defer dir.Close()
	s.Place = dir.Abs(v.Quarantined)
	if v.Info.Kind == safefile.Symlink {
		if target, err := dir.Readlink(v.Quarantined); err == nil {
			s.Digest = snapshot.DigestOfLink(target)
		}
		return s, true
	}
	if v.Info.Kind != safefile.Regular {
		return s, true
	}
	file, info, err := dir.Open(v.Quarantined)
	if errors.Is(err, safefile.ErrBusy) && !last {
		return s, false
	}
	if err != nil {
		s.Err = err
		return s, true
	}
	defer file.Close()
	if !last && file.BeingWritten() {
		return s, false
	}
	s.Info = info
	place, err := k.copyOut(file, &s, false)
	if err != nil {
		s.Err = err
		return s, true
	}
	if place == "" && !k.Drop {
		return s, true
	}
	s.Place = place
	s.Err = dir.Remove(v.Quarantined)
	return s, true
}

// copyOut copies a regular file into the store and takes its digests on the
// way. Past the budget it only takes the digests, unless the file has no other
// place to be.
func (k *Keeper) copyOut(file *safefile.File, s *Sealed, homeless bool) (place string, err error) {
	if info, err := file.Info(); err == nil {
		s.Info = info
	}
	s.Attrs, _ = file.Attrs()
	if k.Drop || !homeless && k.copied+s.Info.Size > copyBudget {
		if s.Info.Size > k.DigestLimit {
			return "", nil
		}
		return "", k.digest(file, s, io.Discard)
	}
	place, err = k.store(func(w io.Writer) error { return k.digest(file, s, w) })
	if err == nil {
		k.copied += s.Info.Size
	}
	return place, err
}

// digest reads a file to its end into w and notes its digests.
func (k *Keeper) digest(file *safefile.File, s *Sealed, w io.Writer) error {
	sum := snapshot.NewDigest()
	writers := []io.Writer{sum, w}
	var identity hash.Hash
	if k.Identify != nil {
		identity = k.Identify(s.Info.Size)
		writers = append(writers, identity)
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
	}
	return nil
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

// store writes a file into the session's store under the address of its
// content and returns its path.
func (k *Keeper) store(write func(io.Writer) error) (place string, err error) {
	if err := os.MkdirAll(k.Store, 0o700); err != nil {
		return "", fmt.Errorf("keep a displaced version: %w", err)
	}
	temp, err := os.CreateTemp(k.Store, incoming+"*") // mode 0600
	if err != nil {
		return "", fmt.Errorf("keep a displaced version: %w", err)
	}
	defer func() {
		temp.Close()
		if err != nil {
			os.Remove(temp.Name())
		}
	}()
	address := blake3.New()
	if err := write(io.MultiWriter(temp, address)); err != nil {
		return "", fmt.Errorf("keep a displaced version: %w", err)
	}
	if err := temp.Close(); err != nil {
		return "", fmt.Errorf("keep a displaced version: %w", err)
	}
	var id snapshot.ID
	address.Sum(id[:0])
	place = filepath.Join(k.Store, id.String())
	if err := os.Rename(temp.Name(), place); err != nil {
		return "", fmt.Errorf("keep a displaced version: %w", err)
	}
	return place, nil
}
