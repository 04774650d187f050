package report

// Ending is what decides the status of a session.
type Ending struct {
	Halted bool
	// Alive says that processes of the run survived it, or that nothing proves
	// that none did.
	Alive      bool
	Changes    []Change
	NotStarted bool
	// Signal is the number of the signal that killed the command, 0 if none.
	Signal int
	// ExitCode is the command's own, where it exited.
	ExitCode int
}

// Decide returns the status of a session and the exit code of the cage. The
// first condition that holds decides.
func Decide(e Ending) (Status, int) {
	violated, unresolved := judge(e.Changes)
	switch {
	case e.Halted:
		return Halted, 4
	case e.Alive, unresolved:
		return Unresolved, 3
	case violated:
		return Reverted, 3
	case e.NotStarted:
		return NotStarted, 2
	case e.Signal != 0:
		return OK, 128 + e.Signal
	default:
		return OK, e.ExitCode
	}
}

// judge reports whether a path under a revert rule was changed, and whether
// one of them is not back.
func judge(changes []Change) (violated, unresolved bool) {
	for _, c := range changes {
		violated = violated || c.Outcome.Violation()
		unresolved = unresolved || c.Outcome.Violation() && !c.Outcome.Back()
	}
	return violated, unresolved
}

// Violation reports whether the outcome is that of a change under a revert
// rule that counts. An outcome nobody has named counts.
func (o Outcome) Violation() bool { return o != OutcomeKept }

// Back reports whether the path is as the baseline had it.
func (o Outcome) Back() bool { return o == OutcomeReverted || o == OutcomeRemoved }
