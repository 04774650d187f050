package spawn

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cage/internal/proc"
)

// opened is a run of its own whose output is read.
type opened struct {
	*Run
	lines *bufio.Reader
}

func openRun(t *testing.T, c Command) *opened {
	t.Helper()
	ours, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close() })
	defer theirs.Close()
	c.Stdout, c.Stderr = theirs, os.Stderr
	run, err := Stage{entered: true}.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { run.Close() })
	return &opened{run, bufio.NewReader(ours)}
}

func (o *opened) line(t *testing.T) string {
	t.Helper()
	line, err := o.lines.ReadString('\n')
	if err != nil {
		t.Fatalf("no line: %v", err)
	}
	return strings.TrimSuffix(line, "\n")
}

func (o *opened) rest(t *testing.T) string {
	t.Helper()
	rest, err := io.ReadAll(o.lines)
	if err != nil {
		t.Fatal(err)
	}
	return string(rest)
}

func script(text string) Command {
	return Command{Path: "sh", Args: []string{"-c", text}, Lifetime: LifetimeTree}
}

// The run ends with its handle, not with the command, and then nothing of it
// lives. The end of the output, which all of it hold, is the proof.
func TestRunEndsWithItsHandle(t *testing.T) {
	o := openRun(t, script(`(trap "" TERM HUP; while :; do sleep 0.05; done) & setsid sleep 1000 & echo $!; exit 3`))
	o.line(t)
	if exit := <-o.Exited(); exit.Code != 3 {
		t.Errorf("it ended by %v", exit)
	}
	left, err := o.Processes()
	if err != nil || len(left) == 0 {
		t.Errorf("the run has ended with its command: %v, %v", left, err)
	}
	for range 2 {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	}
	o.rest(t)
	select {
	case <-o.Gone():
	default:
		t.Error("nothing says that it is gone")
	}
}

