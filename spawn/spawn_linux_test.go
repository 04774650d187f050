package spawn

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"cage/internal/proc"
	"cage/internal/torture"
)

// roleVariable makes this test binary a program of its own.
const roleVariable = "SPAWN_TEST_ROLE"

// lifetimeVariable is the lifetime of the command that roleKeep runs; run where
// it is empty.
const lifetimeVariable = "SPAWN_TEST_LIFETIME"

const (
	roleKeep = "keep" // runs a command
	roleCall = "call" // makes system calls
	// roleBare becomes roleStart where no filter can be installed, roleNested
	// where there are no sessions to be had.
	roleBare   = "bare"
	roleNested = "nested"
	roleStart  = "start" // runs a command in each mode
)

func TestMain(m *testing.M) {
	stage := Main()
	torture.Main()
	role := os.Getenv(roleVariable)
	os.Unsetenv(roleVariable)
	switch role {
	case roleKeep:
		os.Exit(roleProgram(stage))
	case roleCall:
		os.Exit(makeCalls())
	case roleBare:
		os.Exit(withoutFilters())
	case roleNested:
		os.Exit(withoutSessions())
	case roleStart:
		os.Exit(startEach(stage))
	}
	// The race detector has a program sleep for a second before it exits, so that
	// what other threads find is still told: a keeper has none to tell of.
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	goleak.VerifyTestMain(m)
}

// patience bounds every wait for something that must happen.
const patience = 60 * time.Second

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

// mechanisms are the ways to hold a run, each as what must stand before.
var mechanisms = map[string]func(t *testing.T){
	Subreaper: func(*testing.T) {},
	Keeper:    foreignChild,
}

func onEach(t *testing.T, test func(t *testing.T, mechanism string)) {
	for mechanism, prepare := range mechanisms {
		t.Run(mechanism, func(t *testing.T) {
			prepare(t)
			test(t, mechanism)
		})
	}
}

// foreignChild gives this process a child that no run may touch.
func foreignChild(t *testing.T) {
	t.Helper()
	pid, err := syscall.ForkExec("/bin/sleep", []string{"sleep", "1000"}, &syscall.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	id, err := proc.Identify(pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !id.Alive() {
			t.Error("the foreign child did not survive the run")
		}
		_ = unix.Kill(pid, unix.SIGKILL)
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil || status.Signal() != unix.SIGKILL {
			t.Errorf("the foreign child was waited for, or ended by %v: %v", status.Signal(), err)
		}
	})
}

func newReaper(t *testing.T) *proc.Reaper {
	t.Helper()
	r, err := proc.NewReaper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// rig is a run under test. Everything in it holds the writing end of out.
type rig struct {
	*Run
	reaper *proc.Reaper
	in     *os.File
	out    *os.File
	lines  *bufio.Reader
}

func plant(t *testing.T, mechanism, script string, args ...string) *rig {
	t.Helper()
	return plantWith(t, mechanism, LifetimeTree, script, args...)
}

func plantWith(t *testing.T, mechanism string, lifetime Lifetime, script string, args ...string) *rig {
	t.Helper()
	return plantAs(t, mechanism, Command{Lifetime: lifetime}, script, args...)
}

// plantAs runs a shell where the command says.
func plantAs(t *testing.T, mechanism string, c Command, script string, args ...string) *rig {
	t.Helper()
	r := newReaper(t)
	theirIn, in := pipe(t)
	out, theirs := pipe(t)
	defer theirIn.Close()
	defer theirs.Close()
	c.Path, c.Args = "sh", append([]string{"-c", script, "sh"}, args...)
	c.Stdin, c.Stdout, c.Stderr = theirIn, theirs, os.Stderr
	c.Environment.Policy = Inherit
	run, err := Stage{entered: true}.Start(r, c)
	if err != nil {
		t.Fatal(err)
	}
	if run.Mechanism() != mechanism {
		t.Fatalf("the run is held by a %s", run.Mechanism())
	}
	return &rig{run, r, in, out, bufio.NewReader(out)}
}

// pipe returns a pipe whose ends are closed with the test.
func pipe(t *testing.T) (reads, writes *os.File) {
	t.Helper()
	reads, writes, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		reads.Close()
		writes.Close()
	})
	return reads, writes
}

