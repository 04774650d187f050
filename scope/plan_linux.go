package scope

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"cage/internal/proc"
)

// Plan is a place for a group, with the limits that it is going to have. It
// holds a connection to the service manager until it is closed.
type Plan struct {
	hierarchy
	name name
	// need are the controllers that the limits need.
	need    []string
	strict  bool
	host    Host
	manager *manager
	// parent is where a group can be made directly; empty for nowhere.
	parent string
	// refused says, where a way cannot be gone, why.
	refused []error
	bounds  Bounds
}

// Prepare finds a way to give a run a group of its own. An *Unavailable says why
// there is none.
func Prepare(ctx context.Context, r Request) (*Plan, error) { return prepare(ctx, machine(), r) }

func prepare(ctx context.Context, h hierarchy, r Request) (*Plan, error) {
	if err := h.check(); err != nil {
		return nil, err
	}
	self, err := h.self()
	if err != nil {
		return nil, err
	}
	p := &Plan{
		hierarchy: h, name: name{label: sanitise(r.ID), owner: self, attempt: 1},
		need: r.Limits.controllers(), strict: r.Strict, host: r.Host,
	}
	p.byManager(ctx)
	if p.manager == nil {
		p.directly()
	}
	if p.manager == nil && p.parent == "" {
		return nil, p.refusal()
	}
	if err := p.choose(ctx, r.Limits); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// controllers are those that limits need.
func (l Limits) controllers() []string {
	need := []string{"pids"}
	if l.Memory.IsSet() {
		need = append(need, "memory")
	}
	if l.Weight != 0 {
		need = append(need, "cpu")
	}
	return need
}

// byManager finds the user's service manager.
func (p *Plan) byManager(ctx context.Context) {
	m, err := p.host.connect(ctx)
	if err == nil {
		if err = m.check(p.hierarchy, p.indispensable()); err == nil {
			p.manager = m
			return
		}
		m.close()
	}
	p.refused = append(p.refused, fmt.Errorf("no scope: %w", err))
}

// indispensable are the controllers without which a manager does not do.
func (p *Plan) indispensable() []string {
	if p.strict {
		return p.need
	}
	// Systemd 247 does not give it to its users, and the rest holds without.
	return slices.DeleteFunc(slices.Clone(p.need), func(controller string) bool { return controller == "cpu" })
}

// directly finds a group in which another can be made.
func (p *Plan) directly() {
	parent, err := p.hierarchy.parent(p.need)
	if err != nil {
		p.refused = append(p.refused, fmt.Errorf("no group without it: %w", err))
		return
	}
	p.parent = parent
}

// refusal says why no way can be gone.
func (p *Plan) refusal() error {
	reasons := make([]string, len(p.refused))
	for i, err := range p.refused {
		reasons[i] = err.Error()
	}
	return unavailable("%s", strings.Join(reasons, "; "))
}

// choose turns what was asked for into numbers.
func (p *Plan) choose(ctx context.Context, l Limits) error {
	p.bounds.TasksMax = l.Tasks
	if l.Tasks == 0 {
		p.bounds.TasksMax = DefaultTasks
	}
	if l.Weight != 0 {
		p.bounds.Weight = &l.Weight
	}
	if !l.Memory.IsSet() {
		return nil
	}
	total, err := memoryTotal()
	if err != nil {
		return err
	}
	ceiling := lesser(&total, p.ceiling(p.parent))
	if p.manager != nil {
		ceiling = lesser(&total, p.manager.ceiling(ctx, p.hierarchy))
	}
	n := l.Memory.in(ceiling, total, uint64(os.Getpagesize()))
	p.bounds.MemoryMax = &n
	return nil
}

// Together returns what all sessions together may take, in bytes; nil where
// nobody has bounded them, or no service manager has them.
func (p *Plan) Together(ctx context.Context) *uint64 {
	if p.manager == nil {
		return nil
	}
	return p.manager.ownCeiling(ctx)
}

// Close lets go of the service manager.
func (p *Plan) Close() {
	if p.manager != nil {
		p.manager.close()
		p.manager = nil
	}
}

// Place makes the group and moves a process into it, which must stand still
// until its limits are proved from within. It returns a group only where they
// read back from here. Where one way does not hold, the other is gone; where
// none does, an *Unavailable says why, and the process has been ended, or is the
// caller's to end. One that was ended by somebody else is ErrEnded.
func (p *Plan) Place(ctx context.Context, held Held) (*Group, error) {
	id := held.Process()
	if p.manager != nil {
		n, err := p.manager.start(ctx, p.name, held, p.bounds)
		var g *Group
		if err == nil {
			g, err = p.inScope(n, id)
		}
		if err == nil {
			return g.watched(), nil
		}
		p.refused = append(p.refused, fmt.Errorf("no scope: %w", err))
		defer p.discard(ctx, n, id)
		switch {
		case errors.Is(err, errSpent):
			return nil, p.refusal()
		case errors.Is(err, ErrEnded), !id.Alive():
			return nil, ErrEnded // by no lack of this machine
		}
		p.directly()
	}
	if p.parent != "" {
		g, err := p.beside(id)
		if err == nil {
			return g.watched(), nil
		}
		p.refused = append(p.refused, fmt.Errorf("no group without it: %w", err))
	}
	if !id.Alive() {
		return nil, ErrEnded
	}
	return nil, p.refusal()
}

// discard removes a scope that does not do. One that could not be started may
// stay as well, and keep its name. Where it has somebody else's process it is
// left alone.
func (p *Plan) discard(ctx context.Context, n name, id proc.ID) {
	group := path.Join(p.manager.sessionsGroup(), n.unit())
	for _, member := range p.members(group) {
		if member != id {
			return
		}
	}
	_, _ = p.manager.settled(ctx, n.unit()) // the next sweep comes by
}

// inScope finds a process and its limits where the service manager moved it.
func (p *Plan) inScope(n name, id proc.ID) (*Group, error) {
	group, err := p.groupOf(strconv.Itoa(id.PID))
	if err != nil {
		return nil, err
	}
	if path.Base(group) != n.unit() {
		// A manager that sees other process numbers moved somebody else.
		return nil, unavailable("the service manager left the command in the group %s", group)
	}
	g := &Group{hierarchy: p.hierarchy, mode: Scope, unit: n.unit(), path: group, manager: p.manager.group, bounds: p.bounds, host: p.host}
	if _, err := p.read(group, weightFile); err != nil && p.bounds.Weight != nil && !p.strict {
		g.bounds.Weight = nil
		g.gaps = append(g.gaps, "the processor weight is not in force: the service manager of this user was not given the controller cpu")
	}
	return g, p.prove(group, g.bounds.controls())
}

// beside makes a group and moves a process into it.
func (p *Plan) beside(id proc.ID) (*Group, error) {
	group, err := p.make(p.parent, p.name)
	if err != nil {
		return nil, err
	}
	if err := p.fill(group, id, p.bounds.controls()); err != nil {
		_ = p.remove(group, 0) // it is as empty as it was
		return nil, err
	}
	return &Group{hierarchy: p.hierarchy, mode: Cgroup, path: group, bounds: p.bounds, reason: p.refusal().Error()}, nil
}

const weightFile = "cpu.weight"

// control is a control file and what it is to hold.
type control struct{ file, text string }

// controls are the files that hold the limits, in the order in which they are
// written: what opens a way past a limit is closed before the limit stands.
func (b Bounds) controls() []control {
	list := []control{{"pids.max", strconv.FormatUint(b.TasksMax, 10)}}
	if b.MemoryMax != nil {
		list = append(list, control{"memory.swap.max", "0"}, control{"memory.max", strconv.FormatUint(*b.MemoryMax, 10)})
	}
	if b.Weight != nil {
		list = append(list, control{weightFile, strconv.FormatUint(*b.Weight, 10)})
	}
	return list
}

// description is what a service manager calls a scope for people.
const description = "A session of cage"

// resource is a bound by the name that systemd has for it.
type resource struct {
	name  string
	value uint64
}

// resources are the bounds as systemd.resource-control(5) has them. There is no
// MemoryHigh: it slows a runaway down where this is to end it. And swap is
// closed, because MemoryMax alone lets a runaway take all of that.
func (b Bounds) resources() []resource {
	list := []resource{{"TasksMax", b.TasksMax}}
	if b.MemoryMax != nil {
		list = append(list, resource{"MemoryMax", *b.MemoryMax}, resource{"MemorySwapMax", 0})
	}
	if b.Weight != nil {
		list = append(list, resource{"CPUWeight", *b.Weight})
	}
	return list
}
