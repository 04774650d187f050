package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestExitIsDelivered(t *testing.T) {
	tests := []struct {
		script string
		want   Exit
		status int
	}{
		{"exit 0", Exit{}, 0},
		{"exit 7", Exit{Code: 7}, 7},
		{"exit 255", Exit{Code: 255}, 255},
		{"kill -SEGV $$", Exit{Signal: unix.SIGSEGV}, 139},
		{"kill -KILL $$", Exit{Signal: unix.SIGKILL}, 137},
	}
	for _, tt := range tests {
		g := plant(t, "ulimit -c 0; "+tt.script)
		got := exitIn(t, g.tree.Exited())
		if got != tt.want || got.Status() != tt.status {
			t.Errorf("%s: got %v, status %d", tt.script, got, got.Status())
		}
		goneIn(t, g.tree)
		g.proveGone(t)
		if err := g.reaper.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Children that end before they are registered, from everywhere at once.
func TestNoExitIsLost(t *testing.T) {
	r := newReaper(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 40 {
				code := (i*40 + j) % 256
				child, err := r.Attend(Spec{Path: "/bin/sh", Args: []string{"sh", "-c", fmt.Sprint("exit ", code)}})
				if err != nil {
					t.Error(err)
					return
				}
				if got := exitIn(t, child.Exited()); got != (Exit{Code: code}) {
					t.Errorf("got %v, want %d", got, code)
				}
				if err := child.Kill(); !errors.Is(err, ErrGone) {
					t.Errorf("killing what was waited for: %v", err)
				}
			}
		})
	}
	all.Wait()
}

// A program may wait for every child that it has, and take a bystander's with
// them: how that ended is lost then, not that it did.
func TestBystandersChildIsTakenAway(t *testing.T) {
	r, err := NewBystander()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	typed, types, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	child, err := r.Attend(Spec{Path: "/bin/sh", Args: []string{"sh", "-c", "read line; exit 7"}, Files: []*os.File{typed}})
	typed.Close()
	if err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	types.Close()
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(child.ID().PID, &status, 0, nil)
	r.mu.Unlock()
	if pid != child.ID().PID || status.ExitStatus() != 7 {
		t.Fatalf("it was not taken away: %d, %v, %v", pid, status, err)
	}
	if got := exitIn(t, child.Exited()); got != (Exit{Signal: unix.SIGKILL}) {
		t.Errorf("it ended by %v", got)
	}
	if err := child.Kill(); !errors.Is(err, ErrGone) {
		t.Errorf("killing it: %v", err)
	}
}

func TestStartRefuses(t *testing.T) {
	r := newReaper(t)
	dir := t.TempDir()
	text := dir + "/text"
	if err := os.WriteFile(text, []byte("no program"), 0o755); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{
		dir + "/absent": unix.ENOENT,
		dir:             unix.EACCES,
		text:            unix.ENOEXEC,
		"a\x00b":        unix.EINVAL,
	} {
		_, err := r.Start(Spec{Path: path, Args: []string{"x"}})
		var refused *fs.PathError
		if !errors.Is(err, want) || !errors.As(err, &refused) || refused.Path != path {
			t.Errorf("%q: got %v, want %v", path, err, want)
		}
	}
	// A refusal is no tree.
	tree, err := r.Start(shell("read forever <&3; exit 3", nil, nil, nil, pipeEnd(t)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Start(shell(":")); !errors.Is(err, errBusy) {
		t.Errorf("a second tree: %v", err)
	}
	if killed := tree.Kill(patience); !killed.Proved || killed.Count != 1 {
		t.Errorf("got %+v", killed)
	}
	// After its end there is room for another.
	tree, err = r.Start(shell("exit 4"))
	if err != nil {
		t.Fatal(err)
	}
	if got := exitIn(t, tree.Exited()); got.Code != 4 {
		t.Errorf("got %v", got)
	}
	goneIn(t, tree)
}

// pipeEnd returns the reading end of a pipe that is never written to.
func pipeEnd(t *testing.T) *os.File {
	t.Helper()
	reading, writing, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reading.Close(); writing.Close() })
	return reading
}

func TestClosedReaperRefuses(t *testing.T) {
	r := newReaper(t)
	for range 2 {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := r.Start(shell(":")); !errors.Is(err, errClosed) {
		t.Errorf("got %v", err)
	}
	var set int32
	if err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&set)), 0, 0, 0); err != nil || set != 0 {
		t.Errorf("still a subreaper: %d, %v", set, err)
	}
}