// tell lets a command that reads a line go on.
func (g *rig) tell(t *testing.T) {
	t.Helper()
	if _, err := g.in.WriteString("go\n"); err != nil {
		t.Fatal(err)
	}
}

func (g *rig) line(t *testing.T) string {
	t.Helper()
	if err := g.out.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	line, err := g.lines.ReadString('\n')
	if err != nil {
		t.Fatalf("reading what the run writes: %v", err)
	}
	return strings.TrimSpace(line)
}

// rest returns what the run still writes until nothing holds its output.
func (g *rig) rest(t *testing.T) string {
	t.Helper()
	if err := g.out.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(g.lines)
	if err != nil {
		t.Fatalf("something still holds the run's output: %v", err)
	}
	return string(text)
}

func exitOf(t *testing.T, run *Run) proc.Exit {
	t.Helper()
	select {
	case e := <-run.Exited():
		return e
	case <-time.After(patience):
		t.Fatal("no exit was delivered")
		return proc.Exit{}
	}
}

func goneIn(t *testing.T, run *Run) {
	t.Helper()
	select {
	case <-run.Gone():
	case <-time.After(patience):
		processes, err := run.Processes()
		t.Fatalf("the run is never gone; it lists %v, %v", processes, err)
	}
}

func TestExit(t *testing.T) {
	onEach(t, func(t *testing.T, mechanism string) {
		for script, want := range map[string]proc.Exit{
			"exit 0":        {},
			"exit 7":        {Code: 7},
			"kill -KILL $$": {Signal: unix.SIGKILL},
			"kill -HUP $$":  {Signal: unix.SIGHUP},
		} {
			g := plant(t, mechanism, script)
			if got := exitOf(t, g.Run); got != want {
				t.Errorf("%s: got %v, want %v", script, got, want)
			}
			goneIn(t, g.Run)
			if err := g.reaper.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestRunEnds(t *testing.T) {
	scripts := map[string]string{
		"a family": `trap '' TERM; (trap '' TERM; setsid sh -c 'trap "" TERM; echo ready; sleep 1000' & sleep 1000) & wait`,
		"a storm": `i=0; while [ $i -lt 8 ]; do i=$((i+1)); (setsid sh -c '
			hop() { [ $1 -gt 0 ] && { ( hop $(($1-1)) ) & }; }; trap "" TERM; hop 900' &) done; echo ready; exec sleep 1000`,
		"daemons": `i=0; while [ $i -lt 50 ]; do i=$((i+1)); (setsid sleep 1000 &); done; echo ready; exit 0`,
	}
	onEach(t, func(t *testing.T, mechanism string) {
		for name, script := range scripts {
			t.Run(name, func(t *testing.T) {
				g := plant(t, mechanism, script)
				g.line(t)
				killed := g.Kill(patience)
				if !killed.Proved || killed.Count == 0 || len(killed.Survivors) > 0 {
					t.Errorf("got %+v", killed)
				}
				select {
				case <-g.Exited():
				default:
					t.Error("the end was proved before the exit was delivered")
				}
				goneIn(t, g.Run)
				g.rest(t)
				if p, err := g.Processes(); len(p) > 0 || err != nil {
					t.Errorf("what is gone lists %v, %v", p, err)
				}
				if again := g.Kill(patience); !again.Proved || again.Count != 0 || g.Terminate() != 0 {
					t.Errorf("killed again: %+v", again)
				}
			})
		}
	})
}

func TestRunIsTerminated(t *testing.T) {
	onEach(t, func(t *testing.T, mechanism string) {
		g := plant(t, mechanism, `trap 'echo bye; exit 5' TERM; echo ready; read go; kill -STOP $$; exit 6`)
		g.line(t)
		g.tell(t) // a stop while it starts would be the stage's
		eventually(t, "the command stops", func() bool {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", g.Command().PID))
			return err == nil && strings.Contains(string(text), ") T ")
		})
		if n := g.Terminate(); n != 1 {
			t.Errorf("%d processes took SIGTERM", n)
		}
		if got := exitOf(t, g.Run); got.Code != 5 {
			t.Errorf("ended with %v", got)
		}
		goneIn(t, g.Run)
		if got := g.rest(t); got != "bye\n" {
			t.Errorf("it said %q", got)
		}
	})
}

func TestProcessesAreListed(t *testing.T) {
	onEach(t, func(t *testing.T, mechanism string) {
		g := plant(t, mechanism, `sleep 1000 & echo $!; wait`)
		want := []int{g.Command().PID, mustAtoi(t, g.line(t))}
		var got []int
		eventually(t, "both are listed", func() bool {
			processes, err := g.Processes()
			if err != nil {
				t.Fatal(err)
			}
			got = nil
			for _, p := range processes {
				if !p.Alive() {
					t.Errorf("%v is not alive", p)
				}
				got = append(got, p.PID)
			}
			return len(got) == len(want)
		})
		if !slices.Equal(got, want) {
			t.Errorf("lists %v, want %v", got, want)
		}
		g.Kill(patience)
	})
}

func mustAtoi(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// In the foreground the command gets the streams, session and group of the
// caller, the caller's environment, and no descriptor of the keeper's.
func TestCommandStandsWhereTheCallerDoes(t *testing.T) {
	t.Setenv("SPAWN_TEST_BYTES", "\xff\n=")
	onEach(t, func(t *testing.T, mechanism string) {
		g := plantAs(t, mechanism, Command{Terminal: Foreground, Lifetime: LifetimeTree}, `cat /proc/self/stat; pwd; [ "$SPAWN_TEST_BYTES" = "$1" ]; echo $?
			grep SigIgn /proc/self/status; grep SigBlk /proc/self/status
			for fd in /proc/$$/fd/*; do [ -L "$fd" ] && echo "${fd##*/}"; done`, "\xff\n=")
		s := strings.Fields(g.line(t))
		pgrp, _ := unix.Getpgid(0)
		sid, _ := unix.Getsid(0)
		if s[4] != fmt.Sprint(pgrp) || s[5] != fmt.Sprint(sid) {
			t.Errorf("process group %s and session %s, want %d and %d", s[4], s[5], pgrp, sid)
		}
		dir, _ := os.Getwd()
		var ignored uint64 // by this program, as it was started
		for sig := syscall.Signal(1); sig < 32; sig++ {
			if signal.Ignored(sig) {
				ignored |= 1 << (sig - 1)
			}
		}
		for _, want := range []string{dir, "0", fmt.Sprintf("SigIgn:\t%016x", ignored), "SigBlk:\t0000000000000000"} {
			if got := g.line(t); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		if got := g.rest(t); got != "0\n1\n2\n" {
			t.Errorf("open in the command: %q", got)
		}
		goneIn(t, g.Run)
	})
}

// Of 298 descriptors that nobody marked close-on-exec the command gets those
// that are named, under their numbers, and no other.
func TestDescriptors(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	var open []int
	for fd := 3; fd <= 300; fd++ {
		// Those that are taken are this program's own.
		if isOpen(fd) != nil && unix.Dup2(int(null.Fd()), fd) == nil {
			open = append(open, fd)
			defer unix.Close(fd)
		}
	}
	if len(open) < 200 || !Inherited(open[7]) || Inherited(int(null.Fd())) {
		t.Fatalf("open are %v", open)
	}
	onEach(t, func(t *testing.T, _ string) {
		r := newReaper(t)
		for _, named := range [][]int{nil, {open[0]}, {open[len(open)-1], open[0], open[7]}} {
			ours, theirs, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			run, err := Stage{entered: true}.Start(r, Command{
				Path: "sh", Args: []string{"-c", `for fd in /proc/$$/fd/*; do [ -L "$fd" ] && echo "${fd##*/}"; done`},
				Stdout: theirs, Descriptors: named,
			})
			if err != nil {
				t.Fatal(err)
			}
			theirs.Close()
			said, err := io.ReadAll(ours)
			if err != nil {
				t.Fatal(err)
			}
			ours.Close()
			want := []string{"0", "1", "2"}
			for _, fd := range named {
				want = append(want, strconv.Itoa(fd))
			}
			slices.Sort(want) // as the shell does
			if got := strings.Fields(string(said)); !slices.Equal(got, want) {
				t.Errorf("open in the command: %v, want %v", got, want)
			}
			goneIn(t, run)
		}
		for _, wrong := range []int{-1, 0, 2, 299, 100000} {
			unix.Close(299)
			var refused *StartError
			if _, err := (Stage{entered: true}).Start(r, Command{Path: "true", Descriptors: []int{wrong}}); !errors.As(err, &refused) {
				t.Errorf("%d: %v", wrong, err)
			}
		}
	})
}

func TestCommandIsFound(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return name
	}
	write("bin/tool", "#!/bin/sh\nexit 11\n", 0o755)
	write("here", "#!/bin/sh\nexit 12\n", 0o755)
	write("else/where/here", "#!/bin/sh\nexit 13\n", 0o755)
	text := write("text", "no program\n", 0o755)
	lost := write("lost", "#!/nonexistent/interpreter\n", 0o755)
	plain := write("plain", "#!/bin/sh\n", 0o644)
	t.Chdir(dir)
	t.Setenv("PATH", "bin::/bin:/usr/bin")
	tests := []struct {
		command Command
		code    int
		refusal string
	}{
		{Command{Path: "tool"}, 11, ""},
		{Command{Path: "here"}, 12, ""}, // the empty entry is the current directory
		{Command{Path: "./here"}, 12, ""},
		{Command{Path: "./here", Dir: "/"}, 12, ""},
		{Command{Path: "here", Dir: "else/where"}, 12, ""},
		{Command{Path: "sh", Args: []string{"-c", `exit "$1"`, "sh", "14"}}, 14, ""},
		{Command{Path: "sh", Args: []string{"-c", `[ -z "$HOME$SPAWN_TEST" ] && exit 15`}, Env: []string{}}, 15, ""},
		{Command{Path: "sh", Args: []string{"-c", `exit "$SPAWN_TEST"`}, Env: []string{"SPAWN_TEST=16"}}, 16, ""},
		{Command{Path: "no-such-tool"}, 0, `cannot run "no-such-tool": not found in PATH`},
		{Command{Path: ""}, 0, `cannot run "": not found in PATH`},
		{Command{Path: "./absent"}, 0, `cannot run "./absent": no such file`},
		{Command{Path: dir}, 0, fmt.Sprintf("cannot run %q: is a directory", dir)},
		{Command{Path: plain}, 0, fmt.Sprintf("cannot run %q: not executable: permission denied", plain)},
		{Command{Path: text}, 0, fmt.Sprintf("cannot run %q: neither a program for this machine nor a script with a #! line (exec format error)", text)},
		{Command{Path: lost}, 0, fmt.Sprintf("cannot run %q: the interpreter that it names does not exist", lost)},
		{Command{Path: "sh", Dir: "absent"}, 0, `cannot run "sh": cannot start in "absent": no such file or directory`},
		{Command{Path: "sh", Dir: "text"}, 0, `cannot run "sh": cannot start in "text": not a directory`},
		{Command{Path: "sh", Args: []string{strings.Repeat("x", 1<<18)}}, 0, `cannot run "sh": argument list too long`},
	}
	onEach(t, func(t *testing.T, _ string) {
		r := newReaper(t)
		for _, tt := range tests {
			run, err := Stage{entered: true}.Start(r, tt.command)
			if tt.refusal != "" {
				var refused *StartError
				if !errors.As(err, &refused) || err.Error() != tt.refusal || refused.Name != tt.command.Path {
					t.Errorf("got %v, want %s", err, tt.refusal)
				}
				continue
			}
			if err != nil {
				t.Errorf("%q: %v", tt.command.Path, err)
				continue
			}
			if got := exitOf(t, run); got.Code != tt.code {
				t.Errorf("%q: got %v, want %d", tt.command.Path, got, tt.code)
			}
			goneIn(t, run)
		}
	})
}

func TestKeeperNeedsAStage(t *testing.T) {
	foreignChild(t)
	if _, err := (Stage{}).Start(newReaper(t), Command{Path: "sh"}); !errors.Is(err, ErrNoStage) {
		t.Errorf("got %v", err)
	}
}

func TestProgramWithoutForeignChildrenNeedsNone(t *testing.T) {
	run, err := Stage{}.Start(newReaper(t), Command{Path: "true", Lifetime: LifetimeTree})
	if err != nil {
		t.Fatal(err)
	}
	goneIn(t, run)
}

// keeperOf finds the process that keeps a run.
func keeperOf(t *testing.T, run *Run) proc.ID {
	t.Helper()
	return identify(t, fmt.Sprint(parentOf(t, run.Command().PID)))
}

// What a terminal or a person sends to the whole group does not end a keeper.
func TestKeeperShrugsOffSignals(t *testing.T) {
	foreignChild(t)
	g := plant(t, Keeper, `echo ready; exec sleep 1000`)
	g.line(t)
	keeper := keeperOf(t, g.Run)
	for _, sig := range []unix.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGPIPE, unix.SIGALRM,
		unix.SIGUSR1, unix.SIGUSR2, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGWINCH, unix.SIGCONT} {
		for range 3 {
			if err := keeper.Signal(sig); err != nil {
				t.Fatalf("signal %d: %v", int(sig), err)
			}
		}
	}
	if p, err := g.Processes(); len(p) != 1 || err != nil {
		t.Errorf("lists %v, %v", p, err)
	}
	if killed := g.Kill(patience); !killed.Proved || killed.Count != 1 {
		t.Errorf("got %+v", killed)
	}
	g.rest(t)
}

func TestKilledKeeperProvesNothing(t *testing.T) {
	foreignChild(t)
	g := plant(t, Keeper, `echo ready; exec sleep 1000`)
	g.line(t)
	if err := keeperOf(t, g.Run).Signal(unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	g.rest(t) // the command has died
	if got := exitOf(t, g.Run); got.Signal != unix.SIGKILL {
		t.Errorf("got %v", got)
	}
	if killed := g.Kill(patience); killed.Proved {
		t.Errorf("got %+v", killed)
	}
	if n := g.Terminate(); n != 0 {
		t.Errorf("%d processes took SIGTERM", n)
	}
	if p, err := g.Processes(); !errors.Is(err, errKeeperLost) {
		t.Errorf("lists %v, %v", p, err)
	}
	select {
	case <-g.Gone():
		t.Error("a lost run is called gone")
	default:
	}
}

// roleProgram runs a command that outlives it, unless it dies with it.
func roleProgram(stage Stage) int {
	// As the cage does: nothing of it is readable through /proc.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		fmt.Println("failed:", err)
		return 1
	}
	r, err := proc.NewReaper()
	if err != nil {
		fmt.Println("failed:", err)
		return 1
	}
	lifetime, _ := ParseLifetime(os.Getenv(lifetimeVariable))
	run, err := stage.Start(r, Command{
		Path: "sh", Args: []string{"-c", `grep SigIgn /proc/self/status; exec sleep 1000`}, Stdout: os.Stdout, Lifetime: lifetime,
		PrivateTmp: os.Getenv(privateVariable) != "", Confine: holdIt(os.Getenv(heldVariable)),
	})
	if err != nil {
		fmt.Println("failed:", err)
		return 1
	}
	fmt.Println(run.Mechanism(), run.Command().PID)
	<-run.Gone()
	return 0
}

// privateVariable has the run of roleProgram have a temporary directory.
const privateVariable = "CAGE_TEST_PRIVATE_TMP"

// heldVariable has the run of roleProgram held for good: where it stands still, or
// while it goes through another program.
const (
	heldVariable = "CAGE_TEST_HELD"
	heldThere    = "held"
	heldOnItsWay = "away"
)

// holdIt says where it holds, and the process.
func holdIt(where string) Confine {
	if where == "" {
		return nil
	}
	return func(held Held) (Confinement, error) {
		if where == heldOnItsWay {
			_, err := held.Through([]string{"/bin/sh", "-c", "echo away $$; exec sleep 1000"}, nil, time.Hour)
			return Confinement{}, err
		}
		fmt.Println(where, held.Process().PID)
		select {}
	}
}

// play runs roleProgram as what a shell script calls "$@".
func play(t *testing.T, script string, attr *syscall.SysProcAttr) (pid int, out *bufio.Reader) {
	t.Helper()
	ours, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	cmd := exec.Command("/bin/sh", "-c", script, "sh")
	cmd.Env = append(os.Environ(), roleVariable+"="+roleKeep)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = theirs, os.Stderr, attr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ours.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if err := ours.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid, bufio.NewReader(ours)
}

func TestRunDiesWithItsProgram(t *testing.T) {
	users := map[string]*syscall.SysProcAttr{"caller": nil}
	if os.Getuid() == 0 {
		users["ordinary user"] = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	for user, attr := range users {
		for mechanism, before := range map[string]string{Subreaper: "", Keeper: "sleep 1000 & echo foreign $!; "} {
			t.Run(user+" "+mechanism, func(t *testing.T) {
				pid, out := play(t, before+"trap '' HUP TSTP; exec "+copyOfThisBinary(t), attr)
				said := make(map[string]string)
				for said[mechanism] == "" || said["SigIgn:"] == "" {
					line, err := out.ReadString('\n')
					if err != nil {
						t.Fatal(err)
					}
					words := strings.Fields(line)
					said[words[0]] = words[1]
				}
				if got := said["SigIgn:"]; got != "0000000000080001" {
					t.Errorf("the command ignores %s, its caller HUP and TSTP", got)
				}
				command := identify(t, said[mechanism])
				holder := identify(t, fmt.Sprint(parentOf(t, command.PID)))
				if own := holder.PID == pid; own != (mechanism == Subreaper) {
					t.Errorf("the command's parent is %d, the program %d", holder.PID, pid)
				}
				if err := unix.Kill(pid, unix.SIGKILL); err != nil {
					t.Fatal(err)
				}
				eventually(t, "the command dies", func() bool { return !command.Alive() })
				eventually(t, "its holder dies", func() bool { return !holder.Alive() })
				if mechanism == Keeper {
					if err := identify(t, said["foreign"]).Signal(unix.SIGKILL); err != nil {
						t.Errorf("the foreign child died too: %v", err)
					}
				}
			})
		}
	}
}

// A keeper whose program dies ends the run also where somebody has stopped both.
func TestStoppedKeeperEndsTheRun(t *testing.T) {
	pid, out := play(t, "sleep 1000 & echo foreign $!; exec "+copyOfThisBinary(t), nil)
	said := make(map[string]string)
	for said[Keeper] == "" || said["SigIgn:"] == "" {
		line, err := out.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		words := strings.Fields(line)
		said[words[0]] = words[1]
	}
	command := identify(t, said[Keeper])
	keeper := identify(t, fmt.Sprint(parentOf(t, command.PID)))
	for _, id := range []proc.ID{identify(t, fmt.Sprint(pid)), keeper} {
		if err := id.Signal(unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it is stopped", id.MayBeStopped)
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the command dies", func() bool { return !command.Alive() })
	eventually(t, "its keeper dies", func() bool { return !keeper.Alive() })
	if err := identify(t, said["foreign"]).Signal(unix.SIGKILL); err != nil {
		t.Errorf("the foreign child died too: %v", err)
	}
}

func identify(t *testing.T, pid string) proc.ID {
	t.Helper()
	id, err := proc.Identify(mustAtoi(t, pid))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func parentOf(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, fields, _ := strings.Cut(string(text), ") ")
	return mustAtoi(t, strings.Fields(fields)[1])
}

// copyOfThisBinary returns a name of this program that every user may run.
func copyOfThisBinary(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "program")
	for dir := filepath.Dir(name); strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, program, 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

// The limits bind the command and its descendants, not this program.
func TestLimits(t *testing.T) {
	n := func(v uint64) *uint64 { return &v }
	before := make(map[int]syscall.Rlimit)
	for _, resource := range []int{unix.RLIMIT_CORE, unix.RLIMIT_FSIZE, unix.RLIMIT_CPU, unix.RLIMIT_NOFILE} {
		var is syscall.Rlimit
		if err := syscall.Getrlimit(resource, &is); err != nil {
			t.Fatal(err)
		}
		before[resource] = is
	}
	run := func(t *testing.T, limits Limits, script string) proc.Exit {
		t.Helper()
		run, err := Stage{entered: true}.Start(newReaper(t), Command{Path: "sh", Args: []string{"-c", script}, Limits: limits})
		if err != nil {
			t.Fatal(err)
		}
		exit := exitOf(t, run)
		goneIn(t, run)
		return exit
	}
	all := Limits{CPU: n(7), FileSize: n(4096), OpenFiles: n(40), Core: n(0)}
	for name, tt := range map[string]struct {
		limits Limits
		script string
		want   proc.Exit
	}{
		"shown":            {all, `[ "$(ulimit -t) $(ulimit -Ht) $(ulimit -n) $(ulimit -Hn) $(ulimit -c) $(ulimit -Hc)" = "7 8 40 40 0 0" ]`, proc.Exit{}},
		"inherited":        {all, `sh -c 'sh -c "[ \$(ulimit -Hn) = 40 ]"'`, proc.Exit{}},
		"too many files":   {Limits{OpenFiles: n(3)}, `/bin/cat /dev/null`, proc.Exit{Code: 127}},
		"too large files":  {Limits{FileSize: n(4096)}, `cd "$(mktemp -d)"; trap 'rm f; rmdir "$PWD"' EXIT; head -c 5000 /dev/zero >f; [ $(wc -c <f) = 4096 ]`, proc.Exit{}},
		"too much time":    {Limits{CPU: n(1)}, `while :; do :; done`, proc.Exit{Signal: unix.SIGXCPU}},
		"time without end": {Limits{CPU: n(math.MaxUint64)}, `[ "$(ulimit -t) $(ulimit -Ht)" = "unlimited unlimited" ]`, proc.Exit{}},
		"deaf to that":     {Limits{CPU: n(1)}, `trap '' XCPU; while :; do :; done`, proc.Exit{Signal: unix.SIGKILL}},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, _ string) {
				if got := run(t, tt.limits, tt.script); got != tt.want {
					t.Errorf("ended with %v, want %v", got, tt.want)
				}
			})
		})
	}
	for resource, was := range before {
		var is syscall.Rlimit
		if err := syscall.Getrlimit(resource, &is); err != nil || is != was {
			t.Errorf("limit %d of this program was %v, is %v", resource, was, is)
		}
	}
}

func TestRootOfANamespace(t *testing.T) {
	for users, root := range map[string]bool{
		"         0          0 4294967295\n":           true,
		"         0       1000          1\n":           false,
		"         0     100000      65536\n":           false,
		"      1000          0          1\n":           true, // not this user
		"         1     100000      65536\n0 1000 1\n": false,
		"": true,
	} {
		if mapsRoot(users) != root {
			t.Errorf("%q: want %v", users, root)
		}
	}
}

// A Ctrl-Z that hits a stage before it is the command, or a keeper, keeps nobody
// waiting.
func TestStoppedStageGoesOn(t *testing.T) {
	n := uint64(0)
	onEach(t, func(t *testing.T, _ string) {
		r := newReaper(t)
		for range 8 {
			started, stopping := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(stopping)
				stopStages(started)
			}()
			run, err := Stage{entered: true}.Start(r, Command{Path: "true", Limits: Limits{Core: &n}, Lifetime: LifetimeTree})
			close(started)
			<-stopping
			if err != nil {
				t.Fatal(err)
			}
			// Wakes a keeper that was stopped afterwards.
			if _, err := run.Processes(); err != nil {
				t.Fatal(err)
			}
			for ended := false; !ended; {
				select {
				case <-run.Exited():
					ended = true
				case <-run.Stopped():
					_ = run.Command().Signal(unix.SIGCONT)
				case <-time.After(patience):
					t.Fatal("it never ends")
				}
			}
			goneIn(t, run)
		}
	})
}

// stopStages stops every stage that this program or its keeper started, once,
// until over is closed. What is not yet a stage is left alone: whoever forked it
// is held up until it is (vfork(2)).
func stopStages(over <-chan struct{}) {
	hit := make(map[int]bool)
	stop := func(pid int, names ...string) {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if name, _, _ := strings.Cut(string(line), "\x00"); err == nil && slices.Contains(names, name) && !hit[pid] {
			hit[pid] = unix.Kill(pid, unix.SIGSTOP) == nil
		}
	}
	for {
		select {
		case <-over:
			return
		default:
		}
		for _, child := range childrenOf(os.Getpid()) {
			stop(child, proc.KeeperName, stageName)
			for _, grandchild := range childrenOf(child) {
				stop(grandchild, stageName)
			}
		}
	}
}

func childrenOf(pid int) (children []int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		text, _ := os.ReadFile(task)
		for field := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}

// A command that cannot be set up never runs, and the step is named; one that
// cannot be run is refused as without the stage.
func TestSetupFails(t *testing.T) {
	n := func(v uint64) *uint64 { return &v }
	marker := filepath.Join(t.TempDir(), "ran")
	c := Command{Path: "touch", Args: []string{marker}}
	onEach(t, func(t *testing.T, _ string) {
		r := newReaper(t)
		refused := func(c Command, want string) {
			t.Helper()
			_, err := Stage{entered: true}.Start(r, c)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
		if os.Geteuid() == 0 {
			c.Limits = Limits{Processes: n(5)}
			refused(c, "the limit nproc does not bind root")
		} else {
			c.Limits = Limits{OpenFiles: n(1 << 40)}
			refused(c, "setting the limit nofile to 1099511627776: operation not permitted")
		}
		limits := Limits{Core: n(0)}
		refused(Command{Path: "sh", Dir: "/nonexistent", Limits: limits}, `cannot run "sh": cannot start in "/nonexistent": no such file or directory`)
		text := filepath.Join(t.TempDir(), "text")
		if err := os.WriteFile(text, []byte("no program"), 0o755); err != nil {
			t.Fatal(err)
		}
		refused(Command{Path: text, Limits: limits}, "exec format error")
	})
	if _, err := os.Lstat(marker); err == nil {
		t.Error("the command ran")
	}
	if _, err := (Stage{}).Start(newReaper(t), Command{Path: "true", Limits: Limits{Core: n(0)}}); !errors.Is(err, ErrNoStage) {
		t.Errorf("without a stage: %v", err)
	}
}
