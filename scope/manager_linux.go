package scope

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"cage/internal/proc"
	"cage/internal/program"
)

// managerPatience is how long the service manager may take over one answer. On
// a loaded machine a scope has taken three seconds.
const managerPatience = 20 * time.Second

// manager is the user's service manager.
type manager struct {
	transport
	// group is the one that it keeps all its units in.
	group string
}

// transport is a way to talk to the service manager.
type transport interface {
	// controlGroup is the group that the manager keeps all its units in.
	controlGroup(ctx context.Context) (string, error)
	// memoryMax is what somebody has set for a slice, nil for nothing that is known.
	memoryMax(ctx context.Context, slice string) *uint64
	// start puts a process into a new scope and waits until that is done. It is
	// errTaken where the name is, errSpent where the process has ended of it, and
	// ErrEnded where that is seen to have been somebody else.
	start(ctx context.Context, unit string, held Held, b Bounds) error
	// state is how a unit fares.
	state(ctx context.Context, unit string) (state, error)
	// kill ends every process of a unit.
	kill(ctx context.Context, unit string) error
	// stop ends a unit and waits until that is done.
	stop(ctx context.Context, unit string) error
	// reset has a unit that failed forgotten.
	reset(ctx context.Context, unit string) error
	// scopes are those of this program that the manager knows.
	scopes(ctx context.Context) ([]string, error)
	close()
}

// state is how a unit fares. One that is not loaded answers like one that ended
// well.
type state struct{ load, active, result string }

func (s state) loaded() bool { return s.load == "loaded" }

func (s state) ended() bool { return s.active == "failed" || s.active == "inactive" }

var (
	errTaken = errors.New("the name is taken")
	errSpent = errors.New("the process has ended of it")
)

// connect finds the user's service manager: over D-Bus, or by its own programs
// where somebody is there who does not understand that.
func (h Host) connect(ctx context.Context) (*manager, error) {
	env := program.Variables(h.Env)
	m, mute, failed := busManager(ctx, env)
	if failed == nil {
		return m, nil
	}
	why := errno(failed).Error()
	if mute != nil && h.Find != nil {
		if m, failed = h.programManager(ctx, *mute); failed == nil {
			return m, nil
		}
		why += ", nor its programs: " + failed.Error()
	}
	return nil, unavailable("the service manager of this user does not answer in %s: %s", runtimeFolder(env), why)
}

// managed asks where the manager keeps its units.
func managed(ctx context.Context, t transport) (*manager, error) {
	group, err := t.controlGroup(ctx)
	return &manager{transport: t, group: group}, err
}

// runtimeFolder is where the user's sockets are.
func runtimeFolder(env map[string]string) string {
	if dir := env["XDG_RUNTIME_DIR"]; dir != "" {
		return dir
	}
	// A system service has no such variable; the manager of its user may run.
	return filepath.Join("/run/user", strconv.Itoa(os.Getuid()))
}

// sessionsGroup is the group of the slice of all sessions.
func (m *manager) sessionsGroup() string { return path.Join(m.group, outerSlice, sessionsSlice) }

// ceiling returns what the slice of all sessions may take at most: the kernel
// says it of the groups that exist, the manager of those that do not yet.
func (m *manager) ceiling(ctx context.Context, h hierarchy) *uint64 {
	return lesser(h.ceiling(m.sessionsGroup()), m.ownCeiling(ctx))
}

// ownCeiling is what somebody has set for the slice of all sessions.
func (m *manager) ownCeiling(ctx context.Context) *uint64 {
	return lesser(m.memoryMax(ctx, outerSlice), m.memoryMax(ctx, sessionsSlice))
}

// check refuses a manager that was not given the controllers that limits need.
func (m *manager) check(h hierarchy, need []string) error {
	have, err := h.controllers(m.group, "cgroup.controllers")
	if err != nil {
		return nil // not ours to look at; what was set is read back
	}
	if lacks := lacking(have, need); len(lacks) > 0 {
		return unavailable("the service manager of this user was not given the controller %s (it has: %s)", lacks[0], listed(have))
	}
	return nil
}

// listed puts words into a sentence.
func listed(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, " ")
}

// start puts a process into a new scope. The name of one that has failed is taken
// until somebody resets it, so the next name is tried.
func (m *manager) start(ctx context.Context, n name, held Held, b Bounds) (name, error) {
	for n.attempt = 1; n.attempt <= mostAttempts; n.attempt++ {
		err := m.transport.start(ctx, n.unit(), held, b)
		if !errors.Is(err, errTaken) {
			return n, err
		}
	}
	return n, unavailable("the service manager has failed scopes under every name for this session")
}

// settled reads how a unit ended and lets the manager forget it, in this order,
// because to forget it is to lose why. One that has not ended is stopped: a scope
// whose only process had died before it was moved would stay for ever.
func (m *manager) settled(ctx context.Context, unit string) (outOfMemory bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, managerPatience)
	defer cancel()
	s, err := m.state(ctx, unit)
	if err == nil && s.loaded() && !s.ended() {
		if err = m.stop(ctx, unit); err == nil {
			s, err = m.state(ctx, unit)
		}
	}
	if err != nil {
		return false, fmt.Errorf("asking how the scope ended: %w", err)
	}
	if !s.loaded() {
		return false, nil
	}
	// It fails where the unit has gone by itself.
	_ = m.reset(ctx, unit)
	return s.result == "oom-kill", nil
}

// self returns this program as an owner.
func (h hierarchy) self() (owner, error) {
	id, err := proc.Self()
	if err != nil {
		return owner{}, err
	}
	info, err := os.Stat(filepath.Join(h.proc, "self/ns/pid"))
	if err != nil {
		return owner{}, fmt.Errorf("finding the pid namespace: %w", err)
	}
	inode := info.Sys().(*syscall.Stat_t).Ino
	return owner{namespace: uint32(min(inode, math.MaxUint32)), ID: id}, nil
}

// dead reports whether the owner cannot come back for its group. Of an owner in
// another pid namespace that cannot be told.
func (o owner) dead(self owner) bool {
	return o.namespace == self.namespace && !o.Alive()
}
