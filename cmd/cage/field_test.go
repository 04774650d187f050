package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cage/report/reporttest"
)

// field is a repository with a home, a state folder and a temporary folder of
// its own, for scenarios that need more than a script: it runs the real program
// and can reach it while it runs.
type field struct {
	t    *testing.T
	work string
	repo string
}

const dotenv = "A=1\nB=2\n"

// stubborn is a script that starts two processes and, like them, listens to
// nothing.
const stubborn = `
trap '' TERM HUP INT QUIT
(sleep 1000 & sleep 1000) &
: >ready
wait
`

func newField(t *testing.T) *field {
	t.Helper()
	if testing.Short() {
		t.Skip("runs the real program")
	}
	work, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := &field{t: t, work: work, repo: filepath.Join(work, "repo")}
	for _, dir := range []string{"repo", "home", "state", "tmp"} {
		f.must(os.Mkdir(filepath.Join(work, dir), 0o700))
	}
	t.Cleanup(func() { forgetNotes(work) })
	f.write(".env", dotenv)
	f.write("../stubborn.sh", stubborn)
	git := exec.Command("git", "init", "-q", "--template=")
	git.Dir, git.Env = f.repo, f.env()
	if out, err := git.CombinedOutput(); err != nil {
		t.Fatalf("git init: %v %s", err, out)
	}
	return f
}

func (f *field) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *field) env() []string {
	return append(os.Environ(),
		"HOME="+filepath.Join(f.work, "home"), "XDG_STATE_HOME="+filepath.Join(f.work, "state"), "TMPDIR="+filepath.Join(f.work, "tmp"),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "FIELD="+f.work)
}

func (f *field) path(name string) string { return filepath.Join(f.repo, name) }

func (f *field) write(name, content string) {
	f.t.Helper()
	f.must(os.MkdirAll(filepath.Dir(f.path(name)), 0o755))
	f.must(os.WriteFile(f.path(name), []byte(content), 0o644))
}

func (f *field) read(name string) string {
	data, err := os.ReadFile(f.path(name))
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func (f *field) whole(name, content string) {
	f.t.Helper()
	if got := f.read(name); got != content {
		f.t.Errorf("%s holds %q, want %q", name, got, content)
	}
}

// eventually waits for something that has to come.
func (f *field) eventually(what string, done func() bool) {
	f.t.Helper()
	for deadline := time.Now().Add(hang); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.t.Fatalf("it never came that %s", what)
		}
	}
}

func (f *field) appears(name string) {
	f.t.Helper()
	f.eventually(name+" appears", func() bool { _, err := os.Lstat(f.path(name)); return err == nil })
}

// run is a cage that runs, or has run.
type run struct {
	*field
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
	exited         chan error
	over           chan struct{} // closed when it has ended
}

// prepare returns a program that is not started yet.
func (f *field) prepare(name string, args ...string) *run {
	r := &run{field: f, cmd: exec.Command(name, args...), exited: make(chan error, 1), over: make(chan struct{})}
	r.cmd.Dir, r.cmd.Env, r.cmd.Stdout, r.cmd.Stderr = f.repo, f.env(), &r.stdout, &r.stderr
	return r
}

// cage starts a cage around a shell that runs a script.
func (f *field) cage(script string, flags ...string) *run {
	f.t.Helper()
	r := f.prepare("cage", f.call(script, flags...)...)
	r.begin()
	return r
}

// call is the command line of a cage around a shell that runs a script.
func (f *field) call(script string, flags ...string) []string {
	return append(append([]string{"--report-file", filepath.Join(f.work, "report.json")}, flags...), "--", "sh", "-c", script)
}

func (r *run) begin() {
	r.t.Helper()
	// What outlives it must not keep Wait waiting for the end of the output.
	r.cmd.WaitDelay = patience
	r.must(r.cmd.Start())
	go func() {
		defer close(r.over)
		r.exited <- r.cmd.Wait()
	}()
	r.t.Cleanup(r.kill)
}

// kill ends what has not ended.
func (r *run) kill() {
	select {
	case <-r.over:
	default:
		r.cmd.Process.Kill()
		<-r.over
	}
}

func (r *run) signal(sig syscall.Signal) {
	r.t.Helper()
	r.must(r.cmd.Process.Signal(sig))
}

// exits waits for the end and wants that exit code.
func (r *run) exits(want int) {
	r.t.Helper()
	var err error
	select {
	case err = <-r.exited:
		r.exited <- err
	case <-time.After(hang):
		r.kill()
		r.t.Fatalf("it does not end\nstderr: %s", &r.stderr)
	}
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		r.t.Fatal(err)
	}
	if got != want {
		r.t.Errorf("it exited %d (%v), want %d\nstderr: %s", got, err, want, &r.stderr)
	}
}

// events are what the one session log of the field says so far.
func (f *field) events() string {
	logs, err := filepath.Glob(filepath.Join(f.work, "tmp", "gantry-cage-*.log"))
	f.must(err)
	var all strings.Builder
	for _, log := range logs {
		data, err := os.ReadFile(log)
		if err == nil {
			all.Write(data)
		}
	}
	return all.String()
}

func (f *field) logs(event string) {
	f.t.Helper()
	f.eventually("the log has "+event, func() bool { return strings.Contains(f.events(), `"event":"`+event+`"`) })
}

// wants compares fields of the report with their values, as scenarios do.
func (f *field) wants(pairs ...string) {
	f.t.Helper()
	data, err := os.ReadFile(filepath.Join(f.work, "report.json"))
	f.must(err)
	f.must(reporttest.Validate(data))
	var doc map[string]any
	f.must(json.Unmarshal(data, &doc))
	for _, pair := range pairs {
		name, want, _ := strings.Cut(pair, "=")
		var got any = doc
		for part := range strings.SplitSeq(name, ".") {
			object, _ := got.(map[string]any)
			got = object[part]
		}
		if spell(got) != want {
			f.t.Errorf("%s is %s, want %s", name, spell(got), want)
		}
	}
}

// says wants a line on stderr.
func (r *run) says(line string) {
	r.t.Helper()
	if !strings.Contains(r.stderr.String(), line) {
		r.t.Errorf("stderr has no %q:\n%s", line, &r.stderr)
	}
}
