package scope

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cage/internal/proc"
	"cage/internal/program"
)

// TestMain also plays the programs of a service manager, by whose names it is
// called then.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "systemctl":
		os.Exit(reached().control(os.Args[1:]))
	case "systemd-run":
		os.Exit(reached().scope(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// standin is a service manager in a directory: a folder for each unit, and files
// for what a test wants of it. It gives a process its group in a planted
// hierarchy. Its words and exit codes are those of systemd 247 and 252.
type standin string

// reached is the stand-in that the environment leads to.
func reached() standin { return standin(filepath.Dir(busSocket(os.Getenv(busVariable)))) }

func (s standin) path(name ...string) string {
	return filepath.Join(append([]string{string(s)}, name...)...)
}

func (s standin) has(name string) bool {
	_, err := os.Lstat(s.path(name))
	return err == nil
}

func (s standin) says(code int, format string, args ...any) int {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	return code
}

const noMedium = "Failed to connect to bus: No medium found"

// scope is systemd-run(1) as far as a scope takes it.
func (s standin) scope(args []string) int {
	if s.has("no bus") {
		return s.says(1, noMedium)
	}
	var unit string
	limits := make(map[string]string)
	for ; len(args) > 0 && args[0] != "--"; args = args[1:] {
		option, value, _ := strings.Cut(args[0], "=")
		switch option {
		case "--user", "--scope", "--quiet", "--collect", "--slice", "--description":
		case "--unit":
			unit = value
		case "--property":
			name, limit, _ := strings.Cut(value, "=")
			if name == "OOMPolicy" && s.has("no policy") {
				return s.says(1, "Unknown assignment: %s", value)
			}
			limits[name] = limit
		default:
			return s.says(1, "systemd-run: unrecognized option '%s'", option)
		}
	}
	args = args[1:]
	switch {
	case unit == "":
		return 0 // the scope has ended
	case s.has(unit):
		return s.says(1, "Failed to start transient scope unit: Unit %s was already loaded or has a fragment file.", unit)
	case s.has("no scopes"):
		return s.says(1, "Failed to start transient scope unit: Access denied")
	}
	group := "/user/cage.slice/cage-sessions.slice/" + unit
	pid := strconv.Itoa(os.Getpid())
	for name, text := range map[string]string{
		s.path(unit, "pid"):                        pid,
		s.path("proc", pid, "cgroup"):              "0::" + group + "\n",
		s.path("cgroup", group, "pids.max"):        limits["TasksMax"] + "\n",
		s.path("cgroup", group, "memory.max"):      limits["MemoryMax"] + "\n",
		s.path("cgroup", group, "memory.swap.max"): limits["MemorySwapMax"] + "\n",
		s.path("policy"):                           limits["OOMPolicy"],
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
			return s.says(9, "%v", err)
		}
	}
	return s.says(1, "Failed to execute: %v", syscall.Exec(args[0], args, os.Environ()))
}

// state is what the real one would say of a unit.
func (s standin) state(unit string) (load, active, result string) {
	text, err := os.ReadFile(s.path(unit, "pid"))
	if err != nil {
		return "not-found", "inactive", "success"
	}
	if result, err := os.ReadFile(s.path(unit, "result")); err == nil {
		return "loaded", "failed", string(result)
	}
	pid, _ := strconv.Atoi(string(text))
	if id, err := proc.Identify(pid); err == nil && id.Alive() {
		return "loaded", "active", "success"
	}
	os.RemoveAll(s.path(unit)) // a clean end takes the unit with it
	return "not-found", "inactive", "success"
}

// control is systemctl(1).
func (s standin) control(args []string) int {
	if slices.Contains(args, "--version") {
		fmt.Println("systemd 252 (252.39-1~deb12u2)")
		return 0
	}
	if s.has("no bus") {
		return s.says(1, noMedium)
	}
	words := slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return strings.HasPrefix(arg, "--") })
	verb, unit := words[0], strings.Join(words[1:], " ")
	load, active, result := s.state(unit)
	switch {
	case slices.Contains(args, "--property=ControlGroup"):
		fmt.Println("/user")
	case slices.Contains(args, "--property=MemoryMax"):
		fmt.Println(map[bool]string{true: "268435456", false: "infinity"}[unit == sessionsSlice])
	case verb == "show":
		fmt.Printf("LoadState=%s\nActiveState=%s\nResult=%s\n", load, active, result)
	case verb == "list-units":
		units, _ := filepath.Glob(s.path("*.scope"))
		for _, path := range units {
			load, active, _ := s.state(filepath.Base(path))
			fmt.Printf("%s %s %s running A session of cage\n", filepath.Base(path), load, active)
		}
	case load != "loaded":
		return s.says(5, "Failed to %s %s: Unit %s not loaded.", verb, unit, unit)
	case verb == "reset-failed":
		os.RemoveAll(s.path(unit))
	case active == "active":
		text, _ := os.ReadFile(s.path(unit, "pid"))
		pid, _ := strconv.Atoi(string(text))
		unix.Kill(pid, unix.SIGKILL)
	}
	return 0
}

