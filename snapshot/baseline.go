package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"cage/internal/safefile"
	"cage/rules"
)

// Limits bound what a baseline may hold.
type Limits struct {
	FileBytes  int64 // of one file under a revert rule
	Files      int   // in the protected set
	TotalBytes int64 // in the protected set
	// DetectOversize hashes files that go past FileBytes or TotalBytes instead
	// of refusing them; a change to one is then seen but not undone.
	DetectOversize bool
	// KeepNothing is for runs that restore nothing: content is hashed only, but
	// for git's config.
	KeepNothing bool
}

// LimitsError is returned where the protected set is larger than the limits.
type LimitsError struct {
	Limits   Limits
	Files    int
	ByRule   map[rules.Rule]int // files
	Bytes    int64
	Largest  []Offender // largest first, at most MostOffenders
	Oversize []Offender // revert files over the limit for one file
}

// MostOffenders is how many files a person is shown of a set that is too large.
const MostOffenders = 10

// Offender is a file with its size in bytes.
type Offender struct {
	Path rules.Path
	Size int64
}

func (e *LimitsError) Error() string {
	return fmt.Sprintf("the protected set has %d files with %d bytes (limits %d and %d), %d of them over the limit of %d bytes for one file",
		e.Files, e.Bytes, e.Limits.Files, e.Limits.TotalBytes, len(e.Oversize), e.Limits.FileBytes)
}

// EntryError is returned where a path that must be protected cannot be read.
type EntryError struct {
	Path rules.Path
	Err  error
}

func (e *EntryError) Error() string { return fmt.Sprintf("read %q: %v", e.Path.Rel, e.Err) }

func (e *EntryError) Unwrap() error { return e.Err }

// ErrBeingWritten is the reason of an EntryError for a file that somebody was
// still writing when the wait was over: half a file is no baseline.
var ErrBeingWritten = errors.New("somebody is still writing it")

// ErrGrown is the reason of an EntryError for a file that has grown past the limits
// since the set was measured.
var ErrGrown = errors.New("it has just grown past what is kept of a file, or of all together")

// ErrLocked is the reason of an EntryError for a lock file of git's that stood
// there until the wait was over: git is rewriting its configuration.
var ErrLocked = errors.New("git is rewriting its configuration")

// Settling says how long a baseline waits for files that are being written,
// all together, and how often it looks.
const (
	settleFor   = 3 * time.Second
	settleEvery = 10 * time.Millisecond
)

// Take captures the baseline of the given paths. What the plan does not
// classify, and what is gone by now, is left out.
func Take(ctx context.Context, trees *Trees, plan *rules.Plan, paths []rules.Path, store *Store, limits Limits) (*Manifest, error) {
	b := &baseline{
		ctx: ctx, trees: trees, plan: plan, store: store, limits: limits, parents: parents{trees: trees},
		deadline: time.Now().Add(settleFor),
		manifest: NewManifest(make(map[rules.Path]safefile.Info)),
	}
	defer b.parents.leave()
	if err := b.awaitGit(); err != nil {
		return nil, err
	}
	paths = slices.Clone(paths)
	slices.SortFunc(paths, rules.Path.Compare)
	paths = slices.Compact(paths)
	measured, err := b.measure(paths)
	if err != nil {
		return nil, err
	}
	for _, m := range measured {
		if err := b.capture(m); err != nil {
			return nil, &EntryError{Path: m.path, Err: err}
		}
	}
	return b.manifest, nil
}

// ConfigBytes bounds the size of git's config, 1 MiB, up to which its content is
// in the store even where it is not kept: whether a change of it is one, its
// content says.
const ConfigBytes = 1 << 20

type baseline struct {
	ctx      context.Context
	trees    *Trees
	plan     *rules.Plan
	store    *Store
	limits   Limits
	deadline time.Time
	manifest *Manifest
	parents  parents
}

// gitLocks are what stands beside a configuration of git's while git rewrites
// it (git-config takes <file>.lock, then renames it into place).
func gitLocks() []string { return []string{"config.lock", "config.worktree.lock"} }

// awaitGit waits until git rewrites no configuration any more.
func (b *baseline) awaitGit() error {
	for _, anchor := range []rules.Anchor{rules.CommonDir, rules.GitDir} {
		if b.trees.Root(anchor) == nil {
			continue
		}
		for _, name := range gitLocks() {
			if err := b.awaitAbsence(rules.Path{Anchor: anchor, Rel: name}); err != nil {
				return &EntryError{Path: rules.Path{Anchor: anchor, Rel: name}, Err: err}
			}
		}
	}
	return nil
}

