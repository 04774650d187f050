package scope

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
)

// found is a group on its way to be looked at or swept.
type found struct {
	name
	// group is its path; unit is empty where no manager knows it.
	group, unit string
}

func (f found) spelled() string {
	if f.unit != "" {
		return f.unit
	}
	return f.group
}

// Sweep ends the groups whose cage is dead, with every process in them, and
// returns what they were called. An error says what could not be swept or not be
// looked for.
func Sweep(ctx context.Context, on Host) (swept []string, err error) {
	h := machine()
	if h.check() != nil {
		return nil, nil // nothing can have been made
	}
	self, err := h.self()
	if err != nil {
		return nil, err
	}
	m, err := on.connect(ctx)
	if err != nil {
		m = nil // without a manager there are no scopes
	} else {
		defer m.close()
	}
	return h.sweep(ctx, m, self)
}

// Sweep is that over the connection that the plan holds.
func (p *Plan) Sweep(ctx context.Context) (swept []string, err error) {
	return p.sweep(ctx, p.manager, p.name.owner)
}

func (h hierarchy) sweep(ctx context.Context, m *manager, self owner) (swept []string, err error) {
	groups, err := h.sessions(ctx, m)
	for _, f := range groups {
		if !f.owner.dead(self) {
			continue
		}
		if failed := h.clear(ctx, m, f); failed != nil {
			err = errors.Join(err, fmt.Errorf("sweeping %s: %w", f.spelled(), failed))
			continue
		}
		swept = append(swept, f.spelled())
	}
	return swept, err
}

// clear ends the processes of a group and removes it.
func (h hierarchy) clear(ctx context.Context, m *manager, f found) error {
	if f.unit == "" {
		if !h.kill(f.group, killPatience) {
			return errors.New("it still has processes")
		}
		return h.remove(f.group, killPatience)
	}
	// It fails where nothing lives in it.
	_ = m.kill(ctx, f.unit)
	_, err := m.settled(ctx, f.unit)
	return err
}

// List returns the groups that cages made, for people.
func List(ctx context.Context, on Host) ([]Session, error) {
	h := machine()
	if h.check() != nil {
		return nil, nil
	}
	self, err := h.self()
	if err != nil {
		return nil, err
	}
	m, err := on.connect(ctx)
	if err != nil {
		m = nil
	} else {
		defer m.close()
	}
	groups, err := h.sessions(ctx, m)
	var list []Session
	for _, f := range groups {
		s := Session{Name: f.spelled(), Owner: f.owner.PID, Alive: !f.owner.dead(self)}
		s.Memory, s.Limit, s.Tasks = h.number(f.group, "memory.current"), h.number(f.group, "memory.max"), h.number(f.group, "pids.current")
		list = append(list, s)
	}
	return list, err
}

// sessions finds every group that a cage made, scopes where a manager is given.
func (h hierarchy) sessions(ctx context.Context, m *manager) ([]found, error) {
	groups := h.besides()
	if m == nil {
		return groups, nil
	}
	known, err := m.scopes(ctx)
	for _, unit := range known {
		if n, ours := parseName(unit); ours {
			groups = append(groups, found{name: n, group: path.Join(m.sessionsGroup(), unit), unit: unit})
		}
	}
	return groups, err
}

// besides finds the groups that cages made without a service manager: they lie
// in one of the groups that this process is in.
func (h hierarchy) besides() []found {
	own, err := h.groupOf("self")
	if err != nil {
		return nil
	}
	var groups []found
	for _, group := range above(own) {
		entries, err := os.ReadDir(h.folder(group))
		if err != nil {
			continue
		}
		for _, entry := range entries {
			n, ours := parseName(entry.Name())
			if ours && entry.IsDir() && n.String() == entry.Name() {
				groups = append(groups, found{name: n, group: path.Join(group, entry.Name())})
			}
		}
	}
	return groups
}
