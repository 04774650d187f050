package spawn

import (
	"slices"
	"strings"
)

// Policy says which variables of a caller reach a command. What does not reach it
// is not hidden from it: it can read the environment of other programs of its
// user.
type Policy uint8

const (
	// AllowList passes the named variables and no others. It is the zero value,
	// so that nothing passes which nobody named.
	AllowList Policy = iota
	// Passthrough passes all but the denied ones, those that change what a
	// program loads, and those that by their names hold secrets.
	Passthrough
	// Inherit passes all but the denied ones.
	Inherit
)

// String returns the name by which a user asks for the policy.
func (p Policy) String() string { return policyNames[p] }

// policyNames are by policy.
var policyNames = []string{"allowlist", "passthrough", "inherit"}

// ParsePolicy returns the policy of a name.
func ParsePolicy(name string) (Policy, bool) {
	i := slices.Index(policyNames, name)
	return Policy(max(i, 0)), i >= 0
}

// Environment says what of a caller's environment reaches a command.
type Environment struct {
	Policy Policy
	// Allow are the names that an AllowList passes.
	Allow []string
	// Deny are names that never pass.
	Deny []string
	// Set are NAME=value entries that the command gets in any case, in the
	// place of what the caller has by these names; of two by one name the last.
	Set []string
}

// What Passthrough drops, whoever wants it: it goes through Set only.
var (
	droppedPrefixes = []string{"DYLD_", "AWS_"}
	droppedNames    = []string{"LD_PRELOAD", "LD_LIBRARY_PATH", "SSH_AUTH_SOCK"}
	droppedSuffixes = []string{"_TOKEN", "_SECRET", "_PASSWORD", "_API_KEY"}
)

// Apply returns what a command gets of a caller's environment, and the names of
// the variables that it does not get, sorted, each once. What is no NAME=value
// reaches a command by Inherit only. Names are compared as they are written;
// where the caller has one twice the command has, too.
func (e Environment) Apply(environ []string) (env, dropped []string) {
	last := make(map[string]int, len(e.Set))
	for i, entry := range e.Set {
		name, _, _ := strings.Cut(entry, "=")
		last[name] = i
	}
	for _, entry := range environ {
		name, _, isVariable := strings.Cut(entry, "=")
		isVariable = isVariable && name != ""
		_, isSet := last[name]
		switch {
		case isSet:
		case e.passes(name, isVariable):
			env = append(env, entry)
		case isVariable:
			dropped = append(dropped, name)
		}
	}
	for i, entry := range e.Set {
		if name, _, _ := strings.Cut(entry, "="); last[name] == i {
			env = append(env, entry)
		}
	}
	slices.Sort(dropped)
	return env, slices.Compact(dropped)
}

func (e Environment) passes(name string, isVariable bool) bool {
	if slices.Contains(e.Deny, name) {
		return false
	}
	switch e.Policy {
	case Inherit:
		return true
	case Passthrough:
		return isVariable && !dropped(name)
	default:
		return isVariable && slices.Contains(e.Allow, name)
	}
}

func dropped(name string) bool {
	starts := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	ends := func(suffix string) bool { return strings.HasSuffix(name, suffix) }
	return slices.ContainsFunc(droppedPrefixes, starts) ||
		slices.Contains(droppedNames, name) ||
		slices.ContainsFunc(droppedSuffixes, ends)
}
