package proc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const tail = " S 7 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 987654321 1 2 3\n"

func TestParseStat(t *testing.T) {
	tests := []struct {
		line string
		want stat
		ok   bool
	}{
		{"42 (sleep)" + tail, stat{42, 7, "sleep", 'S', 3, 987654321}, true},
		{"42 ()" + tail, stat{42, 7, "", 'S', 3, 987654321}, true},
		{"42 (a) R 1 1 (b)" + tail, stat{42, 7, "a) R 1 1 (b", 'S', 3, 987654321}, true},
		{"42 (new\nline )( )" + tail, stat{42, 7, "new\nline )( ", 'S', 3, 987654321}, true},
		{"42 (\xff\x00)" + tail, stat{42, 7, "\xff\x00", 'S', 3, 987654321}, true},
		{"", stat{}, false},
		{"42", stat{}, false},
		{"42 (sleep", stat{}, false},
		{") (", stat{}, false},
		{"42 (sleep) S 7 1", stat{}, false},
		{"x (sleep)" + tail, stat{}, false},
		{"42 (sleep)" + strings.Replace(tail, " S 7 ", " S x ", 1), stat{}, false},
		{"42 (sleep)" + strings.Replace(tail, "987654321", "-1", 1), stat{}, false},
		{"42 (sleep)" + strings.Replace(tail, " S ", " SS ", 1), stat{}, false},
	}
	for _, tt := range tests {
		got, err := parseStat([]byte(tt.line))
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("%q: got %+v, %v; want %+v, ok %v", tt.line, got, err, tt.want, tt.ok)
		}
	}
}

// Whatever a process calls itself, the rest of its line is read right.
func FuzzParseStatName(f *testing.F) {
	for _, name := range []string{"sleep", ")", "(", ") S 1 2 3", "\n", "\xff"} {
		f.Add([]byte(name))
	}
	f.Fuzz(func(t *testing.T, name []byte) {
		got, err := parseStat(fmt.Appendf(nil, "42 (%s)%s", name, tail))
		if want := (stat{42, 7, string(name), 'S', 3, 987654321}); err != nil || got != want {
			t.Fatalf("got %+v, %v", got, err)
		}
		_, _ = parseStat(name)
	})
}

// spawn starts a process outside of any Reaper.
func spawn(t *testing.T, path string, args ...string) int {
	t.Helper()
	pid, err := syscall.ForkExec(path, append([]string{filepath.Base(path)}, args...), &syscall.ProcAttr{Env: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func waitFor(t *testing.T, pid int) syscall.WaitStatus {
	t.Helper()
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(pid, &status, 0, nil)
		if err == nil {
			return status
		}
		if !errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
	}
}

func TestIdentity(t *testing.T) {
	pid := spawn(t, "/bin/sleep", "1000")
	id, err := Identify(pid)
	if err != nil || id.PID != pid || id.Start == 0 {
		t.Fatalf("got %+v, %v", id, err)
	}
	if again, err := Identify(pid); again != id || err != nil {
		t.Errorf("a second look gave %+v, %v", again, err)
	}
	if !id.Alive() {
		t.Error("a sleeping process is not alive")
	}
	// What a reused number looks like: same number, another start.
	earlier := ID{PID: pid, Start: id.Start - 1}
	if earlier.Alive() {
		t.Error("the earlier owner of the number is alive")
	}
	if err := earlier.Signal(unix.SIGKILL); !errors.Is(err, ErrGone) {
		t.Errorf("signalling the earlier owner: %v", err)
	}
	if err := earlier.signalByNumber(unix.SIGKILL); !errors.Is(err, ErrGone) {
		t.Errorf("signalling the earlier owner by number: %v", err)
	}
	if !id.Alive() {
		t.Fatal("the later owner of the number was hit")
	}
	if err := id.Signal(0); err != nil {
		t.Errorf("asking with signal 0: %v", err)
	}
	if err := id.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the process becomes a zombie", func() bool { return !id.Alive() })
	if zombie, err := Identify(pid); zombie != id || err != nil {
		t.Errorf("the zombie is %+v, %v", zombie, err)
	}
	if err := id.Signal(unix.SIGTERM); !errors.Is(err, ErrGone) {
		t.Errorf("signalling the zombie: %v", err)
	}
	if status := waitFor(t, pid); status.Signal() != unix.SIGTERM {
		t.Errorf("it ended by %v", status.Signal())
	}
	if _, err := Identify(pid); !errors.Is(err, ErrGone) {
		t.Errorf("identifying nobody: %v", err)
	}
	if id.Alive() {
		t.Error("nobody is alive")
	}
	if err := id.Signal(unix.SIGTERM); !errors.Is(err, ErrGone) {
		t.Errorf("signalling nobody: %v", err)
	}
}

func TestSignalByNumber(t *testing.T) {
	pid := spawn(t, "/bin/sleep", "1000")
	id, err := Identify(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := id.signalByNumber(unix.SIGTERM); err != nil {
		t.Error(err)
	}
	waitFor(t, pid)
}

func TestNameOfARealProcess(t *testing.T) {
	const name = "a) S 1 (\n\xff )"
	program := filepath.Join(t.TempDir(), name)
	sleep, err := os.ReadFile("/bin/sleep")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, sleep, 0o755); err != nil {
		t.Fatal(err)
	}
	pid := spawn(t, program, "1000")
	s, err := readStat(pid)
	if err != nil || s.name != name || s.parent != os.Getpid() || s.pid != pid || !s.live() {
		t.Errorf("got %+v, %v", s, err)
	}
	if err := (ID{PID: pid, Start: s.start}).Signal(unix.SIGKILL); err != nil {
		t.Error(err)
	}
	waitFor(t, pid)
}

// A process whose first thread has ended shows the state of a zombie and runs.
func TestHeadlessProcessIsAlive(t *testing.T) {
	pid, out := play(t, "headless", `exec "$@"`)
	if got := word(t, out); got != "headless" {
		t.Fatal(got)
	}
	s, err := readStat(pid)
	if err != nil || s.state != 'Z' {
		t.Fatalf("the first thread still runs: %+v, %v", s, err)
	}
	id := ID{PID: pid, Start: s.start}
	if !id.Alive() {
		t.Error("not alive")
	}
	if err := id.Signal(unix.SIGKILL); err != nil {
		t.Error(err)
	}
	eventually(t, "the process ends", func() bool { return !id.Alive() })
}

func TestSelf(t *testing.T) {
	id, err := Self()
	if err != nil || id.PID != os.Getpid() || !id.Alive() {
		t.Errorf("got %+v, %v", id, err)
	}
}

func TestLimitsAreEmptyWherePidfdsWork(t *testing.T) {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err == nil {
		unix.Close(fd)
	}
	if limits := Limits(); (len(limits) == 0) != (err == nil) {
		t.Errorf("pidfd_open says %v, and the limits are %q", err, limits)
	}
}