// The defaults keep everything of the caller's to the caller.
func TestLibraryDefaults(t *testing.T) {
	t.Setenv("SPAWN_TEST_TOKEN", "secret")
	o := openRun(t, Command{Path: "sh", Args: []string{"-c", `
		tr '\0' '\n' </proc/self/environ | grep -c SPAWN
		setsid -f true 2>&1 | grep -c 'not permitted'
		ulimit -c`}})
	for _, want := range []string{"0", "1", "0"} {
		if got := o.line(t); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if !slices.Contains(o.DroppedEnv(), "SPAWN_TEST_TOKEN") {
		t.Errorf("dropped were %q", o.DroppedEnv())
	}
	if o.Mechanism() != Keeper {
		t.Errorf("it is held by a %s", o.Mechanism())
	}
}

// Open marks nothing of the program's, and nothing that it left open by mistake
// arrives, or is held open.
func TestOpenLeavesDescriptorsAlone(t *testing.T) {
	ours, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	const at = 250
	if err := unix.Dup2(int(theirs.Fd()), at); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	o := openRun(t, script(`for fd in /proc/$$/fd/*; do [ -e "$fd" ] && echo "${fd##*/}"; done; echo end; exec sleep 1000`))
	if got := []string{o.line(t), o.line(t), o.line(t), o.line(t)}; !slices.Equal(got, []string{"0", "1", "2", "end"}) {
		t.Errorf("open are %q", got)
	}
	if !Inherited(at) {
		t.Error("the program's own descriptor was marked")
	}
	unix.Close(at)
	if n, err := ours.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("somebody of the run holds it: %d, %v", n, err)
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
}

// What of its streams and descriptors the run has closed nobody else holds open.
func TestClosedStreamsEnd(t *testing.T) {
	reads, writes := pipe(t)
	typed, types := pipe(t)
	const at = 251
	more, err := unix.FcntlInt(writes.Fd(), unix.F_DUPFD_CLOEXEC, at)
	if err != nil {
		t.Fatal(err)
	}
	run, err := Stage{entered: true}.Open(Command{
		Path: "bash", Args: []string{"-c", fmt.Sprintf(`echo said; exec sleep 1000 <&- >&- 2>&- %d>&-`, more)},
		Stdin: typed, Stdout: writes, Stderr: writes, Descriptors: []int{more},
		Environment: Environment{Policy: Inherit},
	})
	unix.Close(more)
	writes.Close()
	typed.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if err := reads.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if said, err := io.ReadAll(reads); string(said) != "said\n" || err != nil {
		t.Errorf("read %q, %v", said, err)
	}
	eventually(t, "the writer hears that nobody reads", func() bool {
		_, err := types.Write([]byte{0})
		return errors.Is(err, unix.EPIPE)
	})
	if live, err := run.Processes(); len(live) != 1 || err != nil {
		t.Errorf("the run lives no more: %v, %v", live, err)
	}
}

// Runs stand beside each other and beside children of os/exec, and take none
// away.
func TestRunsBesideOthers(t *testing.T) {
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 5 {
				if out, err := exec.Command("sh", "-c", "exit 7").CombinedOutput(); err == nil || err.Error() != "exit status 7" {
					t.Errorf("os/exec: %v %s", err, out)
				}
			}
		})
		all.Go(func() {
			run, err := Stage{entered: true}.Open(script(`setsid sleep 1000 & exit 5`))
			if err != nil {
				t.Error(err)
				return
			}
			if exit := <-run.Exited(); exit.Code != 5 {
				t.Errorf("it ended by %v", exit)
			}
			if err := run.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestLeftRunIsLetGo(t *testing.T) {
	c := script(`setsid sleep 1000 & echo $!`)
	c.Lifetime = LifetimeLeave
	o := openRun(t, c)
	o.line(t)
	<-o.Exited()
	left, err := o.Processes()
	if err != nil || len(left) != 1 {
		t.Fatalf("left are %v, %v", left, err)
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
	if !left[0].Alive() {
		t.Error("it was ended")
	}
	if err := left[0].Signal(unix.SIGKILL); err != nil {
		t.Error(err)
	}
	o.rest(t)
}

func TestOpenRefuses(t *testing.T) {
	if _, err := (Stage{}).Open(Command{Path: "true"}); !errors.Is(err, ErrNoStage) {
		t.Errorf("without a stage: %v", err)
	}
	var refused *StartError
	if _, err := (Stage{entered: true}).Open(Command{Path: "no-such-tool"}); !errors.As(err, &refused) {
		t.Errorf("without a command: %v", err)
	}
}

// A command that stops its keeper is heard of all the same.
func TestStoppedKeeperGoesOn(t *testing.T) {
	o := openRun(t, script(`kill -STOP $PPID; exit 3`))
	select {
	case exit := <-o.Exited():
		if exit.Code != 3 {
			t.Errorf("it ended by %v", exit)
		}
	case <-time.After(patience):
		t.Error("no exit was delivered")
	}
	goneIn(t, o.Run)
	if err := o.Close(); err != nil {
		t.Errorf("closed with %v", err)
	}
}

// unkillable is a run of which something survives.
type unkillable struct{ Tree }

func (unkillable) Kill(time.Duration) proc.Killed {
	return proc.Killed{Survivors: []proc.Process{{ID: proc.ID{PID: 1}, Name: "survivor"}}}
}

// A keeper that stays with survivors is waited for when they have ended.
func TestKeeperStaysWithSurvivors(t *testing.T) {
	attendant, err := proc.NewBystander()
	if err != nil {
		t.Fatal(err)
	}
	typed, types := pipe(t)
	keeper, err := attendant.Attend(proc.Spec{Path: "/bin/cat", Args: []string{"cat"}, Files: []*os.File{typed}})
	typed.Close()
	if err != nil {
		t.Fatal(err)
	}
	lost := make(chan struct{})
	go func() {
		<-keeper.Exited()
		close(lost)
	}()
	run := Run{Tree: unkillable{}, attendant: attendant, lost: lost}
	var survivors *SurvivorsError
	if err := run.Close(); !errors.As(err, &survivors) || len(survivors.Survivors) != 1 {
		t.Errorf("closed with %v", err)
	}
	types.Close()
	select {
	case <-lost:
	case <-time.After(patience):
		t.Error("nobody waits for it")
	}
}

// A command may kill its keeper before that has told of it. It has run all the
// same, and what it started may live.
func TestKeeperIsKilledBeforeItTells(t *testing.T) {
	for range 20 {
		o := openRun(t, script(`kill -KILL $PPID; exec sleep 1000`))
		if exit := exitOf(t, o.Run); exit.Signal != unix.SIGKILL {
			t.Errorf("it ended by %v", exit)
		}
		var survivors *SurvivorsError
		if err := o.Close(); !errors.As(err, &survivors) {
			t.Errorf("closed with %v", err)
		}
		o.rest(t) // the command has died
	}
}

func TestRunWithoutKeeperIsInDoubt(t *testing.T) {
	o := openRun(t, script(`echo $PPID; exec sleep 1000`))
	keeper := o.line(t)
	if out, err := exec.Command("kill", "-KILL", keeper).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if exit := <-o.Exited(); exit.Signal != unix.SIGKILL {
		t.Errorf("it ended by %v", exit)
	}
	var survivors *SurvivorsError
	if err := o.Close(); !errors.As(err, &survivors) {
		t.Errorf("closed with %v", err)
	}
	o.rest(t)
}