func TestCommandSharesSessionAndGroup(t *testing.T) {
	g := plant(t, `cat /proc/self/stat; pwd; printf '%s\n' "$PROC_TEST_MARK"`)
	s := strings.Fields(g.line(t))
	pgrp, _ := unix.Getpgid(0)
	sid, _ := unix.Getsid(0)
	if s[4] != fmt.Sprint(pgrp) || s[5] != fmt.Sprint(sid) {
		t.Errorf("process group %s and session %s, want %d and %d", s[4], s[5], pgrp, sid)
	}
	if dir, _ := os.Getwd(); g.line(t) != dir {
		t.Error("it starts in another directory")
	}
	if got := g.line(t); markVariable+"="+got != g.mark {
		t.Errorf("its environment has %q", got)
	}
	goneIn(t, g.tree)
}

func TestSpecIsKept(t *testing.T) {
	r := newReaper(t)
	ours, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	tree, err := r.Start(Spec{
		Path:  "/bin/sh",
		Args:  []string{"name", "-c", `printf '%s|%s|%s|%s' "$0" "$1" "$(pwd)" "$(env | grep -c .)"`, "zero", "one\nline"},
		Env:   []string{"A=1"},
		Dir:   "/",
		Files: []*os.File{nil, theirs, theirs},
	})
	theirs.Close()
	if err != nil {
		t.Fatal(err)
	}
	goneIn(t, tree)
	var text bytes.Buffer
	if _, err := text.ReadFrom(ours); err != nil {
		t.Fatal(err)
	}
	if got, want := text.String(), "zero|one\nline|/|2"; got != want { // A and the shell's PWD
		t.Errorf("got %q, want %q", got, want)
	}
}

// Signals that the caller ignores stay ignored, those that Go or a Reaper
// handle arrive as the system's default, and none is blocked.
func TestSignalDispositions(t *testing.T) {
	// A shell starts what runs in the background with some of them ignored.
	var inherited uint64
	for sig := syscall.Signal(1); sig < 32; sig++ {
		if signal.Ignored(sig) {
			inherited |= 1 << (sig - 1)
		}
	}
	for script, ignored := range map[string]uint64{
		`exec "$@"`:                          0,
		`trap '' HUP INT TSTP; exec "$@"`:    0x80003,
		`trap '' TTOU TTIN HUP; exec "$@"`:   0x300001,
		`trap 'echo no' TERM HUP; exec "$@"`: 0,
	} {
		_, out := play(t, "dispositions", script)
		got := strings.Join(strings.Fields(word(t, out)+" "+word(t, out)), " ")
		if want := fmt.Sprintf("SigBlk: %016x SigIgn: %016x", 0, ignored|inherited); got != want {
			t.Errorf("%s: got %s, want %s", script, got, want)
		}
	}
}

func TestCommandDiesWithItsReaper(t *testing.T) {
	pid, out := play(t, "holder", `exec "$@"`)
	command, err := Identify(number(t, word(t, out)))
	if err != nil {
		t.Fatal(err)
	}
	if !command.Alive() {
		t.Fatal("the command did not outlive the threads of its program")
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the command dies", func() bool { return !command.Alive() })
}

func TestForeignChildrenAreLeftAlone(t *testing.T) {
	// The shell becomes the role, and its children the role's.
	_, out := play(t, "foreigner", `sleep 1000 & echo $!; export `+foreignVariable+`=$!; exec "$@"`)
	foreign, err := Identify(number(t, word(t, out)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = foreign.Signal(unix.SIGKILL) })
	if got := word(t, out); got != "waited" {
		t.Error(got)
	}
}

func TestSurvivorsAreNamed(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs a process of another user")
	}
	_, out := play(t, "powerless", `exec "$@"`)
	command, err := Identify(number(t, word(t, out)))
	if err != nil {
		t.Fatal(err)
	}
	if got := word(t, out); got != "false 0 1 0" {
		t.Errorf("proved, killed, survivors, terminated: %s", got)
	}
	if got, want := word(t, out), fmt.Sprint(command.PID, " sleep"); got != want {
		t.Errorf("the survivor is %q, want %q", got, want)
	}
	if err := command.Signal(unix.SIGKILL); err != nil && !errors.Is(err, ErrGone) {
		t.Error(err)
	}
	eventually(t, "the command dies", func() bool { return !command.Alive() })
}

func helper(script string) Helper {
	return Helper{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: os.Environ(), MaxOutput: 1 << 20}
}

