package session

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cage/report"
	"cage/snapshot"
	"cage/spawn"

	"go.uber.org/goleak"
)

// outside makes an empty directory, outside git, the current one and returns
// options for a session there.
func outside(t *testing.T, command ...string) Options {
	t.Helper()
	work := t.TempDir()
	for _, dir := range []string{"root", "home", "tmp"} {
		if err := os.Mkdir(filepath.Join(work, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(filepath.Join(work, "root"))
	return Options{
		Guarding: Guarding{
			Env: append(os.Environ(), "HOME="+filepath.Join(work, "home"), "TMPDIR="+filepath.Join(work, "tmp"),
				"XDG_STATE_HOME="+filepath.Join(work, "home")),
			Messages: new(strings.Builder),
			Interval: time.Second, Grace: time.Second,
			Limits: snapshot.Limits{FileBytes: 1 << 20, Files: 100, TotalBytes: 1 << 20},
		},
		Command:     command,
		Environment: spawn.Environment{Policy: spawn.Inherit}, Lifetime: spawn.LifetimeTree,
	}
}

// A caller that ends its context ends the command, and nothing is left out.
func TestContextEndsTheCommand(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	o := outside(t, "sh", "-c", "echo evil >.env; : >ready; exec sleep 1000")
	if err := os.WriteFile(".env", []byte("A=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer cancel()
		for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			if _, err := os.Lstat("ready"); err == nil {
				return
			}
		}
	}()
	doc, err := Run(ctx, o)
	goleak.VerifyNone(t)
	if err != nil {
		t.Fatal(err)
	}
	if doc.Status != report.Reverted || doc.CommandSignal == nil || *doc.CommandSignal != "SIGTERM" || !doc.Lifetime.Proved {
		t.Errorf("the report is %+v", doc)
	}
	if data, err := os.ReadFile(".env"); err != nil || string(data) != "A=1\n" {
		t.Errorf(".env is %q, %v", data, err)
	}
}

// One that is over before the command starts keeps it from starting.
func TestContextThatIsOverStartsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o := outside(t, "sh", "-c", ": >ran")
	if doc, err := Run(ctx, o); err == nil {
		t.Errorf("it ran: %+v", doc)
	}
	goleak.VerifyNone(t)
	if _, err := os.Lstat("ran"); err == nil {
		t.Error("the command ran")
	}
}

// Wherever a start ends, nothing of it goes on: not the question to git, not
// the watcher, not the wait for a signal.
func TestRefusalLeavesNothingRunning(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git")
	}
	for _, tt := range []struct {
		name string
		make func(t *testing.T, o *Options)
	}{
		{"no directory for the report", func(_ *testing.T, o *Options) { o.ReportFile = "none/report.json" }},
		{"rules that cannot be read", func(t *testing.T, _ *Options) { write(t, ".cage.yaml", "protect: 1\n") }},
		{"an override of nothing", func(_ *testing.T, o *Options) { o.Overrides = []string{"none"} }},
		{"too many files", func(t *testing.T, o *Options) {
			write(t, ".env", "A=1\n")
			o.Limits.Files = 0
		}},
		{"a report file on a protected path", func(_ *testing.T, o *Options) { o.ReportFile = ".env" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := outside(t, "sh", "-c", ": >ran")
			if out, err := exec.Command("git", "init", "-q", "--template=").CombinedOutput(); err != nil {
				t.Fatalf("git init: %v %s", err, out)
			}
			tt.make(t, &o)
			doc, err := Run(t.Context(), o)
			goleak.VerifyNone(t)
			var refused *Refusal
			if !errors.As(err, &refused) || doc != nil {
				t.Errorf("got %v, %+v", err, doc)
			}
			if _, err := os.Lstat("ran"); err == nil {
				t.Error("the command ran")
			}
		})
	}
}

// A command that cannot be started is a session like others.
func TestCommandThatCannotStartLeavesNothingRunning(t *testing.T) {
	doc, err := Run(t.Context(), outside(t, "./no-such-file"))
	goleak.VerifyNone(t)
	if err != nil || doc.Status != report.NotStarted || doc.ExitCode != 2 || doc.Lifetime.Mechanism != "none" || !doc.Lifetime.Proved {
		t.Errorf("got %v, %+v", err, doc)
	}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A watch that ends, by its context or closed before it began, lets go of its
// program and of those who follow it, and the program lives on.
func TestWatchLeavesNothingRunning(t *testing.T) {
	for _, tt := range []struct {
		name, rules string
		begins      bool
	}{
		{"ended", "protect: []\n", true},
		{"refused", "protect: 1\n", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			o := outside(t)
			write(t, ".env", "A=1\n")
			write(t, ".cage.yaml", tt.rules)
			program := exec.Command("sleep", "1000")
			if err := program.Start(); err != nil {
				t.Fatal(err)
			}
			defer program.Wait()
			defer program.Process.Kill()
			events := endOn{"session_start", func() { write(t, ".env", "A=evil\n"); cancel() }}
			doc, err := Watch(ctx, WatchOptions{Guarding: o.Guarding, PID: program.Process.Pid, Events: events})
			goleak.VerifyNone(t)
			var refused *Refusal
			switch {
			case tt.begins && (err != nil || doc.Status != report.Reverted || doc.Command != "sleep" || doc.Lifetime.Watched.PID != program.Process.Pid):
				t.Errorf("got %v, %+v", err, doc)
			case !tt.begins && !errors.As(err, &refused):
				t.Errorf("got %v, %+v", err, doc)
			}
			if err := program.Process.Signal(syscall.Signal(0)); err != nil {
				t.Errorf("the program: %v", err)
			}
		})
	}
}

// endOn calls end when an event comes.
type endOn struct {
	event string
	end   func()
}

func (e endOn) Write(line []byte) (int, error) {
	if strings.Contains(string(line), `"event":"`+e.event+`"`) {
		e.end()
	}
	return len(line), nil
}