// mute is a host whose bus hangs up on everybody, beside the manager's own
// programs.
func mute(t *testing.T) (Host, standin, hierarchy) {
	t.Helper()
	s := standin(t.TempDir())
	listener, err := net.Listen("unix", s.path("bus"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"systemctl", "systemd-run"} {
		if err := os.Symlink(own, s.path(name)); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"PATH=" + string(s), "XDG_RUNTIME_DIR=" + string(s), "DBUS_SESSION_BUS_ADDRESS=tcp:host=elsewhere,port=1"}
	h := planted(t, "/own", map[string]string{"own/cgroup.controllers": "", "own/cgroup.procs": ""})
	os.Symlink(h.mount, s.path("cgroup"))
	plant(t, h.proc, "self/ns/pid", "")
	os.Symlink(h.proc, s.path("proc"))
	return Host{Env: env, Find: program.Finder(env, ""), Run: program.Exec}, s, h
}

// sender is a shell that stands still until it is sent somewhere, and becomes a
// sleep there.
type sender struct {
	cmd    *exec.Cmd
	id     proc.ID
	stdin  io.WriteCloser
	stdout io.Reader
	said   strings.Builder
}

func newSender(t *testing.T) *sender {
	t.Helper()
	s := &sender{cmd: exec.Command("/bin/sh", "-c", `read -r way && eval "exec $way"`)}
	s.cmd.Stderr = &s.said
	var inErr, outErr error
	s.stdin, inErr = s.cmd.StdinPipe()
	s.stdout, outErr = s.cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr, s.cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.cmd.Process.Kill()
		s.cmd.Wait()
	})
	var err error
	if s.id, err = proc.Identify(s.cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *sender) Process() proc.ID { return s.id }

func (s *sender) Through(prefix, env []string, _ time.Duration) ([]byte, error) {
	words := slices.Concat([]string{"env", "-i"}, env, prefix, []string{"/bin/sh", "-c", "echo; exec sleep 600"})
	fmt.Fprintf(s.stdin, "'%s'\n", strings.Join(words, "' '"))
	if _, err := bufio.NewReader(s.stdout).ReadString('\n'); err != nil {
		s.cmd.Wait()
		return []byte(s.said.String()), errors.New("it failed")
	}
	return nil, nil
}

// Promise: where the bus does not understand, the manager's programs make the
// same scope, say how it ended and end it.
func TestByPrograms(t *testing.T) {
	for _, policy := range []string{"continue", ""} {
		host, s, h := mute(t)
		if policy == "" {
			plant(t, string(s), "no policy", "")
		}
		plan, err := prepare(t.Context(), h, Request{ID: "x", Host: host, Limits: Limits{Memory: Auto(), Tasks: 9}})
		if err != nil {
			t.Fatal(err)
		}
		taken := plan.name
		plant(t, string(s), taken.unit()+"/pid", "0")
		plant(t, string(s), taken.unit()+"/result", "oom-kill")
		held := newSender(t)
		g, err := plan.Place(t.Context(), held)
		if err != nil {
			t.Fatal(err)
		}
		taken.attempt = 2
		if g.Name() != taken.unit() || g.Mode() != Scope || g.Bounds().TasksMax != 9 || *g.Bounds().MemoryMax != 256<<20 {
			t.Errorf("%s %s %+v", g.Name(), g.Mode(), g.Bounds())
		}
		if got, _ := os.ReadFile(s.path("policy")); string(got) != policy {
			t.Errorf("the policy is %q, want %q", got, policy)
		}
		names, err := plan.manager.scopes(t.Context())
		if err != nil || len(names) != 2 || !slices.Contains(names, g.Name()) {
			t.Errorf("listed are %q, %v", names, err)
		}
		if err := plan.manager.kill(t.Context(), g.Name()); err != nil {
			t.Error(err)
		}
		held.cmd.Wait()
		plant(t, string(s), g.Name()+"/result", "oom-kill")
		if usage, err := g.End(t.Context()); err != nil || usage.Kills != 1 || usage.Limit != Own {
			t.Errorf("it ended with %+v, %v", usage, err)
		}
		if s.has(g.Name()) {
			t.Error("the unit that failed is not forgotten")
		}
	}
}