func (b *baseline) awaitAbsence(p rules.Path) error {
	for {
		dir, err := b.enter(p)
		if err != nil {
			return err
		}
		if _, err := dir.Stat(p.Base()); safefile.Absent(err) {
			return nil
		} else if err != nil {
			return err
		}
		if err := b.pause(ErrLocked); err != nil {
			return err
		}
	}
}

// pause waits before another look, or returns the given error where the
// baseline has waited long enough.
func (b *baseline) pause(late error) error {
	if time.Now().After(b.deadline) {
		return late
	}
	select {
	case <-b.ctx.Done():
		return b.ctx.Err()
	case <-time.After(settleEvery):
		return nil
	}
}

type measured struct {
	path    rules.Path
	verdict rules.Verdict
	info    safefile.Info
}

// restored reports whether a change at a path is to be undone: outside the anchors
// nothing is written.
func restored(p rules.Path, v rules.Verdict) bool {
	return v.Mode == rules.Revert && p.Anchor != rules.Outside
}

func (m *measured) restored() bool { return restored(m.path, m.verdict) }

// enter opens the directory that holds p and notes it and those above it.
func (b *baseline) enter(p rules.Path) (*safefile.Dir, error) {
	dir, err := b.parents.of(p)
	if err != nil {
		return nil, err
	}
	return dir, b.noteDirs(p.Dir())
}

func (b *baseline) noteDirs(p rules.Path) error {
	if p.Anchor == rules.Outside {
		return nil
	}
	for {
		if _, ok := b.manifest.dirs[p]; ok {
			return nil
		}
		if err := b.manifest.noteDir(b.trees, p); err != nil {
			return err
		}
		if p.Rel == "" {
			return nil
		}
		p = p.Dir()
	}
}

func (m *Manifest) noteDir(trees *Trees, p rules.Path) error {
	dir, err := trees.Dir(p)
	if err != nil {
		return err
	}
	defer dir.Close()
	info, err := dir.Info()
	if err == nil {
		m.dirs[p] = info
	}
	return err
}

// NoteDirectories adds directories of protected trees to what the manifest
// knows; ones that are gone by now are left out.
func (m *Manifest) NoteDirectories(trees *Trees, dirs []rules.Path) {
	for _, p := range dirs {
		if _, ok := m.dirs[p]; !ok {
			_ = m.noteDir(trees, p) // gone: nothing to know
		}
	}
}

// measure looks at every path without reading it and holds the set against the
// limits.
func (b *baseline) measure(paths []rules.Path) ([]measured, error) {
	var set []measured
	for _, p := range paths {
		verdict, ok := b.plan.Classify(p)
		if !ok {
			continue
		}
		dir, err := b.enter(p)
		if err != nil {
			if safefile.Absent(err) {
				continue
			}
			return nil, &EntryError{Path: p, Err: err}
		}
		info, err := dir.Stat(p.Base())
		switch {
		case safefile.Absent(err), err == nil && info.Kind == safefile.Directory:
			continue
		case err != nil:
			return nil, &EntryError{Path: p, Err: err}
		}
		set = append(set, measured{path: p, verdict: verdict, info: info})
	}
	return set, b.bound(set)
}

func (b *baseline) bound(set []measured) error {
	e := LimitsError{Limits: b.limits, Files: len(set), ByRule: make(map[rules.Rule]int)}
	for _, m := range set {
		e.ByRule[m.verdict.Rule]++
		if m.info.Kind != safefile.Regular {
			continue
		}
		e.Bytes += m.info.Size
		offender := Offender{Path: m.path, Size: m.info.Size}
		e.Largest = append(e.Largest, offender)
		if m.restored() && m.info.Size > b.limits.FileBytes {
			e.Oversize = append(e.Oversize, offender)
		}
	}
	over := e.Files > b.limits.Files ||
		!b.limits.DetectOversize && (e.Bytes > b.limits.TotalBytes || len(e.Oversize) > 0)
	if !over {
		return nil
	}
	bySize := func(x, y Offender) int { return int(min(1, max(-1, y.Size-x.Size))) }
	slices.SortStableFunc(e.Largest, bySize)
	slices.SortStableFunc(e.Oversize, bySize)
	e.Largest = e.Largest[:min(MostOffenders, len(e.Largest))]
	return &e
}

