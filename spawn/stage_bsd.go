//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package spawn

import (
	"errors"

	"cage/internal/proc"
	"cage/internal/tempdir"
)

const ownMechanism = ProcessList

// Gaps names, a sentence each, what this system cannot hold of a terminal.
func (t Terminal) Gaps() []string {
	var gaps []string
	if t == Background {
		gaps = append(gaps, "processes of the command can get out of the background of their terminal, because this system does not refuse it")
	}
	if t == Background || t == NewPTY {
		gaps = append(gaps, "processes of the command can type into their terminal (TIOCSTI), where this system lets them")
	}
	if t == NewPTY {
		gaps = append(gaps, "Ctrl-Z does not stop the command itself, because it leads the session of its terminal")
	}
	return gaps
}

// needsKeeper reports that no terminal takes a keeper.
func (t Terminal) needsKeeper() bool { return false }

// Main must be what main does first: in a process that was started as a hidden
// stage of the program it does that stage's work and does not return. These
// systems have no stage yet that a run would need.
func Main() Stage { return Stage{entered: true} }

// Gaps names, a sentence each, what this system cannot hold of a lifetime.
func Gaps(l Lifetime) []string {
	gaps := proc.Limits()
	if l == LifetimeRun {
		gaps = append(gaps, "system calls cannot be filtered on this system: the lifetime run refuses nobody a session of its own, as tree does")
	}
	return gaps
}

// startOwn starts a command that this program holds itself, and refuses what
// takes a stage.
func (s Stage) startOwn(r *proc.Reaper, c Command, spec proc.Spec) (*proc.Tree, error) {
	if c.Limits != (Limits{}) {
		return nil, errNoLimits
	}
	if c.Confine != nil {
		return nil, errNoConfinement
	}
	return r.Start(spec)
}

// errNoLimits is what limits of a command come to here.
var errNoLimits = errors.New("limits of a command cannot be set on this system yet; set them for the cage with ulimit")

// errNoConfinement is what confining a command comes to here.
var errNoConfinement = errors.New("a command cannot be confined on this system: it has no control groups")

// startKept refuses: without a subreaper a keeper would hold no more than the
// program itself, and the Reaper names no foreign children here.
func (s Stage) startKept(*proc.Reaper, Command, proc.Spec, *tempdir.Dir) (*Run, error) {
	return nil, proc.ErrForeign
}
