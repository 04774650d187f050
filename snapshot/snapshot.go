// Package snapshot holds the vocabulary of states and their comparison: what
// stood at every protected path at the start (Entry, Manifest), the content it
// had (Store), what stands there now (Sight), and the walk that finds the
// paths.
//
// Everything it reads is read without waiting for anybody, without following
// a symlink and within stated bounds. A digest is always of exactly the bytes
// that were kept. It changes nothing on disk.
package snapshot

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"maps"
	"slices"
	"sync"

	"cage/internal/safefile"
	"cage/rules"

	"github.com/zeebo/blake3"
)

// ID addresses content: its BLAKE3-256 digest.
type ID [32]byte

// IDOf returns the address of content.
func IDOf(content []byte) ID { return blake3.Sum256(content) }

// ParseID reads the form that String writes: 64 hexadecimal digits.
func ParseID(s string) (ID, error) {
	var id ID
	if len(s) != hex.EncodedLen(len(id)) {
		return ID{}, errors.New("a content id has 64 hexadecimal digits")
	}
	_, err := hex.Decode(id[:], []byte(s))
	return id, err
}

func (id ID) String() string { return hex.EncodeToString(id[:]) }

// MarshalText writes the 64 hexadecimal digits.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads the 64 hexadecimal digits.
func (id *ID) UnmarshalText(text []byte) (err error) {
	*id, err = ParseID(string(text))
	return err
}

// Digest is a SHA-256 digest as reports give it. The zero value stands for
// content that was not read.
type Digest [32]byte

// DigestOf returns the digest of a regular file's content.
func DigestOf(content []byte) Digest { return sha256.Sum256(content) }

// DigestOfLink returns the digest of a symlink: of a tag and its target, so
// that no regular file has the same.
func DigestOfLink(target string) Digest {
	return sha256.Sum256([]byte("cage symlink\x00" + target))
}

func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// State is what stands at a path.
type State struct {
	safefile.Info
	Attrs   []safefile.Attr
	Link    string // target of a symlink
	Content ID     // of a regular file whose content was read
	Digest  Digest // of a regular file or symlink that was read
}

// Entry is one path of the protected set as it stood at the baseline.
type Entry struct {
	Path    rules.Path
	Verdict rules.Verdict
	State   State
	// Kept says that the content is in the store, so that it can be put back.
	Kept bool
	// MetadataOnly says that the content could not be read: the entry is
	// compared by what the directory tells.
	MetadataOnly bool
}

// Restorable reports whether the entry can be put back from what was kept:
// outside the anchors nothing is written.
func (e *Entry) Restorable() bool {
	return e.Path.Anchor != rules.Outside && (e.Kept || e.State.Kind == safefile.Symlink)
}

// Manifest is the baseline: every path of the protected set with its state.
// Once it is complete it is read by several goroutines and changed through
// Replace alone; Add and NoteDirectories are for whoever makes it.
type Manifest struct {
	mu      sync.RWMutex
	entries map[rules.Path]*Entry
	order   []rules.Path
	// dirs are the directories that hold entries or lie in protected trees.
	dirs map[rules.Path]safefile.Info
}

// Entry returns the entry at p.
func (m *Manifest) Entry(p rules.Path) (*Entry, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	e, ok := m.entries[p]
	return e, ok
}

// Replace puts a new baseline entry in the place of the one at its path, which
// must be there.
func (m *Manifest) Replace(e *Entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries[e.Path] = e
}

// Paths returns the paths of all entries in order. The slice is shared: the
// set of paths is fixed.
func (m *Manifest) Paths() []rules.Path { return m.order }

// Len returns the number of entries.
func (m *Manifest) Len() int { return len(m.order) }

// Directory returns the state that a directory had at the baseline, if it
// holds entries or lies in a protected tree.
func (m *Manifest) Directory(p rules.Path) (safefile.Info, bool) {
	info, ok := m.dirs[p]
	return info, ok
}

// Directories returns the directories that hold entries or lie in protected
// trees, parents first.
func (m *Manifest) Directories() []rules.Path {
	return slices.SortedFunc(maps.Keys(m.dirs), rules.Path.Compare)
}

// Store holds content by its address, each content once, in memory. It is safe
// for concurrent use.
type Store struct {
	mu      sync.RWMutex
	content map[ID][]byte
	size    int64
}

// NewStore returns an empty store.
func NewStore() *Store { return &Store{content: make(map[ID][]byte)} }

// Put keeps content, which the caller must not change afterwards.
func (s *Store) Put(content []byte) ID {
	id := IDOf(content)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.content[id]; !ok {
		s.content[id] = content
		s.size += int64(len(content))
	}
	return id
}

// Get returns the content at an address. The bytes are shared: read only.
func (s *Store) Get(id ID) ([]byte, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	content, ok := s.content[id]
	return content, ok
}

// Size returns the number of bytes kept.
func (s *Store) Size() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.size
}

// NewDigest returns the hash that makes a Digest.
func NewDigest() hash.Hash { return sha256.New() }

// NewManifest returns a manifest without entries that knows these directories.
func NewManifest(directories map[rules.Path]safefile.Info) *Manifest {
	return &Manifest{entries: make(map[rules.Path]*Entry), dirs: directories}
}

// Add adds an entry, whose path comes behind those of all others.
func (m *Manifest) Add(e *Entry) {
	m.entries[e.Path] = e
	m.order = append(m.order, e.Path)
}
