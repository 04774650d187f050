package spawn

import (
	"errors"

	"cage/internal/proc"
)

// Confine puts a process that stands still under what is to hold for the
// command that it becomes, before anything of that has run. An error is that of
// the start.
type Confine func(proc.ID) (Confinement, error)

// Confinement is what the process finds true of itself before it becomes the
// command, which it does not where something is not so.
type Confinement struct {
	// Group is the control group that it is in, as /proc/self/cgroup has it;
	// empty where that does not matter.
	Group string
	// Controls are control files of the group by name, and what they hold, the
	// last newline left out.
	Controls map[string]string
	// Niceness is what the command gets at the least; 0 leaves what the caller
	// has.
	Niceness int
}

// ErrNeverStarted is returned where the process that was to become the command
// was ended before it did: nothing of the command has run.
var ErrNeverStarted = errors.New("it was ended before the command began")

// ErrUnproved is wrapped where a process did not find its Confinement true.
var ErrUnproved = errors.New("the limits cannot be proved from within")
