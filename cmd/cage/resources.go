package main

import (
	"errors"
	"fmt"

	"cage/scope"
	"cage/session"
	"cage/spawn"
)

// resourceFlags say what of the machine a run may take. They are off unless one
// of them is given.
type resourceFlags struct {
	memory memoryLimit
	tasks  boundedCount
	weight boundedCount
	scope  choice
}

func newResourceFlags() resourceFlags {
	return resourceFlags{
		tasks:  boundedCount{least: 1, most: scope.MostTasks},
		weight: boundedCount{least: scope.LeastWeight, most: scope.MostWeight},
		scope:  choice{allowed: []string{"auto", "require", "off"}},
	}
}

func (f *resourceFlags) addTo(a adder) {
	const group = "What the run may take of the machine"
	a.add(group, &f.memory, "memory-max", "memory of all its processes together, such as 4G or 25%; auto suits the machine")
	a.add(group, &f.tasks, "tasks-max", "processes and threads (default 512 where one of these flags is given)")
	a.add(group, &f.weight, "cpu-weight", "share of the processor against others, of which each has 100")
	a.add(group, &f.scope, "scope", "where the limits cannot be enforced: say so and go on, or refuse; off with none")
}

// asked returns what was asked for, nil for nothing.
func (f *resourceFlags) asked(lifetime spawn.Lifetime) (*session.Resources, error) {
	limits := scope.Limits{Memory: f.memory.Memory, Tasks: uint64(f.tasks.value), Weight: uint64(f.weight.value)}
	switch {
	case f.scope.value == "off" && limits != (scope.Limits{}):
		return nil, usage("--scope off goes with no limit; see cage --help")
	case f.scope.value == "off", f.scope.value == "" && limits == (scope.Limits{}):
		return nil, nil
	case lifetime == spawn.LifetimeLeave:
		return nil, usage("--memory-max, --tasks-max, --cpu-weight and --scope end the whole run and do not go with --lifetime leave; see cage --help")
	case limits == (scope.Limits{}):
		limits.Memory = scope.Auto()
	}
	return &session.Resources{Limits: limits, Require: f.scope.value == "require"}, nil
}

// memoryLimit is what --memory-max takes.
type memoryLimit struct{ scope.Memory }

func (l *memoryLimit) String() string { return "" }
func (l *memoryLimit) Type() string   { return "size" }
func (l *memoryLimit) takes() string  { return scope.ErrSize.Error() }
func (l *memoryLimit) Set(text string) error {
	memory, err := scope.ParseMemory(text)
	if err == nil {
		l.Memory = memory
	}
	return err
}

// boundedCount is a number within bounds; 0 where it was not given.
type boundedCount struct{ value, least, most int64 }

func (c *boundedCount) String() string { return "" }
func (c *boundedCount) Type() string   { return "n" }
func (c *boundedCount) takes() string {
	return fmt.Sprintf("a whole number from %d to %d", c.least, c.most)
}
func (c *boundedCount) Set(text string) error {
	n, err := digits(text, 63)
	if err != nil || n < c.least || n > c.most {
		return errors.New(c.takes())
	}
	c.value = n
	return nil
}
