package proc

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// limitProcesses sets the limit for this test.
func limitProcesses(t *testing.T, soft uint64) {
	t.Helper()
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &before); err != nil {
		t.Fatal(err)
	}
	if soft > before.Max {
		t.Skipf("the limit is %d", before.Max)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: soft, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Setrlimit(unix.RLIMIT_NPROC, &before); err != nil {
			t.Error(err)
		}
	})
}

func processLimit(t *testing.T) uint64 {
	t.Helper()
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &now); err != nil {
		t.Fatal(err)
	}
	return now.Cur
}

// A command that goes to its limit leaves room to its keeper, which keeps its own.
func TestCommandLeavesRoom(t *testing.T) {
	const limit = 4000
	limitProcesses(t, limit)
	g := plant(t, `cat /proc/self/limits | { while read a b c d e; do [ "$a $b" = 'Max processes' ] && echo $c; done; }`)
	if got, want := g.line(t), fmt.Sprint(limit-room(limit)); got != want {
		t.Errorf("the command is held to %s processes, want %s", got, want)
	}
	if got := processLimit(t); got != limit {
		t.Errorf("its keeper is held to %d", got)
	}
	goneIn(t, g.tree)
}

func TestCommandStartsWithoutRoom(t *testing.T) {
	const limit = 4000
	limitProcesses(t, limit)
	for _, tt := range []struct {
		name    string
		answers []error
		limits  []uint64
	}{
		{"room", []error{nil}, []uint64{limit - room(limit)}},
		{"no room", []error{unix.EAGAIN, nil}, []uint64{limit - room(limit), limit}},
		{"not even that", []error{unix.EAGAIN, unix.EAGAIN}, []uint64{limit - room(limit), limit}},
		{"another error", []error{unix.ENOENT}, []uint64{limit - room(limit)}},
	} {
		var limits []uint64
		_, err := leavingRoom(func() (int, error) {
			limits = append(limits, processLimit(t))
			return 1, tt.answers[len(limits)-1]
		})
		if fmt.Sprint(limits) != fmt.Sprint(tt.limits) || err != tt.answers[len(tt.answers)-1] {
			t.Errorf("%s: forked under %d, %v", tt.name, limits, err)
		}
		if got := processLimit(t); got != limit {
			t.Errorf("%s: left is %d", tt.name, got)
		}
	}
}

func TestRoomLeavesMost(t *testing.T) {
	for _, limit := range []uint64{0, 1, 10, 120, 4000} {
		if room(limit) > limit/4 {
			t.Errorf("of %d it takes %d", limit, room(limit))
		}
	}
}
