package session

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Promise: limits that somebody lowers are put back, and it is said once which.
func TestOwnLimitsArePutBack(t *testing.T) {
	own := noteOwnLimits()
	if lacks := own.putBack(); len(lacks) > 0 {
		t.Fatalf("nobody lowered anything: %v", lacks)
	}
	for _, l := range own.limits {
		switch l.resource {
		case unix.RLIMIT_AS, unix.RLIMIT_DATA, unix.RLIMIT_STACK, unix.RLIMIT_CPU:
			continue // the test could not go on
		}
		lower := unix.Rlimit{Cur: 1, Max: l.had.Max}
		if l.resource == unix.RLIMIT_NPROC {
			lower.Cur = l.least() - 1
		}
		t.Cleanup(func() { _ = setOwnLimit(l.resource, l.had) })
		if err := setOwnLimit(l.resource, lower); err != nil {
			t.Fatal(err)
		}
		lacks := own.putBack()
		if len(lacks) == 0 || !strings.Contains(lacks[len(lacks)-1].Reason, l.name) {
			t.Errorf("%s: it is told as %v", l.name, lacks)
		}
		var now unix.Rlimit
		if err := unix.Getrlimit(l.resource, &now); err != nil || now != l.had {
			t.Errorf("%s: the limit is %v, want %v (%v)", l.name, now, l.had, err)
		}
		if again := own.putBack(); len(again) != len(lacks) {
			t.Errorf("%s: it is told again", l.name)
		}
	}
}

// What whoever starts a command takes for a moment is nobody's attack.
func TestRoomForAKeeperIsNoAttack(t *testing.T) {
	l := ownLimit{resource: unix.RLIMIT_NPROC, had: unix.Rlimit{Cur: 100, Max: 200}}
	if l.least() != 75 {
		t.Errorf("the least is %d", l.least())
	}
}

// Promise: a hard limit that is lowered again and again is told once.
func TestLoweringAHardLimitAgainIsToldOnce(t *testing.T) {
	// No hard limit can be above that of the system, so putting it back fails.
	const tooMany = 1 << 40
	l := ownLimit{resource: unix.RLIMIT_NOFILE, name: "open files", had: unix.Rlimit{Cur: 1, Max: tooMany}}
	var now unix.Rlimit
	if err := unix.Getrlimit(l.resource, &now); err != nil {
		t.Fatal(err)
	}
	first := l.putBack(now)
	now.Max--
	if again := l.putBack(now); again != first || !strings.Contains(first.Reason, "hard limit of open files") {
		t.Errorf("told are %q and %q", first.Reason, again.Reason)
	}
}