// capture reads one path into the manifest. A revert rule needs its content; a
// report rule that cannot have it goes by metadata.
func (b *baseline) capture(m measured) error {
	e := &Entry{Path: m.path, Verdict: m.verdict, State: State{Info: m.info}}
	err := b.read(e)
	switch {
	case safefile.Absent(err):
		return nil
	case err != nil && (m.restored() || errors.Is(err, ErrBeingWritten)):
		return err
	}
	e.MetadataOnly = err != nil
	b.manifest.Add(e)
	return nil
}

// read reads what a link or a file holds.
func (b *baseline) read(e *Entry) error {
	dir, err := b.enter(e.Path)
	if err != nil {
		return err
	}
	switch e.State.Kind {
	case safefile.Symlink:
		if e.State.Link, err = dir.Readlink(e.Path.Base()); err == nil {
			e.State.Digest = DigestOfLink(e.State.Link)
		}
		return err
	case safefile.Regular:
		return b.captureFile(dir, e)
	default:
		return nil
	}
}

// captureFile reads a file that nobody is writing.
func (b *baseline) captureFile(dir *safefile.Dir, e *Entry) error {
	for {
		settled, err := b.readFile(dir, e)
		if settled || err != nil && !errors.Is(err, safefile.ErrBusy) {
			return err
		}
		if err := b.pause(ErrBeingWritten); err != nil {
			return err
		}
	}
}

// readFile reads a file once and reports whether it stood still meanwhile.
func (b *baseline) readFile(dir *safefile.Dir, e *Entry) (settled bool, err error) {
	f, info, err := dir.Reopen(e.Path.Base())
	if err != nil {
		return false, err
	}
	defer f.Close()
	if f.BeingWritten() {
		return false, nil
	}
	state := State{Info: info}
	if state.Attrs, err = f.Attrs(); err != nil {
		return false, err
	}
	kept := b.keeps(e, info.Size)
	if !kept && b.mustKeep(e) {
		return false, ErrGrown
	}
	held := kept || e.Path == rules.GitConfig() && info.Size <= ConfigBytes
	var content []byte
	if held {
		content, err = whole(f, info.Size)
	} else {
		state.Content, state.Digest, _, err = Hash(f, info.Size)
	}
	if err != nil {
		return false, err
	}
	after, err := f.Info()
	if err != nil || after.Size != info.Size || after.MTime != info.MTime {
		return false, err
	}
	if held { // only now: the store counts what it holds against the limits
		state.Content, state.Digest = b.store.Put(content), DigestOf(content)
	}
	e.State, e.Kept = state, kept
	return true, nil
}

func (b *baseline) keeps(e *Entry, size int64) bool {
	return restored(e.Path, e.Verdict) && !b.limits.KeepNothing &&
		size <= b.limits.FileBytes && b.store.Size()+size <= b.limits.TotalBytes
}

// mustKeep reports whether a baseline without the content of e would protect less
// than was asked for.
func (b *baseline) mustKeep(e *Entry) bool {
	return restored(e.Path, e.Verdict) && !b.limits.KeepNothing && !b.limits.DetectOversize
}

// whole reads a file of that size, and a byte more where it has grown.
func whole(f *safefile.File, size int64) ([]byte, error) {
	content := make([]byte, size+1)
	n, err := f.ReadAt(content, 0)
	return content[:n:n], err
}

// WithAttributes returns an entry like e, but for the attributes that could not
// be set back, which are as they were reached: they are no difference any more.
func (e *Entry) WithAttributes(unset []safefile.UnsetAttr, reached State) *Entry {
	changed := *e
	changed.State.Attrs = slices.Clone(e.State.Attrs)
	for _, attr := range unset {
		if attr.Name == safefile.OwnerAttr {
			changed.State.UID, changed.State.GID = reached.UID, reached.GID
			// Nobody gives a file the setgid bit of a group that is not theirs
			// (chmod(2)).
			changed.State.Perm &= reached.Perm | ^setgid
			continue
		}
		changed.State.take(attr.Name, reached.Attrs)
	}
	return &changed
}

const setgid = uint32(0o2000)

// take gives the state the attribute called name that others hold, or none.
func (s *State) take(name string, others []safefile.Attr) {
	named := func(a safefile.Attr) bool { return a.Name == name }
	s.Attrs = slices.DeleteFunc(s.Attrs, named)
	at := slices.IndexFunc(others, named)
	if at < 0 {
		return
	}
	before, _ := slices.BinarySearchFunc(s.Attrs, name, func(a safefile.Attr, name string) int {
		return strings.Compare(a.Name, name)
	})
	s.Attrs = slices.Insert(s.Attrs, before, others[at])
}
