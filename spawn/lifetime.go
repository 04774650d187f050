package spawn

import "slices"

// Lifetime says what may outlive what.
type Lifetime uint8

const (
	// LifetimeRun ends everything with the run, and refuses setsid: what would
	// make itself a daemon fails at once and says so. It is the zero value. On
	// Linux a filter of system calls sees to it, with which no setuid program
	// gains rights (no_new_privs).
	LifetimeRun Lifetime = iota
	// LifetimeTree ends everything with the run. Processes may have sessions of
	// their own meanwhile.
	LifetimeTree
	// LifetimeLeave ends nothing after the command has ended by itself. Nothing of
	// it dies with the program either. It does not go with a NewPTY or a
	// PrivateTmp.
	LifetimeLeave
)

// checkModes refuses modes that are none, and those that contradict each other.
func (c Command) checkModes() error {
	refuse := func(reason string) error { return &StartError{Name: c.Path, Reason: reason} }
	const unknown = " is none of those that this package names"
	switch {
	case int(c.Lifetime) >= len(lifetimeNames):
		return refuse("its lifetime" + unknown)
	case int(c.Terminal) >= len(terminalNames):
		return refuse("its terminal" + unknown)
	case int(c.Environment.Policy) >= len(policyNames):
		return refuse("its environment policy" + unknown)
	case c.Lifetime == LifetimeLeave && c.Terminal == NewPTY:
		return refuse("a terminal of its own (pty) ends with the run, and takes with it what the lifetime leave is to leave")
	case c.Lifetime == LifetimeLeave && c.PrivateTmp:
		return refuse("a temporary directory of its own is removed with the run, and what the lifetime leave is to leave may use it")
	}
	return nil
}

// String returns the name by which a user asks for the lifetime.
func (l Lifetime) String() string { return lifetimeNames[l] }

// lifetimeNames are by lifetime.
var lifetimeNames = []string{"run", "tree", "leave"}

// ParseLifetime returns the lifetime of a name.
func ParseLifetime(name string) (Lifetime, bool) {
	i := slices.Index(lifetimeNames, name)
	return Lifetime(max(i, 0)), i >= 0
}
