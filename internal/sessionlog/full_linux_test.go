package sessionlog

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A write that is cut short, as a full disk does it, leaves no half a line
// behind. The limit on the size of files does the same to a process of its
// own, which must ignore SIGXFSZ (the Go runtime does).
func TestHalfALineIsTakenOff(t *testing.T) {
	const variable = "SESSIONLOG_TEST_FULL"
	if os.Getenv(variable) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestHalfALineIsTakenOff$", "-test.count=1", "-test.v")
		cmd.Env = append(os.Environ(), variable+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: TestHalfALineIsTakenOff") {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	l := open(t, maxBytes)
	l.Overflow()
	whole := len(lines(t, l.Path()))
	size, err := l.size()
	if err != nil {
		t.Fatal(err)
	}
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	short := unix.Rlimit{Cur: uint64(size) + 10, Max: old.Max}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &short); err != nil {
		t.Fatal(err)
	}
	l.Overflow()
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	if got := len(lines(t, l.Path())); got != whole {
		t.Errorf("%d lines, want %d", got, whole)
	}
	l.Overflow()
	if got := len(lines(t, l.Path())); got != whole+1 {
		t.Errorf("%d lines after the fault was over, want %d", got, whole+1)
	}
	if l.Close() == nil {
		t.Error("the fault never fired")
	}
}
