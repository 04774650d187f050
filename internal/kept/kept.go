// Package kept looks after displaced versions: what stood in the way of a
// restore. It lends the quarantine that they are moved to, copies regular files
// out of it into the session's store once nobody writes them any more, and
// says where each version is.
//
// It promises that a version is not let go before its copy is complete, and
// that the quarantine is gone at the end unless something still lies in it. It
// does not decide what is displaced.
package kept

import (
	"hash"
	"os"
	"path/filepath"
	"sync"
	"time"

	"cage/internal/mailbox"
	"cage/internal/safefile"
	"cage/rules"
	"cage/snapshot"
)

// QuarantineName is the folder in the git directory that holds a quarantine
// for every session.
const QuarantineName = "gantry-cage-kept"

// copyBudget bounds what one session copies out of its quarantine: 64 MiB. What
// goes past it stays in the quarantine. Versions without a name have nowhere to
// stay: the same bounds the size of one.
const copyBudget = 64 << 20

// Options say where a session's displaced versions go.
type Options struct {
	// GitDir holds the quarantine; nil outside git.
	GitDir *safefile.Root
	// Store is the folder for copies of this session; it is made when the first
	// copy is.
	Store string
	// Spare is the folder for copies of versions without a name that Store
	// cannot take; it is made when it is needed.
	Spare string
	// Session names the quarantine.
	Session string
	// Drop lets regular files go instead of copying them.
	Drop bool
	// Identify returns the hash by which the caller knows content of a size;
	// nil where it does not care.
	Identify func(size int64) hash.Hash
	// DigestLimit bounds the size in bytes of a version whose digest is taken
	// though it is not copied, and of one that is identified when it comes.
	DigestLimit int64
}

// GitDirOf returns the directory that holds the quarantine of a session on these
// trees: the work tree's own git directory; nil outside git.
func GitDirOf(trees *snapshot.Trees) *safefile.Root {
	if own := trees.Root(rules.GitDir); own != nil {
		return own
	}
	return trees.Root(rules.CommonDir)
}

// Version is one displaced version.
type Version struct {
	// Tag is the caller's; Sealed carries it on.
	Tag  int
	Path rules.Path
	Info safefile.Info
	// Where the version is before it is sealed, as restore.Displaced has it.
	Quarantined string
	File        *safefile.File
	Beside      string
	Content     []byte

	came []byte
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
	// Identity is the caller's own hash of the content, or of a link's target;
	// empty where it was not read to the end.
	Identity []byte
	// Came is the same as it was when the version came: whoever has the file
	// open may give it another content before it is sealed.
	Came []byte
	// Began says that it was the beginning then of what it became: its writer
	// was half way.
	Began bool
	// Attrs are the extended attributes of a regular file.
	Attrs []safefile.Attr
	// Err says why the version could not be copied. It then lies at Place, or
	// is lost where Place is empty.
	Err error
	// Quarantined is the name that it had in the quarantine.
	Quarantined string

	// size is what it had when it came.
	size int64
}

// Keeper looks after the displaced versions of one session.
type Keeper struct {
	Options
	sealed  *mailbox.Box[Sealed]
	mu      sync.Mutex
	pending []*Version
	copied  int64
	// forgotten are those that turned out to be no versions.
	forgotten []Sealed
	// places counts the sealed versions at each place. The sealing owns it.
	places  map[string]int
	wake    chan struct{} // there is something to seal, or the end has come
	closing bool
	stopped chan struct{}
}

// Open returns a Keeper and starts its sealing beside the caller.
func Open(o Options) *Keeper {
	k := &Keeper{
		Options: o, sealed: mailbox.New[Sealed](), places: make(map[string]int),
		wake: make(chan struct{}, 1), stopped: make(chan struct{}),
	}
	go k.run()
	return k
}

// Keep takes charge of a displaced version, and looks at once what it is.
func (k *Keeper) Keep(v Version) {
	v.came = k.identify(&v)
	k.mu.Lock()
	k.pending = append(k.pending, &v)
	k.mu.Unlock()
	k.rouse()
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

// rouse has the sealing look at what there is to do.
func (k *Keeper) rouse() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// Ready is signalled when there are sealed versions to take.
func (k *Keeper) Ready() <-chan struct{} { return k.sealed.Ready() }

// Take returns the versions that were sealed since the last call.
func (k *Keeper) Take() []Sealed { return k.sealed.Take() }

// Forget destroys a sealed version that turned out to be none, because the
// caller has the same. Others of the same content stay. It is done by the end
// of the next Finish.
func (k *Keeper) Forget(s Sealed) {
	k.mu.Lock()
	k.forgotten = append(k.forgotten, s)
	k.mu.Unlock()
	k.rouse()
}

// Finish seals everything that is left, now that the run is over, and removes
// the quarantine if it is empty. The last versions are there to Take afterwards.
func (k *Keeper) Finish() {
	k.mu.Lock()
	k.closing = true
	k.mu.Unlock()
	k.rouse()
	<-k.stopped
	k.dropForgotten()
	k.removeQuarantine()
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
// because they have to wait, and whether the keeper is closing.
func (k *Keeper) sealPending() (left, closing bool) {
	k.dropForgotten()
	k.mu.Lock()
	batch := k.pending
	k.pending, closing = nil, k.closing
	k.mu.Unlock()
	var wait []*Version
	for _, v := range batch {
		sealed, ok := k.seal(v, closing)
		if !ok {
			wait = append(wait, v)
			continue
		}
		k.places[sealed.Place]++
		k.sealed.Put(sealed)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pending = append(wait, k.pending...)
	return len(k.pending) > 0, closing && len(k.pending) == 0
}

// dropForgotten removes what was forgotten and is at a place that no other
// version shares.
func (k *Keeper) dropForgotten() {
	k.mu.Lock()
	forgotten := k.forgotten
	k.forgotten = nil
	k.mu.Unlock()
	for _, s := range forgotten {
		if k.places[s.Place]--; s.Place != "" && k.places[s.Place] == 0 {
			k.drop(s.Place)
		}
	}
}

// drop removes one place. What cannot be removed is kept for nothing.
func (k *Keeper) drop(place string) {
	folder := filepath.Dir(place)
	if folder == k.Store || folder == k.Spare {
		_ = os.Remove(place)
		_ = os.Remove(folder) // not empty: it holds other versions
		return
	}
	if dir, err := k.Dir(); err == nil {
		_ = dir.Remove(filepath.Base(place))
		dir.Close()
	}
}
