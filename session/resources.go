package session

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"cage/internal/program"
	"cage/report"
	"cage/scope"
	"cage/spawn"
)

// Resources are the limits that a user asks for.
type Resources struct {
	Limits scope.Limits
	// Require refuses to start where a limit cannot be proved.
	Require bool
}

// codeResources is the code of limits that this machine cannot hold.
const codeResources = "GXT_CAGE_RESOURCES_UNAVAILABLE"

// The modes without a control group.
const (
	resourcesOff = "off"
	niceOnly     = "nice-only"
	noResources  = "none"
)

// niceness is what the command gets where it can have no group.
const niceness = 10

// confinement is the control group of the run.
type confinement struct {
	place     *scope.Plan
	group     *scope.Group
	resources report.Resources
}

// findGroup looks for a group for the run, where one was asked for.
func (s *session) findGroup(ctx context.Context) error {
	s.resources.Mode = resourcesOff
	if s.Resources == nil {
		return nil
	}
	place, err := scope.Prepare(ctx, scope.Request{
		ID: s.id, Limits: s.Resources.Limits, Strict: s.Resources.Require, Host: s.host(),
	})
	if err == nil {
		s.place = place
		s.noteSwept(place.Sweep(ctx))
		return nil
	}
	if s.Resources.Require {
		const hint = "cage doctor says what this machine has; --scope auto runs the command without limits"
		return refusal(codeResources, hint, fmt.Errorf("the limits cannot be enforced: %w", err))
	}
	s.doWithout(err)
	return nil
}

// host is where the service manager is looked for. Its programs are looked up
// outside the root, as git is.
func (s *session) host() scope.Host {
	return scope.Host{Env: s.Env, Find: program.Finder(s.Env, s.layout.Root), Run: s.runHelper}
}

// noteSwept warns of what killed cages had left in groups of their own.
func (s *session) noteSwept(swept []string, err error) {
	if len(swept) > 0 {
		const most = 10
		s.warnings = append(s.warnings, fmt.Sprintf("ended what %d killed session(s) had left running: %s",
			len(swept), strings.Join(swept[:min(len(swept), most)], ", ")))
	}
	if err != nil {
		s.warnings = append(s.warnings, err.Error())
	}
}

// doWithout goes on without a group, and says so.
func (s *session) doWithout(why error) {
	reason := why.Error()
	s.resources.Reason = &reason
	s.resources.Mode = noResources
	instead := "nothing bounds the command"
	if scope.CanRenice() {
		s.resources.Mode = niceOnly
		instead = fmt.Sprintf("the command only gives way to others (niceness %d)", niceness)
	}
	s.warnings = append(s.warnings, "no limits of memory, tasks or processor: "+reason+"; "+instead)
}

// confine returns what the command is confined by when it starts; nil for nothing.
func (s *session) confine(ctx context.Context) spawn.Confine {
	if s.place != nil {
		return func(held spawn.Held) (spawn.Confinement, error) { return s.intoGroup(ctx, held) }
	}
	if s.resources.Mode == niceOnly {
		return func(spawn.Held) (spawn.Confinement, error) { return spawn.Confinement{Niceness: niceness}, nil }
	}
	return nil
}

// intoGroup moves the process that becomes the command into a group.
func (s *session) intoGroup(ctx context.Context, held spawn.Held) (spawn.Confinement, error) {
	group, err := s.place.Place(ctx, held)
	if err != nil {
		return spawn.Confinement{}, err
	}
	s.group = group
	return spawn.Confinement{Group: group.Path(), Controls: group.Controls()}, nil
}

// startConfined starts the command in its group. Where the machine turns out not
// to hold the limits, the command has not run, and starts without them unless
// they are required.
func (s *session) startConfined(ctx context.Context, command spawn.Command) (*spawn.Run, error) {
	command.Confine = s.confine(ctx)
	run, err := s.Stage.Start(s.reaper, command)
	if s.place == nil {
		return run, err
	}
	defer s.place.Close()
	if err == nil {
		s.noteGroup()
		return run, nil
	}
	kills := s.dropGroup(ctx).Kills
	if errors.Is(err, spawn.ErrNeverStarted) {
		return nil, s.neverStarted(kills, err)
	}
	var none *scope.Unavailable
	if !errors.As(err, &none) && !errors.Is(err, spawn.ErrUnproved) {
		return nil, err
	}
	if s.Resources.Require {
		return nil, fmt.Errorf("the limits cannot be enforced: %w", err)
	}
	said := len(s.warnings)
	s.doWithout(err)
	for _, warning := range s.warnings[said:] {
		s.tell(warning)
	}
	s.place.Close()
	s.place = nil
	command.Confine = s.confine(ctx)
	return s.Stage.Start(s.reaper, command)
}

// neverStarted says what may have ended the process that was to become the
// command. The group can be gone before its counters are read.
func (s *session) neverStarted(kills uint64, err error) error {
	switch {
	case kills > 0:
		return fmt.Errorf("the limit of memory is too small to start anything: %w", err)
	case s.Resources.Limits.Memory.IsSet():
		return fmt.Errorf("somebody ended it, or the limit of memory is too small to start anything: %w", err)
	default:
		return err
	}
}

// dropGroup ends what is left in the group, and removes it.
func (s *session) dropGroup(ctx context.Context) scope.Usage {
	if s.group == nil {
		return scope.Usage{}
	}
	usage, err := s.group.End(ctx)
	if err != nil {
		s.log.WatchError(fmt.Errorf("end the control group of the run: %w", err))
	}
	s.group = nil
	return usage
}

// noteGroup takes what the run may have into the report.
func (s *session) noteGroup() {
	r, bounds := &s.resources, s.group.Bounds()
	name := s.group.Name()
	r.Mode, r.Group, r.Gaps = string(s.group.Mode()), &name, s.group.Gaps()
	r.MemoryMax, r.TasksMax, r.CPUWeight = bounds.MemoryMax, &bounds.TasksMax, bounds.Weight
	if why := s.group.Reason(); why != "" {
		r.Reason = &why
	}
	for _, gap := range s.group.Gaps() {
		s.tell(gap)
	}
}

// lookAtGroup reads what happened while the group is certainly still there.
func (s *session) lookAtGroup() {
	if s.group != nil {
		s.group.Look()
	}
}

// killGroup ends what of the group no list of the tree has.
func (s *session) killGroup() {
	if s.group == nil {
		return
	}
	if err := s.group.Kill(); err != nil {
		s.log.WatchError(err)
	}
}

// endGroup ends the group, and takes what happened in it into the report.
func (s *session) endGroup(ctx context.Context) {
	if s.group == nil {
		return
	}
	usage, r := s.dropGroup(ctx), &s.resources
	r.OOMKills, r.MemoryPeak, r.TasksRefused = usage.Kills, usage.Peak, usage.Refused
	if usage.Limit != "" {
		limit := string(usage.Limit)
		r.OOMLimit = &limit
	}
	if usage.Group != "" {
		r.OOMGroup = &usage.Group
	}
	for _, p := range usage.Killed {
		r.Killed = append(r.Killed, report.Process{PID: p.PID, Name: p.Name})
	}
}
