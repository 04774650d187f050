package proc

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// attach starts a shell outside of any Reaper, as a program that already runs,
// and attaches to it. The end of the test finds nothing left of it.
func attach(t *testing.T, script string) (p Program, ended func() syscall.WaitStatus) {
	t.Helper()
	mark := marker(t)
	pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", script}, &syscall.ProcAttr{Env: append(os.Environ(), mark)})
	if err != nil {
		t.Fatal(err)
	}
	waited := false
	ended = func() syscall.WaitStatus {
		waited = true
		return waitFor(t, pid)
	}
	t.Cleanup(func() {
		for _, id := range marked(mark) { // a Kill that failed was told of by then
			_ = id.Signal(unix.SIGKILL)
		}
		if !waited {
			waitFor(t, pid)
		}
	})
	if p, err = Attach(pid); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	if got := p.Process(); got.PID != pid || got.Start == 0 || got.Parent != os.Getpid() {
		t.Errorf("attached to %+v", got)
	}
	return p, ended
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestAttachedProgramIsKilledWithItsTree(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		// stands is how many processes there are once it stands.
		stands int
	}{
		{"one process", `exec sleep 1000`, 1},
		{"an obstinate family", `trap '' TERM; (trap '' TERM; (trap '' TERM; sleep 1000; :); :) & wait; sleep 1000`, 4},
		{"a grandchild in a session of its own", `setsid sh -c 'sleep 1000; :' & wait`, 3},
		{"stopped processes", `sh -c 'kill -STOP $$; sleep 1000' & wait`, 2},
		{"a hundred children", `i=0; while [ $i -lt 100 ]; do i=$((i+1)); sleep 1000 & done; wait`, 101},
		{"children that are born all the time", `i=0; while [ $i -lt 3000 ]; do i=$((i+1)); sleep 0.01 & done; exec sleep 1000`, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, ended := attach(t, tt.script)
			eventually(t, "the processes stand", func() bool {
				processes, err := p.Processes()
				return err == nil && len(processes) >= tt.stands && processes[0].ID == p.Process().ID
			})
			if closed(p.Exited()) || closed(p.Gone()) {
				t.Error("it has ended before anybody ended it")
			}
			killed := p.Kill(patience)
			if !killed.Proved || killed.Count < tt.stands || killed.Untold != killed.Count || len(killed.Survivors) > 0 {
				t.Errorf("killed: %+v", killed)
			}
			if !closed(p.Gone()) {
				t.Error("nothing is left, and it is not gone")
			}
			if status := ended(); !status.Signaled() || status.Signal() != unix.SIGKILL {
				t.Errorf("it ended with %v", exitOf(status))
			}
			eventually(t, "the exit is told", func() bool { return closed(p.Exited()) })
			if left, err := p.Processes(); len(left) > 0 || err != nil {
				t.Errorf("listed are %v, %v", left, err)
			}
		})
	}
}

// Whoever was listed while its parent lived is followed afterwards, also as
// the parent of others.
func TestAttachedProgramIsFollowedAfterItsParentsHaveEnded(t *testing.T) {
	name := t.TempDir() + "/fifo"
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	// Open for both, so that no reader ever sees its end: who waits for what has
	// ended goes on to wait.
	fifo, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer fifo.Close()
	t.Setenv("FIFO", name)
	p, ended := attach(t, `sh -c 'setsid sh -c "read x <\$FIFO; sleep 1000; read x <\$FIFO" & read x <$FIFO' & read x <$FIFO`)
	count := func(n int) {
		t.Helper()
		eventually(t, "the listing is as long as that", func() bool {
			processes, err := p.Processes()
			return err == nil && len(processes) == n
		})
	}
	count(3)
	if _, err := fifo.WriteString("\n\n\n"); err != nil { // a line for each that waits
		t.Fatal(err)
	}
	ended()
	eventually(t, "the exit is told", func() bool { return closed(p.Exited()) })
	eventually(t, "only the one in a session of its own and what it started later are listed", func() bool {
		processes, err := p.Processes()
		return err == nil && len(processes) == 2 &&
			slices.ContainsFunc(processes, func(p Process) bool { return p.Name == "sleep" })
	})
	if told := p.Terminate(); told != 2 {
		t.Errorf("%d were told to end", told)
	}
	select {
	case <-p.Gone():
	case <-time.After(patience):
		t.Error("it is never gone")
	}
	if killed := p.Kill(patience); killed.Count != 0 || !killed.Proved {
		t.Errorf("killed: %+v", killed)
	}
}

func TestAttachRefuses(t *testing.T) {
	gone := spawn(t, "/bin/true")
	waitFor(t, gone)
	zombie := spawn(t, "/bin/true")
	defer waitFor(t, zombie)
	if id, err := Identify(zombie); err == nil {
		eventually(t, "it is a zombie", func() bool { return !id.Alive() })
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	another := make(chan int)
	done := make(chan struct{})
	defer close(done)
	go func() {
		runtime.LockOSThread() // while the first thread, or another, is locked above
		another <- unix.Gettid()
		<-done
	}()
	thread := <-another
	if thread == os.Getpid() {
		thread = unix.Gettid()
	}
	for _, tt := range []struct {
		name string
		pid  int
		want error
	}{
		{"one that is gone", gone, ErrGone},
		{"a zombie", zombie, ErrGone},
		{"a thread", thread, ErrThread},
		{"this program", os.Getpid(), ErrAncestor},
		{"its parent", os.Getppid(), ErrAncestor},
	} {
		if _, err := Attach(tt.pid); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
	}
}

func TestAttachedProgramOutlivesItsClose(t *testing.T) {
	pid := spawn(t, "/bin/sleep", "1000")
	p, err := Attach(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if !p.Process().Alive() || closed(p.Exited()) {
		t.Error("it has ended")
	}
	if err := p.Process().Signal(unix.SIGKILL); err != nil {
		t.Error(err)
	}
	waitFor(t, pid)
}
