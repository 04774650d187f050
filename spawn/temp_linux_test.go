package spawn

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A run's own temporary directory is there for the command, and gone with the
// run.
func TestPrivateTmp(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	reads, writes := pipe(t)
	run, err := Stage{entered: true}.Open(Command{
		Path: "sh", Args: []string{"-c", `echo "$TMPDIR"; mkdir -p "$TMPDIR/a/b"; chmod 0 "$TMPDIR/a"; exec sleep 1000`}, Stdout: writes,
		Env: os.Environ(), PrivateTmp: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	var told [4096]byte
	n, err := reads.Read(told[:])
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(string(told[:n])); got != run.PrivateTmp() || !strings.HasPrefix(got, os.TempDir()+"/") {
		t.Errorf("the command has %q, the run %q", got, run.PrivateTmp())
	}
	if err := run.Close(); err != nil {
		t.Error(err)
	}
	wantNothing := func() {
		t.Helper()
		if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
			t.Errorf("left are %v, %v", left, err)
		}
	}
	wantNothing()
	if _, err := (Stage{entered: true}).Open(Command{Path: "/nonexistent", PrivateTmp: true}); err == nil {
		t.Error("started")
	}
	if _, err := (Stage{entered: true}).Open(Command{Path: "sh", Dir: "/nonexistent", PrivateTmp: true}); err == nil {
		t.Error("started")
	}
	wantNothing()
	var refused *StartError
	if _, err := (Stage{entered: true}).Open(Command{Path: "sh", Lifetime: LifetimeLeave, PrivateTmp: true}); !errors.As(err, &refused) {
		t.Errorf("got %v", err)
	}
}

// Promise: the directory is found by a command that starts elsewhere.
func TestPrivateTmpIsAbsolute(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("TMPDIR", ".")
	run, err := Stage{entered: true}.Open(Command{
		Path: "sh", Args: []string{"-c", `[ -d "$TMPDIR" ]`}, Dir: "/", Env: os.Environ(), PrivateTmp: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := exitOf(t, run); got.Code != 0 {
		t.Errorf("the command does not find %s", run.PrivateTmp())
	}
	if err := run.Close(); err != nil {
		t.Error(err)
	}
}

// Promise: a program that is killed leaves no temporary directory of a run, also
// where it has not let the command begin yet.
func TestPrivateTmpOfAKilledProgram(t *testing.T) {
	for _, at := range []string{Keeper, heldThere} {
		t.Run(at, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			t.Setenv(privateVariable, "1")
			if at == heldThere {
				t.Setenv(heldVariable, heldThere)
			}
			pid, out := play(t, "sleep 1000 & echo foreign $!; exec "+copyOfThisBinary(t), nil)
			left := func() int {
				entries, err := os.ReadDir(os.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				return len(entries)
			}
			foreign := 0
			for {
				line, err := out.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				fmt.Sscanf(line, "foreign %d", &foreign)
				if strings.HasPrefix(line, at+" ") {
					break
				}
			}
			t.Cleanup(func() { unix.Kill(foreign, unix.SIGKILL) })
			if left() != 1 {
				t.Errorf("there are %d directories", left())
			}
			if err := unix.Kill(pid, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			eventually(t, "an empty directory", func() bool { return left() == 0 })
		})
	}
}
