package proc

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The trees that are hard to end. Those that fork do so a bounded number of
// times; each says "ready" when it stands.
func TestTreeIsKilled(t *testing.T) {
	tests := []struct {
		name   string
		script string
		// atLeast is how many processes there are to be killed.
		atLeast int
	}{
		{"one process", `echo ready; exec sleep 1000`, 1},
		{"an obstinate family", `trap '' TERM INT HUP
			(trap '' TERM; (trap '' TERM; echo ready; sleep 1000); sleep 1000); sleep 1000`, 3},
		{"a grandchild in a session of its own", `(setsid sh -c 'echo ready; sleep 1000' &); sleep 1000`, 3},
		{"a command that has ended", `(setsid sleep 1000 </dev/null &); (setsid sleep 1000 &); echo ready`, 2},
		{"stopped processes", `sh -c 'echo ready; kill -STOP $$; sleep 1000' & wait`, 2},
		{"a hundred daemons", `i=0; while [ $i -lt 100 ]; do i=$((i+1)); (setsid sleep 1000 &); done; echo ready; sleep 1000`, 100},
		{"20 lineages that fork and exit", `
			hop() { [ $1 -gt 0 ] && { ( read x <"$2" || :; hop $(($1-1)) "$2" ) & }; }
			i=0; while [ $i -lt 20 ]; do i=$((i+1)); hop 900 /dev/null; done; echo ready; exec sleep 1000`, 1},
		{"20 lineages that fork and exit every few milliseconds", `
			hop() { [ $1 -gt 0 ] && { ( sleep 0.005; hop $(($1-1)) ) & }; }
			i=0; while [ $i -lt 20 ]; do i=$((i+1)); hop 500; done; echo ready; exec sleep 1000`, 1},
		{"8 lineages that fork all the time", `
			storm() { i=0; while [ $i -lt 1500 ]; do i=$((i+1)); ( : & ) & done; }
			i=0; while [ $i -lt 8 ]; do i=$((i+1)); ( j=$i; storm ) & done; echo ready; exec sleep 1000`, 1},
		{"8 lineages that fork all the time in sessions of their own", `
			i=0; while [ $i -lt 8 ]; do i=$((i+1)); (setsid sh -c '
				hop() { [ $1 -gt 0 ] && { ( hop $(($1-1)) ) & }; }; trap "" TERM; hop 900' &) done; echo ready; exec sleep 1000`, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := plant(t, tt.script)
			g.line(t)
			eventually(t, "the processes stand", func() bool {
				p, err := g.tree.Processes()
				return err == nil && len(p) >= tt.atLeast
			})
			killed := g.kill(t)
			if killed.Count < tt.atLeast {
				t.Errorf("killed %d, want at least %d", killed.Count, tt.atLeast)
			}
			if again := g.tree.Kill(patience); again.Count != 0 || !again.Proved {
				t.Errorf("killed again: %+v", again)
			}
			if g.tree.Terminate() != 0 {
				t.Error("something that is gone took SIGTERM")
			}
		})
	}
}

// Those that fork without an end are all stopped, and make no others.
func TestTreeIsFrozen(t *testing.T) {
	g := plant(t, `i=0; while [ $i -lt 8 ]; do i=$((i+1)); setsid sh -c 'j=0; while [ $j -lt 20000 ]; do j=$((j+1)); : & done' & done
		echo ready; exec sleep 1000`)
	g.line(t)
	processes, err := g.tree.Processes()
	if err != nil {
		t.Fatal(err)
	}
	if frozen, err := freeze(processes, g.tree.Processes); err != nil || len(frozen) == 0 {
		t.Fatalf("frozen are %v, %v", frozen, err)
	}
	eventually(t, "all that live are stopped", func() bool {
		processes, err := g.tree.Processes()
		return err == nil && len(processes) > 0 && !slices.ContainsFunc(processes, func(p Process) bool {
			return p.Alive() && !p.MayBeStopped()
		})
	})
	g.kill(t)
}

// Processes that stay are listed in the same order every time, which people read
// and whoever looks for news compares.
func TestListingsKeepTheirOrder(t *testing.T) {
	const siblings = `i=0; while [ $i -lt 20 ]; do i=$((i+1)); sleep 1000 & done; wait`
	compare := func(t *testing.T, list func() ([]Process, error)) {
		var first []Process
		eventually(t, "all are listed", func() bool {
			first, _ = list()
			return len(first) == 21
		})
		again, err := list()
		if !slices.Equal(idsOf(again), idsOf(first)) || err != nil {
			t.Errorf("listed are\n%v, then\n%v, %v", idsOf(first), idsOf(again), err)
		}
	}
	t.Run("a tree", func(t *testing.T) {
		g := plant(t, siblings)
		compare(t, g.tree.Processes)
		g.kill(t)
	})
	t.Run("an attached program", func(t *testing.T) {
		p, _ := attach(t, siblings)
		compare(t, p.Processes)
		p.Kill(patience)
	})
}

