package guard

import (
	"time"

	"cage/internal/gitrepo"
	"cage/internal/kept"
	"cage/rules"
	"cage/snapshot"
)

// Kind says how a path differed.
type Kind string

// The kinds of change. A swap of types is a modification.
const (
	Added    Kind = "added"
	Modified Kind = "modified"
	Deleted  Kind = "deleted"
)

// Outcome says what became of a change.
type Outcome string

// The outcomes of a change.
const (
	Reverted     Outcome = "reverted"
	Removed      Outcome = "removed"
	Kept         Outcome = "kept"
	Reported     Outcome = "reported"
	DetectOnly   Outcome = "detect_only"
	RevertFailed Outcome = "revert_failed"
)

// Event is something that a guard did or noticed.
type Event interface{ isEvent() }

// Restored says that a path was put back. Its displaced state follows as an
// Explained with the same tag.
type Restored struct {
	Tag     int
	Path    rules.Path
	Verdict rules.Verdict
	Kind    Kind
	Outcome Outcome
	At      time.Time
	// Live is set while the command may still run.
	Live bool
	// Directory says that a directory got its owner and mode back: it displaces
	// nothing and is no round.
	Directory bool
}

// Explained says what the restore with the same tag displaced.
type Explained struct {
	Tag int
	// State is what git would record for it; nil where git has no word for it,
	// or the same as for the baseline.
	State *gitrepo.State
	// Baseline is what git would record for what belongs there, where State is
	// absence; nil where nothing does.
	Baseline *gitrepo.State
	// Unchanged says that it was the baseline after all: somebody had written
	// the same again, slowly, or git had, with an owner or mode of its own, on
	// its way back from another version.
	Unchanged bool
}

// Displaced says what a restore displaced, once nobody could change it any
// more, and what belonged there instead: of kind None where nothing did.
type Displaced struct {
	Sealed   kept.Sealed
	Baseline snapshot.State
}

// Listed says that a change was noticed and left: under a report rule, by
// override, in a run that only reports, or because nothing was kept.
type Listed struct {
	Path    rules.Path
	Verdict rules.Verdict
	Kind    Kind
	Outcome Outcome
	Note    Note
}

// Failed says that a path could not be put back. It comes once for a path and
// reason; every rescan tries again.
type Failed struct {
	Path    rules.Path
	Verdict rules.Verdict
	Kind    Kind
	Code    string // the errno's name
}

// Rebased says that a path has a new baseline: git's own change was kept, or an
// attribute cannot be set back.
type Rebased struct{ Entry *snapshot.Entry }

// Overflow says that the kernel's event queue lost events.
type Overflow struct{}

// Degraded says that events are missing, and why.
type Degraded struct{ Reason string }

// WatchError is a failure of watching that rescans make up for.
type WatchError struct{ Err error }

// GroundMoved says that another directory stands where an anchor stood.
type GroundMoved struct{ Anchors []rules.Anchor }

// TooMany says that more than MaxChanged paths under revert rules changed
// while the command may still run.
type TooMany struct {
	Path    rules.Path
	Rule    rules.Rule
	Changed int
}

func (Restored) isEvent()    {}
func (Explained) isEvent()   {}
func (Displaced) isEvent()   {}
func (Listed) isEvent()      {}
func (Failed) isEvent()      {}
func (Rebased) isEvent()     {}
func (Overflow) isEvent()    {}
func (Degraded) isEvent()    {}
func (WatchError) isEvent()  {}
func (GroundMoved) isEvent() {}
func (TooMany) isEvent()     {}

// emit queues an event.
func (g *Guard) emit(e Event) { g.events.Put(e) }

// Ready is signalled when there are events to take.
func (g *Guard) Ready() <-chan struct{} { return g.events.Ready() }

// Take returns the events since the last call, in order.
func (g *Guard) Take() []Event { return g.events.Take() }
