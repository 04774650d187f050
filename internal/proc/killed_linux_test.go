package proc

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Promise: a process that has taken SIGKILL is told from one that lives, from one
// that ended in another way, and from one that was waited for.
func TestKilled(t *testing.T) {
	for name, c := range map[string]struct {
		sig  unix.Signal
		want bool
	}{"killed": {unix.SIGKILL, true}, "terminated": {unix.SIGTERM, false}} {
		t.Run(name, func(t *testing.T) {
			pid := spawn(t, "/bin/sleep", "1000")
			id, err := Identify(pid)
			if err != nil {
				t.Fatal(err)
			}
			if id.Killed() {
				t.Error("it lives and counts as killed")
			}
			if err := id.Signal(c.sig); err != nil {
				t.Fatal(err)
			}
			eventually(t, "its end", func() bool { return !id.Alive() })
			if id.Killed() != c.want {
				t.Errorf("as a zombie it counts as killed: %t", id.Killed())
			}
			if other := (ID{PID: id.PID, Start: id.Start + 1}); other.Killed() {
				t.Error("so does another one of that number")
			}
			waitFor(t, pid)
			if id.Killed() {
				t.Error("waited for it counts as killed")
			}
		})
	}
}

func TestPendingSignal(t *testing.T) {
	for status, want := range map[string]bool{
		"Name:\tx\nSigPnd:\t0000000000000100\nShdPnd:\t0000000000000000\n":                  true,
		"SigPnd:\t0000000000000000\nShdPnd:\t0000000000004100\n":                            true,
		"SigPnd:\t0000000000004000\nShdPnd:\t0000000000000000\nSigIgn:\t0000000000000100\n": false,
		"": false,
	} {
		if got := pending(status, unix.SIGKILL); got != want {
			t.Errorf("%q: %t", status, got)
		}
	}
}