func TestRun(t *testing.T) {
	r := newReaper(t)
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<14) // four times what a pipe holds
	tests := []struct {
		name           string
		helper         Helper
		input          []byte
		stdout, stderr string
		exit           Exit
		err            error
	}{
		{name: "both streams", helper: helper("echo out; echo err >&2; exit 3"), stdout: "out\n", stderr: "err\n", exit: Exit{Code: 3}},
		{name: "input", helper: helper("cat"), input: big, stdout: string(big)},
		{name: "input that nobody reads", helper: helper("exec <&-; echo done"), input: big, stdout: "done\n"},
		{name: "no input", helper: helper("cat; echo end"), stdout: "end\n"},
		{name: "a signal", helper: helper("kill -TERM $$"), exit: Exit{Signal: unix.SIGTERM}},
		{name: "own session", helper: helper(`set -- $(cat /proc/self/stat); [ "$6" = $$ ] && echo yes`), stdout: "yes\n"},
		{name: "too much output", helper: Helper{Path: "/bin/sh", Args: []string{"sh", "-c", "printf 12345"}, MaxOutput: 4}, stdout: "1234", err: errOutput},
		{name: "exactly enough", helper: Helper{Path: "/bin/sh", Args: []string{"sh", "-c", "printf 1234"}, MaxOutput: 4}, stdout: "1234"},
		{name: "not there", helper: Helper{Path: "/nonexistent/git", Args: []string{"git"}}, err: fs.ErrNotExist},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.helper.Input = tt.input
			got, err := r.Run(t.Context(), tt.helper)
			if string(got.Stdout) != tt.stdout || string(got.Stderr) != tt.stderr || got.Exit != tt.exit || !errors.Is(err, tt.err) {
				t.Errorf("got %q, %q, %v, %v", got.Stdout, got.Stderr, got.Exit, err)
			}
		})
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	r := newReaper(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	pidFile := t.TempDir() + "/pid"
	cause := errors.New("enough")
	var pid int
	go func() {
		defer cancel(cause)
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			text, _ := os.ReadFile(pidFile)
			if _, err := fmt.Sscanf(string(text), "%d\n", &pid); err == nil {
				return
			}
		}
	}()
	h := helper(`trap '' TERM; echo $$ >"$1"; while :; do sleep 1000; done`)
	h.Args = append(h.Args, "sh", pidFile)
	h.Input = bytes.Repeat([]byte("x"), 1<<20)
	if _, err := r.Run(ctx, h); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
	// Dead and waited for; the sleep that it left counts as the tree's, and a
	// tree is what ends it.
	eventually(t, "the helper is gone", func() bool { _, err := Identify(pid); return errors.Is(err, ErrGone) })
	tree, err := r.Start(shell(":"))
	if err != nil {
		t.Fatal(err)
	}
	if killed := tree.Kill(patience); !killed.Proved {
		t.Errorf("got %+v", killed)
	}
}

// A process that a helper leaves behind holds its output open.
func TestRunDoesNotWaitForLeftovers(t *testing.T) {
	r := newReaper(t)
	got, err := r.Run(t.Context(), helper("sleep 1000 & echo out"))
	if string(got.Stdout) != "out\n" || err != nil {
		t.Errorf("got %q, %v", got.Stdout, err)
	}
	tree, err := r.Start(shell(":"))
	if err != nil {
		t.Fatal(err)
	}
	if killed := tree.Kill(patience); !killed.Proved || killed.Count == 0 {
		t.Errorf("got %+v", killed)
	}
}

// A helper runs on while the tree is listed, terminated and killed.
func TestHelperIsNoneOfTheTree(t *testing.T) {
	g := plant(t, "sleep 1000 & echo ready; wait")
	g.line(t)
	let := t.TempDir() + "/let"
	if err := unix.Mkfifo(let, 0o600); err != nil {
		t.Fatal(err)
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	child, err := g.reaper.Attend(Spec{
		Path:  "/bin/sh",
		Args:  []string{"sh", "-c", `sleep 1000 & echo up; read x <"$1"; kill $!; wait; exit 9`, "sh", let},
		Env:   os.Environ(),
		Files: []*os.File{nil, theirs, os.Stderr},
	})
	theirs.Close()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ours.Read(make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	processes, err := g.tree.Processes()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range processes {
		if p.ID == child.ID() || p.Parent == child.ID().PID {
			t.Errorf("the helper's %v is listed with the tree", p)
		}
	}
	g.tree.Terminate()
	killing := make(chan Killed, 1)
	go func() { killing <- g.tree.Kill(patience) }()
	eventually(t, "the tree dies", func() bool { return len(marked(g.mark)) == 0 })
	if !child.ID().Alive() {
		t.Error("the helper was killed with the tree")
	}
	door, err := os.OpenFile(let, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	door.Close()
	if exit := exitIn(t, child.Exited()); exit.Code != 9 {
		t.Errorf("the helper ended with %v", exit)
	}
	if killed := <-killing; !killed.Proved {
		t.Errorf("got %+v", killed)
	}
}

// TestAsOrdinaryUser runs this package's tests again without root's rights.
func TestAsOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("is the ordinary user")
	}
	dir := t.TempDir()
	for d := dir; d != "/tmp" && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	// Where this binary lies only root may look.
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	self := filepath.Join(dir, "proc.test")
	if err := os.WriteFile(self, program, 0o755); err != nil {
		t.Fatal(err)
	}
	again := exec.Command(self, "-test.run=Tree|Run|Exit|Identity|Refuses|Dispositions|Dies|Foreign", "-test.count=1")
	again.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	// What a failed test leaves behind holds the output open.
	again.WaitDelay = patience
	again.Env = append(os.Environ(), "TMPDIR="+dir)
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
