package scope

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// Group is the control group of a run.
type Group struct {
	hierarchy
	mode Mode
	// unit is the scope; empty where there is no service manager behind it.
	unit string
	path string
	// manager is the group of the service manager that removes this one as soon
	// as it is empty; empty where there is none.
	manager string
	bounds  Bounds
	gaps    []string
	reason  string
	host    Host
	events  *events
}

// Mode says what holds the limits.
func (g *Group) Mode() Mode { return g.mode }

// Name is the scope, or the path of the group.
func (g *Group) Name() string {
	if g.mode == Scope {
		return g.unit
	}
	return g.path
}

// Path is the group as /proc/self/cgroup has it.
func (g *Group) Path() string { return g.path }

// Bounds are the limits that are in force.
func (g *Group) Bounds() Bounds { return g.bounds }

// Reason says why there is no scope where a group was made without one; empty
// for a scope.
func (g *Group) Reason() string { return g.reason }

// Gaps say, a sentence each, which limits that were asked for are not.
func (g *Group) Gaps() []string { return g.gaps }

// Controls are the control files that hold the limits, and what they hold.
func (g *Group) Controls() map[string]string {
	files := make(map[string]string)
	for _, c := range g.bounds.controls() {
		files[c.file] = c.text
	}
	return files
}

// watched begins to watch what happens in the group.
func (g *Group) watched() *Group {
	g.events = g.watch(g.path, g.manager)
	return g
}

// Look reads what happened so far. A service manager removes a group as soon as
// it is empty, and with it what could be read.
func (g *Group) Look() { g.events.look() }

// killPatience is how long processes may take to die of SIGKILL.
const killPatience = 10 * time.Second

// Kill ends every process of the group. An error says that some refuse to die.
func (g *Group) Kill() error {
	g.Look()
	if !g.kill(g.path, killPatience) {
		return fmt.Errorf("the group %s still has processes", g.Name())
	}
	return nil
}

// End ends every process of the group, removes it, and says what happened in it.
// An error says what is left of it.
func (g *Group) End(ctx context.Context) (Usage, error) {
	err := g.Kill()
	usage := g.events.close()
	if g.mode == Cgroup {
		if err == nil {
			err = g.remove(g.path, killPatience)
		}
		return usage, err
	}
	const soon = 100 * time.Millisecond
	if usage.Kills == 0 && err == nil && g.vanishesWithin(soon) {
		return usage, nil // a scope that ended well goes by itself
	}
	m, lost := g.host.connect(ctx)
	if lost != nil {
		return usage, errors.Join(err, lost)
	}
	defer m.close()
	outOfMemory, lost := m.settled(ctx, g.unit)
	if outOfMemory && usage.Kills == 0 {
		// The group had gone before its events were read.
		usage.Kills, usage.Limit = 1, Own
	}
	return usage, errors.Join(err, lost)
}

// vanishesWithin reports whether the service manager removes the empty group.
func (g *Group) vanishesWithin(patience time.Duration) bool {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(look) {
		if _, err := os.Stat(g.folder(g.path)); errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}
