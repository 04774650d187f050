package doctor

import (
	"context"
	"errors"
	"fmt"

	"cage/report"
	"cage/scope"
	"cage/spawn"
)

// probeMemory is what the probe is given and has to find in force.
const probeMemory = 64 << 20

// probeTasks is enough for a command that does nothing.
const probeTasks = 16

// onResources says whether a run can be given limits, which groups of sessions
// there are, and whether they have a limit together.
func onResources(ctx context.Context, stage spawn.Stage, host scope.Host) []report.Finding {
	const area = "cgroups"
	plan, err := scope.Prepare(ctx, scope.Request{
		ID: "doctor", Limits: scope.Limits{Memory: scope.Bytes(probeMemory), Tasks: probeTasks}, Host: host,
	})
	if err != nil {
		return []report.Finding{withoutLimits(err)}
	}
	defer plan.Close()
	mode, err := probe(ctx, stage, plan)
	if err != nil {
		return []report.Finding{withoutLimits(err)}
	}
	found := []report.Finding{ok(area, "a run can be given limits, as a "+string(mode))}
	if mode == scope.Scope && plan.Together(ctx) == nil {
		f := note(area, "all sessions together have no limit of memory")
		f.Fix = "systemctl --user set-property cage-sessions.slice MemoryMax=6G MemorySwapMax=0"
		found = append(found, f)
	}
	return append(found, onGroups(ctx, host)...)
}

func withoutLimits(err error) report.Finding {
	return note("cgroups", "a run cannot be given limits (--memory-max and the like): "+err.Error())
}

// probe starts a command that does nothing within limits, which it finds in
// force itself.
func probe(ctx context.Context, stage spawn.Stage, plan *scope.Plan) (mode scope.Mode, err error) {
	var group *scope.Group
	run, err := stage.Open(idle(spawn.Command{
		Lifetime: spawn.LifetimeTree, Terminal: spawn.Foreground,
		Confine: func(held spawn.Held) (spawn.Confinement, error) {
			group, err = plan.Place(ctx, held)
			if err != nil {
				return spawn.Confinement{}, err
			}
			return spawn.Confinement{Group: group.Path(), Controls: group.Controls()}, nil
		},
	}))
	if err == nil {
		err = run.Close()
	}
	if group == nil {
		return "", err
	}
	if _, left := group.End(ctx); left != nil {
		err = errors.Join(err, left)
	}
	return group.Mode(), err
}

// idle has a command do nothing. It is not looked up in PATH, which may lead into
// the root.
func idle(c spawn.Command) spawn.Command {
	c.Path, c.Args, c.Environment.Policy = "/bin/sh", []string{"-c", ":"}, spawn.Inherit
	return c
}

// onGroups lists the groups that sessions have, or have left.
func onGroups(ctx context.Context, host scope.Host) []report.Finding {
	const area = "cgroups"
	list, err := scope.List(ctx, host)
	if err != nil {
		return []report.Finding{note(area, "the groups of sessions cannot be listed: "+err.Error())}
	}
	var found []report.Finding
	for _, s := range list {
		text := fmt.Sprintf("%s of process %d: %s of memory, of %s; %s tasks", s.Name, s.Owner, amount(s.Memory), amount(s.Limit), number(s.Tasks))
		if s.Alive {
			found = append(found, note(area, text))
			continue
		}
		found = append(found, degraded(area, text+"; its cage was killed", "the next session in its root ends it, or one with limits anywhere"))
	}
	return found
}

func amount(bytes *uint64) string {
	if bytes == nil {
		return "an unknown amount"
	}
	const mebibyte = 1 << 20
	return fmt.Sprintf("%.1f MiB", float64(*bytes)/mebibyte)
}

func number(n *uint64) string {
	if n == nil {
		return "an unknown number of"
	}
	return fmt.Sprint(*n)
}
