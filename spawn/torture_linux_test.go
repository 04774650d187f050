package spawn

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cage/internal/torture"
)

// repeatVariable is how often each run of the torture is done.
const repeatVariable = "CAGE_REPEAT"

// TestTorture ends runs that do all they can against it. Everything of a run
// holds a pipe: where nothing has it open any more, nothing lives.
func TestTorture(t *testing.T) {
	text := os.Getenv(repeatVariable)
	if text == "" {
		t.Skipf("its storms want the machine to themselves: set %s to the number of rounds", repeatVariable)
	}
	repeat := mustAtoi(t, text)
	for _, part := range torture.Parts() {
		for _, lifetime := range []Lifetime{LifetimeRun, LifetimeTree} {
			t.Run(fmt.Sprintf("%s, %v", part.Name, lifetime), func(t *testing.T) {
				onEach(t, func(t *testing.T, mechanism string) {
					var took []time.Duration
					for range repeat {
						took = append(took, endTorture(t, mechanism, lifetime, part))
					}
					slices.Sort(took)
					t.Logf("%d runs, ended in %v at the median, %v at the most", repeat, took[len(took)/2], took[len(took)-1])
				})
			})
		}
	}
}

// endTorture has a command begin a part, ends it when all of that is up, and
// returns how long the end took.
func endTorture(t *testing.T, mechanism string, lifetime Lifetime, part torture.Part) time.Duration {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	g := plantWith(t, mechanism, lifetime, `exec "$@"`, append([]string{self}, part.Args()...)...)
	defer g.reaper.Close()
	for range part.Count {
		if said := g.line(t); said != "up" {
			t.Fatalf("it said %q", said)
		}
	}
	began := time.Now()
	killed := g.Kill(patience)
	took := time.Since(began)
	if !killed.Proved || killed.Count < part.Count {
		t.Errorf("of %d the end took %+v", part.Count, killed)
	}
	if heldByAnybody(t, g.out) {
		t.Errorf("something survived: %+v", killed)
	}
	return took
}

// heldByAnybody reports whether anybody can still write into a pipe.
func heldByAnybody(t *testing.T, out *os.File) bool {
	t.Helper()
	conn, err := out.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	held := true
	if err := conn.Control(func(fd uintptr) {
		var rest [512]byte
		for {
			n, err := unix.Read(int(fd), rest[:])
			if err != unix.EINTR && n <= 0 {
				held = err != nil
				return
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	return held
}
