// Package scope gives a run a control group of its own, so that a runaway dies
// by its own limit and its neighbours do not notice.
//
// A run's first process stands still while it is placed: the user's service
// manager puts it into a transient scope, or, where there is none, a cgroup is
// made beside the caller's own. It promises that a limit was read back from the
// kernel before anything may run under it, that a machine where this cannot be
// had is told by name of what it lacks, that the end of a group takes every
// process in it, and that only groups whose owner is dead are swept.
//
// It is a guard against accidents and no border: the command has its user's
// rights, with which it can leave its group or raise the limit. It starts no
// command; whoever does holds it still.
package scope

import (
	"time"

	"cage/internal/proc"
	"cage/internal/program"
)

// DefaultTasks is how many processes and threads a group may have where nothing
// else is asked: far more than a build needs, and what stops a fork bomb.
const DefaultTasks = 512

// The bounds of a weight, as cpu.weight has them.
const (
	LeastWeight = 1
	MostWeight  = 10000
)

// MostTasks is the highest number of processes that Linux gives.
const MostTasks = 4 << 20

// Limits are what a group may take.
type Limits struct {
	// Memory bounds memory and closes swap.
	Memory Memory
	// Tasks is the most processes and threads; 0 stands for DefaultTasks.
	Tasks uint64
	// Weight is the share of the processor against other groups, of which each
	// has 100; 0 leaves it.
	Weight uint64
}

// Mode says what holds the limits.
type Mode string

// The modes of a group.
const (
	// Scope is a transient scope of the user's service manager.
	Scope Mode = "scope"
	// Cgroup is a group that was made beside the caller's own.
	Cgroup Mode = "cgroup"
)

// Bounds are the limits that are in force.
type Bounds struct {
	// MemoryMax is in bytes; nil for none.
	MemoryMax *uint64
	TasksMax  uint64
	// Weight is nil where it was not asked for.
	Weight *uint64
}

// Owner says whose a limit is that killed something.
type Owner string

// The owners of a limit.
const (
	// Own is the group's own limit.
	Own Owner = "own"
	// Above is the limit of a group that contains it, or of the machine.
	Above Owner = "above"
)

// Usage is what happened in a group, as far as it was seen.
type Usage struct {
	// Kills is how many processes the kernel killed because memory was out.
	Kills uint64
	// Limit says whose limit that was; empty where nothing was killed.
	Limit Owner
	// Group is the group above whose limit it was, where that is known.
	Group string
	// Killed are those of the killed that are known by name.
	Killed []proc.Process
	// Peak is the most memory in bytes; nil before Linux 5.19.
	Peak *uint64
	// Refused is how often a process was refused for TasksMax.
	Refused uint64
}

// stopPatience is how long a service manager waits between SIGTERM and SIGKILL
// where it ends a group itself. Its standard of 90 seconds would outlast
// whoever asks.
const stopPatience = 2 * time.Second

// Request is what a run asks for.
type Request struct {
	// ID names the run; any text.
	ID string
	// Limits are what it may take.
	Limits Limits
	// Strict refuses a machine that can hold only some of the limits.
	Strict bool
	// Host is where the service manager is looked for.
	Host Host
}

// Host is the surroundings in which the user's service manager is found.
type Host struct {
	// Env is an environment.
	Env []string
	// Find returns the absolute path of one of the manager's programs, and Run
	// runs it. Where they are nil they are done without.
	Find func(name string) (string, error)
	Run  program.Runner
}

// Held is a process that stands still. It can be sent through another program,
// of which it comes back as the same process. Where it does not, what the program
// said to its standard error is returned, or nothing where somebody has ended it.
type Held interface {
	Process() proc.ID
	Through(prefix, env []string, patience time.Duration) (said []byte, err error)
}

// Session is a group that a cage made.
type Session struct {
	// Name is the scope, or the path of the group.
	Name string
	// Owner is the process number of the cage, and Alive says whether that may
	// still run.
	Owner int
	Alive bool
	// Memory and Limit are in bytes; nil where that cannot be told.
	Memory, Limit *uint64
	// Tasks is how many processes and threads it has.
	Tasks *uint64
}