func TestTreeIsListed(t *testing.T) {
	g := plant(t, `(setsid sh -c 'echo $$; sleep 1000 & echo $!; wait' &) ; echo $$; wait; exec sleep 1000`)
	want := []int{number(t, g.line(t)), number(t, g.line(t)), number(t, g.line(t))}
	var got []Process
	eventually(t, "all are listed", func() bool {
		got, _ = g.tree.Processes()
		return len(got) == 3
	})
	for _, p := range got {
		if !slices.Contains(want, p.PID) {
			t.Errorf("lists %v, which is none of %v", p, want)
		}
		if id, err := Identify(p.PID); id != p.ID || err != nil {
			t.Errorf("%v has the identity %v, %v", p, id, err)
		}
		above := slices.IndexFunc(got, func(q Process) bool { return q.PID == p.Parent })
		if p.Parent != os.Getpid() && above >= slices.Index(got, p) {
			t.Errorf("%v stands before its parent", p)
		}
	}
	if g.tree.Command().PID != want[0] && !slices.Contains(want, g.tree.Command().PID) {
		t.Errorf("the command is %v", g.tree.Command())
	}
	g.kill(t)
}

func TestTreeIsTerminated(t *testing.T) {
	g := plant(t, `
		trap 'echo bye parent; exit 0' TERM
		sh -c 'trap "echo bye child; exit 0" TERM; echo ready; while :; do read x <&3; done' 3<"$1" &
		while :; do wait; done`, waitingFIFO(t))
	g.line(t)
	if n := g.tree.Terminate(); n != 2 {
		t.Errorf("%d processes took SIGTERM", n)
	}
	goneIn(t, g.tree)
	said := []string{g.line(t), g.line(t)}
	slices.Sort(said)
	if strings.Join(said, ",") != "bye child,bye parent" {
		t.Errorf("they said %q", said)
	}
	g.proveGone(t)
}

// A process that took SIGTERM and then SIGKILL is one process.
func TestKillTellsWhomTerminateHadReached(t *testing.T) {
	g := plant(t, `trap '' TERM; echo ready; while :; do read x <&3; done 3<"$1"`, waitingFIFO(t))
	g.line(t)
	if n := g.tree.Terminate(); n != 1 {
		t.Fatalf("%d processes took SIGTERM", n)
	}
	if killed := g.tree.Kill(patience); killed.Count != 1 || killed.Untold != 0 || !killed.Proved {
		t.Errorf("got %+v, want one that had been told", killed)
	}
	g.proveGone(t)
}

// waitingFIFO returns a FIFO that can be opened and has nothing to read.
func waitingFIFO(t *testing.T) string {
	t.Helper()
	name := t.TempDir() + "/fifo"
	if err := unix.Mkfifo(name, 0o644); err != nil {
		t.Fatal(err)
	}
	holder, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { holder.Close() })
	return name
}

// A stopped process acts on SIGTERM once it is continued.
func TestTreeThatIsStoppedIsTerminated(t *testing.T) {
	g := plant(t, `trap 'echo bye; exit 5' TERM; echo ready; kill -STOP $$; exit 6`)
	g.line(t)
	select {
	case sig := <-g.tree.Stopped():
		if sig != unix.SIGSTOP || !g.tree.Command().MayBeStopped() {
			t.Errorf("stopped by %v", sig)
		}
	case <-time.After(patience):
		t.Fatal("nobody was told that the command stopped")
	}
	if n := g.tree.Terminate(); n != 1 {
		t.Errorf("%d processes took SIGTERM", n)
	}
	if exit := exitIn(t, g.tree.Exited()); exit.Code != 5 {
		t.Errorf("ended with %v", exit)
	}
	goneIn(t, g.tree)
	g.proveGone(t)
}

// The command's end is not the tree's.
func TestTreeOutlivesItsCommand(t *testing.T) {
	g := plant(t, `(sleep 1000 &) ; exit 3`)
	if exit := exitIn(t, g.tree.Exited()); exit.Code != 3 {
		t.Errorf("ended with %v", exit)
	}
	if g.tree.isGone() {
		t.Fatal("gone while a process of it lives")
	}
	if killed := g.kill(t); killed.Count != 1 || killed.Untold != 1 {
		t.Errorf("got %+v", killed)
	}
}
