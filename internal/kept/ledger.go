package kept

import (
	"path/filepath"
	"slices"
	"sync"
	"time"

	"cage/internal/safefile"
	"cage/rules"
	"cage/snapshot"
)

// Ledger collects what an index says while versions are sealed. It is safe for
// concurrent use.
type Ledger struct {
	options Options
	mu      sync.Mutex
	index   Index
	known   map[identity]int
	// bytes is about what the records take, names and attributes alone.
	bytes int
	// noted counts what changed the index.
	noted int
	// writing keeps two writers from overtaking each other. It guards what
	// follows: how much of what was noted is written, and whether the last
	// attempt failed.
	writing sync.Mutex
	written int
	failing bool
}

// NewLedger returns the ledger of a keeper with these options. It goes on where
// an index in the store ends, and with the copies that are not in it.
func NewLedger(o Options, about Index) *Ledger {
	l := &Ledger{options: o, index: about, known: make(map[identity]int)}
	if before, err := ReadIndex(o.Store); err == nil {
		l.index.Records, l.index.Untold = before.Records, before.Untold
	}
	known := len(l.index.Records)
	l.index.ListCopies(o.Store, Stored)
	l.noted = len(l.index.Records) - known
	for i := range l.index.Records {
		l.known[l.index.Records[i].identity()] = i
		l.bytes += l.index.Records[i].bytes()
	}
	return l
}

func (r *Record) bytes() int {
	n := len(r.Path.Rel) + len(r.Spot.Path.Rel)
	for _, attr := range r.Attrs {
		n += len(attr.Name) + len(attr.Value)
	}
	return n
}

// identity tells a version from others: where it stood, where it lies and what
// it is.
type identity struct {
	path           rules.Path
	spot           Spot
	kind           safefile.Kind
	perm, uid, gid uint32
	digest         snapshot.Digest
}

func (r *Record) identity() identity {
	return identity{r.Path, r.Spot, r.Info.Kind, r.Info.Perm, r.Info.UID, r.Info.GID, r.Digest}
}

// Note notes a sealed version and what belonged in its place. One that is let
// go, or lies where no index can say, is not noted.
func (l *Ledger) Note(s Sealed, before snapshot.State, at time.Time) {
	record := Record{
		Path: s.Path, Info: s.Info, Attrs: s.Attrs, Digest: s.Digest, Spot: l.spot(s.Place),
		Before: before, At: at, Times: 1,
	}
	if s.Place == "" || record.Spot.Path.Anchor == rules.Outside {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noted++
	id := record.identity()
	if i, seen := l.known[id]; seen {
		record.Times += l.index.Records[i].Times
		// What came again is the newest.
		l.index.Records[i] = record
		return
	}
	if len(l.index.Records) == mostRecords || l.bytes+record.bytes() > ledgerBytes {
		l.index.Untold++
		return
	}
	l.bytes += record.bytes()
	l.known[id] = len(l.index.Records)
	l.index.Records = append(l.index.Records, record)
}

// spot spells an absolute place.
func (l *Ledger) spot(place string) Spot {
	folder, name := filepath.Dir(place), filepath.Base(place)
	switch {
	case folder == l.options.Store:
		return Spot{Room: Stored, Name: name}
	case folder == l.options.Spare:
		return Spot{Room: Spared, Name: name}
	case l.options.GitDir != nil && folder == l.options.quarantine():
		return Spot{Room: Quarantined, Name: name}
	default:
		return Spot{Room: SetAside, Path: l.index.Layout.Locate(place)}
	}
}

// quarantine is the path of the session's folder in the git directory.
func (o Options) quarantine() string {
	return filepath.Join(o.GitDir.Path(), QuarantineName, o.Session)
}

// Write puts what was noted since the last time into the index of the store;
// complete says that nothing more is to come. Where nothing was ever noted
// there is no index. What could not be written is due again the next time; until
// the end that is said once, however often it fails.
func (l *Ledger) Write(complete bool) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	index, noted := l.draw()
	index.Complete = complete
	if noted == l.written && !(complete && len(index.Records) > 0) {
		return nil
	}
	err := WriteIndex(l.options.Store, &index)
	if err == nil {
		l.written, l.failing = noted, false
		return nil
	}
	if l.failing && !complete {
		return nil
	}
	l.failing = true
	return err
}

// draw returns the index as it is now, and how often something was noted.
func (l *Ledger) draw() (index Index, noted int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	index = l.index
	index.Records = slices.Clone(index.Records)
	return index, l.noted
}
