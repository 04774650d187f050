package scope

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"cage/internal/program"
)

// programs talks to the service manager by systemctl(1), and has systemd-run(1)
// make the scopes, which puts itself into one and then becomes what it was told
// to run.
type programs struct {
	run                   program.Runner
	systemctl, systemdRun string
	env                   []string
	// policy says that scopes can be told what follows when memory runs out.
	policy bool
}

// programManager finds the user's service manager by its programs. They are led
// to the socket at which it was reached, and nowhere else: another kind of address
// could lead to another machine, whose processes have the same numbers.
func (h Host) programManager(ctx context.Context, at address) (*manager, error) {
	p := &programs{run: h.Run, env: []string{at.variable(), "LC_ALL=C", "SYSTEMD_COLORS=0", "SYSTEMD_PAGER="}}
	var err, missing error
	p.systemctl, err = h.Find("systemctl")
	p.systemdRun, missing = h.Find("systemd-run")
	if err := errors.Join(err, missing); err != nil {
		return nil, err
	}
	m, err := managed(ctx, p)
	if err != nil {
		return nil, err
	}
	p.policy, err = p.knowsPolicy(ctx)
	return m, err
}

// ask runs one of the programs and returns what it answers.
func (p *programs) ask(ctx context.Context, path string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, managerPatience)
	defer cancel()
	result, err := p.run(ctx, program.Call{Path: path, Args: append([]string{"--user"}, args...), Env: p.env, Dir: "/"})
	if err != nil {
		return "", err
	}
	if result.ExitCode != 0 {
		return "", &refused{path: path, words: program.Words(result.Stderr)}
	}
	return string(result.Stdout), nil
}

// refused is what one of the programs said.
type refused struct{ path, words string }

func (r *refused) Error() string {
	if r.words == "" {
		return r.path + " refuses"
	}
	return r.words
}

// knowsPolicy tries a scope that ends at once. Which versions know the policy
// depends on who built them.
func (p *programs) knowsPolicy(ctx context.Context) (bool, error) {
	_, err := p.ask(ctx, p.systemdRun, "--scope", "--quiet", "--collect", "--slice="+sessionsSlice, "--property="+keepGoing,
		"--", p.systemctl, "--version")
	var no *refused
	if errors.As(err, &no) && strings.Contains(no.words, "Unknown assignment") {
		return false, nil
	}
	return err == nil, err
}

// keepGoing leaves what runs in a scope alone when the kernel has killed a part of
// it (systemd.scope(5)).
const keepGoing = "OOMPolicy=continue"

func (p *programs) start(ctx context.Context, unit string, held Held, b Bounds) error {
	s, err := p.state(ctx, unit)
	if err != nil {
		return err
	}
	if s.loaded() {
		return errTaken
	}
	said, err := held.Through(p.wrapper(unit, b), p.env, managerPatience)
	switch {
	case err == nil:
		return nil
	case len(said) == 0:
		return ErrEnded
	default:
		return fmt.Errorf("%w, %w: %s", err, errSpent, program.Words(said))
	}
}

// wrapper is the command line of a scope, up to what it runs.
func (p *programs) wrapper(unit string, b Bounds) []string {
	line := []string{
		p.systemdRun, "--user", "--scope", "--quiet", "--unit=" + unit, "--slice=" + sessionsSlice, "--description=" + description,
		fmt.Sprintf("--property=TimeoutStopSec=%d", int(stopPatience.Seconds())),
	}
	for _, r := range b.resources() {
		line = append(line, fmt.Sprintf("--property=%s=%d", r.name, r.value))
	}
	if p.policy {
		line = append(line, "--property="+keepGoing)
	}
	return append(line, "--")
}

func (p *programs) controlGroup(ctx context.Context) (string, error) {
	return p.property(ctx, "ControlGroup")
}

func (p *programs) memoryMax(ctx context.Context, slice string) *uint64 {
	text, err := p.property(ctx, "MemoryMax", slice)
	if err != nil {
		return nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return nil // infinity
	}
	return finite(n)
}

// property asks for one of a unit, or of the manager where none is named.
func (p *programs) property(ctx context.Context, name string, unit ...string) (string, error) {
	text, err := p.ask(ctx, p.systemctl, append([]string{"show", "--property=" + name, "--value"}, unit...)...)
	return strings.TrimSpace(text), err
}

func (p *programs) state(ctx context.Context, unit string) (state, error) {
	text, err := p.ask(ctx, p.systemctl, "show", "--property=LoadState,ActiveState,Result", unit)
	if err != nil {
		return state{}, err
	}
	of := program.Variables(strings.Split(text, "\n"))
	return state{load: of["LoadState"], active: of["ActiveState"], result: of["Result"]}, nil
}

func (p *programs) kill(ctx context.Context, unit string) error {
	_, err := p.ask(ctx, p.systemctl, "kill", "--signal=SIGKILL", unit)
	return err
}

// stop takes one that has gone by itself for stopped.
func (p *programs) stop(ctx context.Context, unit string) error {
	_, err := p.ask(ctx, p.systemctl, "stop", unit)
	if err == nil {
		return nil
	}
	if s, lost := p.state(ctx, unit); lost == nil && !s.loaded() {
		return nil
	}
	return err
}

func (p *programs) reset(ctx context.Context, unit string) error {
	_, err := p.ask(ctx, p.systemctl, "reset-failed", unit)
	return err
}

func (p *programs) scopes(ctx context.Context) ([]string, error) {
	text, err := p.ask(ctx, p.systemctl, "list-units", "--all", "--full", "--plain", "--no-legend", "--type=scope", prefix+"*.scope")
	if err != nil {
		return nil, fmt.Errorf("listing scopes: %w", err)
	}
	var names []string
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 0 {
			names = append(names, fields[0])
		}
	}
	return names, nil
}

func (p *programs) close() {}