// Promise: scopes of dead cages are ended by the programs too, and no others.
func TestSweepByPrograms(t *testing.T) {
	host, s, h := mute(t)
	plan, err := prepare(t.Context(), h, Request{ID: "x", Host: host})
	if err != nil {
		t.Fatal(err)
	}
	mine := newSender(t)
	if _, err := plan.Place(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	plan.name.owner.Start++ // a process of the same number, before
	other := newSender(t)
	left, err := plan.Place(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	plan.name.owner.Start--
	swept, err := plan.Sweep(t.Context())
	if err != nil || len(swept) != 1 || swept[0] != left.Name() {
		t.Errorf("swept %q, %v", swept, err)
	}
	other.cmd.Wait()
	if !mine.id.Alive() || other.id.Alive() {
		t.Errorf("alive: %t and %t", mine.id.Alive(), other.id.Alive())
	}
	if s.has(left.Name()) {
		t.Error("the scope is still there")
	}
}

// Promise: what the programs refuse is told in their words, and a process that
// was lost by it is not taken for one that somebody ended.
func TestProgramsRefuse(t *testing.T) {
	limits := Limits{Memory: Bytes(1 << 20)}
	host, s, h := mute(t)
	plan, err := prepare(t.Context(), h, Request{ID: "x", Host: host, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	plant(t, string(s), "no scopes", "")
	_, err = plan.Place(t.Context(), newSender(t))
	refusal(t, err, "no scope: it failed, the process has ended of it: Failed to start transient scope unit: Access denied")

	ended := newSender(t)
	if err := ended.id.Signal(unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err = plan.Place(t.Context(), ended); err != ErrEnded {
		t.Errorf("one that was ended: %v", err)
	}

	plant(t, string(s), "no bus", "")
	_, err = prepare(t.Context(), h, Request{ID: "x", Host: host, Limits: limits})
	refusal(t, err, string(s), "nor its programs: "+noMedium)

	host.Find = program.Finder([]string{"PATH=/nowhere"}, "")
	_, err = prepare(t.Context(), h, Request{ID: "x", Host: host, Limits: limits})
	refusal(t, err, "no systemctl", "no systemd-run")
}

// Promise: the programs go nowhere where D-Bus did not: not where nobody is, nor
// to whatever another kind of address leads to.
func TestProgramsGoNowhereElse(t *testing.T) {
	host, s, h := mute(t)
	host.Run = func(context.Context, program.Call) (program.Result, error) {
		t.Error("a program runs")
		return program.Result{}, errors.New("no")
	}
	if err := os.Remove(s.path("bus")); err != nil {
		t.Fatal(err)
	}
	_, err := prepare(t.Context(), h, Request{ID: "x", Host: host})
	refusal(t, err, "does not answer in "+string(s)+": no such file or directory;")
}

// Promise: an address leads the programs to its own socket.
func TestVariable(t *testing.T) {
	for _, a := range addresses(map[string]string{"XDG_RUNTIME_DIR": "/run/a b", busVariable: "unix:path=/b%3bc;tcp:host=elsewhere,port=1"}) {
		switch name, value, _ := strings.Cut(a.variable(), "="); {
		case a.direct && (name != "XDG_RUNTIME_DIR" || value != "/run/a b"):
			t.Errorf("%+v: %s=%s", a, name, value)
		case !a.direct && (name != busVariable || busSocket(value) != a.socket || strings.Contains(value, "elsewhere")):
			t.Errorf("%+v: %s=%s", a, name, value)
		}
	}
	if got := (address{socket: "@x y"}).variable(); got != busVariable+"=unix:abstract=x%20y" {
		t.Errorf("abstract: %s", got)
	}
}
