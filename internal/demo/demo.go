// Package demo shows what the cage does: it makes a throw-away repository, lets
// two simulated rogue agents loose in it, each in a real session of the real
// program, and checks that everything was held.
//
// It touches nothing but the temporary folder it makes and removes.
package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"cage/report"
	script "cage/testdata/demo"
)

// Options say how the demo is shown.
type Options struct {
	// Program is the path of the cage itself.
	Program string
	// Out takes what a reader sees, in the order it happens.
	Out *os.File
	// Pause is the time a reader gets before every attempt.
	Pause time.Duration
}

// act is one session of the demo.
type act struct {
	title  string
	script string
	flags  []string
	// holds says what is wrong with the report of the act; nil where all was
	// held.
	holds func(report.Document) error
}

func acts() []act {
	return []act{
		{
			title:  "An agent tampers with everything once. The cage puts it back while the agent looks.",
			script: script.Rogue,
			holds:  restored,
		},
		{
			title:  "Another agent does not take no for an answer. The fourth round is its last.",
			script: script.Fighter,
			flags:  []string{"--grace", "500ms"},
			holds:  halted,
		},
	}
}

// Run plays the demo. An error says what was not held.
func Run(ctx context.Context, o Options) (err error) {
	stage, err := build(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.remove()) }()
	fmt.Fprintf(o.Out, "A throw-away repository: %s\n", stage.repo)
	for n, act := range acts() {
		fmt.Fprintf(o.Out, "\n── %d. %s\n\n", n+1, act.title)
		doc, err := stage.play(ctx, o, act)
		if err != nil {
			return err
		}
		if err := act.holds(doc); err != nil {
			return fmt.Errorf("part %d was not held: %w", n+1, err)
		}
	}
	fmt.Fprint(o.Out, "\nEverything was held. Put it in front of your own agent: cage -- <command>\n")
	return nil
}

// stage is the demo's own corner of the machine.
type stage struct {
	top  string
	repo string
}

func build(ctx context.Context) (*stage, error) {
	top, err := os.MkdirTemp("", "cage-demo-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the demo: %w", err)
	}
	s := &stage{top: top, repo: filepath.Join(top, "shop")}
	if err := s.setUp(ctx); err != nil {
		return nil, errors.Join(err, s.remove())
	}
	return s, nil
}

func (s *stage) setUp(ctx context.Context) error {
	if err := os.Mkdir(s.repo, 0o755); err != nil {
		return fmt.Errorf("make the demo's repository: %w", err)
	}
	c := exec.CommandContext(ctx, "sh", "-c", script.Setup)
	c.Dir, c.Env = s.repo, s.environment()
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("make the demo's repository: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

func (s *stage) remove() error {
	if err := os.RemoveAll(s.top); err != nil {
		return fmt.Errorf("remove the demo's folder: %w", err)
	}
	return nil
}

// environment keeps the demo away from the user's own configuration and state,
// and from the repository that a git of the caller's is at work in.
func (s *stage) environment() []string {
	own := slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "GIT_") })
	return append(own,
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"XDG_STATE_HOME="+filepath.Join(s.top, "state"), "TMPDIR="+s.top)
}

// play runs one act and returns its report.
func (s *stage) play(ctx context.Context, o Options, a act) (report.Document, error) {
	var doc report.Document
	file := filepath.Join(s.top, "report.json")
	args := append([]string{"run", "--report-file", file, "--bell", "never"}, a.flags...)
	c := exec.CommandContext(ctx, o.Program, append(args, "--", "sh", "-c", a.script)...)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.Dir = s.repo
	c.Env = append(s.environment(), "DEMO_PAUSE="+strconv.FormatFloat(o.Pause.Seconds(), 'f', -1, 64))
	c.Stdout, c.Stderr = o.Out, o.Out
	if err := c.Run(); err != nil && c.ProcessState == nil {
		return doc, fmt.Errorf("start the cage: %w", err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return doc, fmt.Errorf("the cage left no report: %w", err)
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return doc, fmt.Errorf("read the report: %w", err)
	}
	return doc, nil
}

// restored checks the first act: seen from inside, everything came back.
func restored(d report.Document) error {
	if d.Status != report.Reverted {
		return fmt.Errorf("the status is %s", d.Status)
	}
	if d.CommandExitCode == nil || *d.CommandExitCode != 0 {
		return errors.New("the agent saw a change of its own stick")
	}
	return nil
}

// halted checks the second act: stopped, with everything it started.
func halted(d report.Document) error {
	if d.Status != report.Halted || d.Watch.Halt == nil {
		return fmt.Errorf("the status is %s", d.Status)
	}
	if len(d.Lifetime.Survivors) > 0 {
		return errors.New("a process of the agent survived")
	}
	return nil
}
