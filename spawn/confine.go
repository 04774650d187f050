package spawn

import (
	"errors"
	"time"

	"cage/internal/proc"
)

// Confine puts a process that stands still under what is to hold for the
// command that it becomes, before anything of that has run. An error is that of
// the start.
type Confine func(Held) (Confinement, error)

// Held is a process that stands still until it becomes the command.
type Held struct {
	id      proc.ID
	through func(prefix, env []string, patience time.Duration) (said []byte, err error)
}

// Process identifies it.
func (h Held) Process() proc.ID { return h.id }

// Through has it become another program, which runs at last what its arguments
// end with, and returns when it stands still again: the same process, after
// whatever that program has done to it. The program is the first of prefix, an
// absolute path, and env its whole environment. Where the process does not come
// back in time, what the program said to its standard error is returned, or that
// it took too long; an end without words is ErrNeverStarted.
func (h Held) Through(prefix, env []string, patience time.Duration) (said []byte, err error) {
	return h.through(prefix, env, patience)
}

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
