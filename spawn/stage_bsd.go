//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package spawn

import "cage/internal/proc"

const ownMechanism = ProcessList

// Main must be what main does first: in a process that was started as a hidden
// stage of the program it does that stage's work and does not return. These
// systems have no stage yet that a run would need.
func Main() Stage { return Stage{entered: true} }

// startKept refuses: without a subreaper a keeper would hold no more than the
// program itself, and the Reaper names no foreign children here.
func (s Stage) startKept(*proc.Reaper, Command, proc.Spec) (*Run, error) {
	return nil, proc.ErrForeign
}
