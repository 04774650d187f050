package scope

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cage/internal/proc"
)

// These tests need a machine of their own with systemd and cgroup version 2:
// test/guest/run starts one and says in this variable as whom they run.
const guestVariable = "CAGE_GUEST"

// guest skips elsewhere and returns how groups are made there: a user has a
// service manager, and root has none.
func guest(t *testing.T) Mode {
	switch os.Getenv(guestVariable) {
	case "user":
		return Scope
	case "root":
		return Cgroup
	default:
		t.Skip("needs the guest of test/guest/run")
		return ""
	}
}

func guestOf(t *testing.T, mode Mode) {
	if guest(t) != mode {
		t.Skipf("not about mode %s", guest(t))
	}
}

// held is a shell that waits until it is let go and then runs a script.
type held struct {
	*exec.Cmd
	stdin  io.WriteCloser
	output bytes.Buffer
}

func hold(t *testing.T, script string) *held {
	t.Helper()
	h := &held{Cmd: exec.Command("/bin/sh", "-c", `read go && exec /bin/sh -c "$0"`, script)}
	var err error
	if h.stdin, err = h.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	h.Stdout, h.Stderr = &h.output, &h.output
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.stdin.Close()
		h.Process.Kill()
		h.Wait()
	})
	return h
}

func (h *held) id(t *testing.T) proc.ID {
	t.Helper()
	id, err := proc.Identify(h.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// still is a process that can only be placed where it is.
type still struct{ proc.ID }

func (s still) Process() proc.ID { return s.ID }

func (still) Through([]string, []string, time.Duration) ([]byte, error) {
	return nil, errors.New("it stays where it is")
}

func (h *held) still(t *testing.T) Held { return still{h.id(t)} }

// here is the host of the tests.
func here() Host { return Host{Env: os.Environ()} }

func (h *held) letGo() { io.WriteString(h.stdin, "go\n") }

func prepared(t *testing.T, id string, limits Limits) *Plan {
	t.Helper()
	plan, err := Prepare(t.Context(), Request{ID: id, Limits: limits, Host: here()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(plan.Close)
	return plan
}

// placed is a held shell in a group of its own, which goes with the test.
func placed(t *testing.T, id string, limits Limits, script string) (*Group, *held) {
	t.Helper()
	h := hold(t, script)
	g, err := prepared(t, id, limits).Place(t.Context(), h.still(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Kill() })
	return g, h
}

func ended(t *testing.T, g *Group) Usage {
	t.Helper()
	usage, err := g.End(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(g.folder(g.path)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the group %s is still there: %v", g.path, err)
	}
	return usage
}

// hog takes so many mebibytes at once, and touches them.
func hog(mebibytes int) string {
	return fmt.Sprintf(`perl -e '$x = "a" x (%d << 20); print length $x'`, mebibytes)
}

// Promise: a child that takes more memory than the group may have is killed,
// swap or not, and nobody else is named; what started it goes on.
func TestGuestRunawayChild(t *testing.T) {
	mode := guest(t)
	g, h := placed(t, "runaway", Limits{Memory: Bytes(128 << 20), Tasks: 40}, hog(300)+"; echo child $?; sleep 0.2; exit 3")
	if g.Mode() != mode {
		t.Errorf("the mode is %s, want %s", g.Mode(), mode)
	}
	for file, want := range map[string]string{"memory.max": "134217728", "memory.swap.max": "0", "pids.max": "40"} {
		if got, err := g.read(g.path, file); got != want || g.Controls()[file] != want {
			t.Errorf("%s holds %q, %v; want %s", file, got, err, want)
		}
	}
	pid := h.Process.Pid
	h.letGo()
	h.Wait()
	if code := h.ProcessState.ExitCode(); code != 3 || !strings.Contains(h.output.String(), "child 137") {
		t.Errorf("process %d ended with %d and said %q", pid, code, h.output.String())
	}
	usage := ended(t, g)
	if usage.Kills != 1 || usage.Limit != Own || len(usage.Killed) > 1 {
		t.Errorf("what happened: %+v", usage)
	}
	// Who it was is known where that was seen in time, and then for certain.
	for _, p := range usage.Killed {
		if p.Name != "perl" {
			t.Errorf("named is %q", p.Name)
		}
	}
	if _, err := os.Stat("/sys/fs/cgroup/init.scope/memory.peak"); err == nil && (usage.Peak == nil || *usage.Peak < 64<<20 || *usage.Peak > 128<<20) {
		t.Errorf("the peak is %v", usage.Peak)
	}
}

// Promise: a fork bomb ends at the limit of tasks, and everything of it, deaf to
// SIGTERM and in sessions of its own, ends with the group.
func TestGuestForkBomb(t *testing.T) {
	guest(t)
	g, h := placed(t, "bomb", Limits{Tasks: 20}, `trap "" TERM; for i in $(seq 30); do setsid sleep 600 & done; sleep 600`)
	h.letGo()
	eventually(t, "a refused fork", func() bool {
		text, _ := g.read(g.path, "pids.events")
		return counter(text, "max") > 0
	})
	members := g.members(g.path)
	usage := ended(t, g)
	h.Wait()
	if usage.Refused == 0 || len(members) < 10 {
		t.Errorf("%d processes, what happened: %+v", len(members), usage)
	}
	for _, id := range members {
		if id.Alive() && id.PID != h.Process.Pid {
			t.Errorf("process %d has survived", id.PID)
		}
	}
}

// Promise: two groups at once have limits of their own, and the end of one is not
// that of the other.
func TestGuestTwoAtOnce(t *testing.T) {
	guest(t)
	a, ha := placed(t, "same", Limits{Memory: Bytes(24 << 20)}, hog(60)+"; echo a $?")
	b, hb := placed(t, "same", Limits{Memory: Bytes(80 << 20)}, "read x; echo b")
	if a.Path() == b.Path() {
		t.Fatalf("both are in %s", a.Path())
	}
	ha.letGo()
	ha.Wait()
	usage := ended(t, a)
	if usage.Kills == 0 || !strings.Contains(ha.output.String(), "a 137") {
		t.Errorf("the first: %+v, %q", usage, ha.output.String())
	}
	hb.letGo()
	io.WriteString(hb.stdin, "x\n")
	hb.Wait()
	if usage := ended(t, b); usage.Kills != 0 || usage.Limit != "" || !strings.Contains(hb.output.String(), "b") {
		t.Errorf("the second: %+v, %q", usage, hb.output.String())
	}
}

// Promise: who was killed is counted also where the service manager removed the
// group before anybody looked.
func TestGuestNobodyLooked(t *testing.T) {
	guestOf(t, Scope)
	g, h := placed(t, "unseen", Limits{Memory: Bytes(24 << 20)}, hog(60)+"; echo child $?")
	g.events.mu.Lock()
	h.letGo()
	h.Wait()
	gone := g.vanishesWithin(10 * time.Second)
	g.events.mu.Unlock()
	if !gone {
		t.Fatal("nobody removes the empty group")
	}
	if usage := ended(t, g); usage.Kills != 1 || usage.Limit != Own {
		t.Errorf("what happened: %+v, %q", usage, h.output.String())
	}
}

// Promise: where a group above ran out of memory, it is that one which is named.
func TestGuestLimitAbove(t *testing.T) {
	guestOf(t, Scope)
	g, h := placed(t, "above", Limits{Memory: Bytes(64 << 20)}, hog(50)+"; echo child $?; sleep 0.2")
	limitSlice(t, "24M")
	h.letGo()
	h.Wait()
	usage := ended(t, g)
	if usage.Kills != 1 || usage.Limit != Above || filepath.Base(usage.Group) != sessionsSlice {
		t.Errorf("what happened: %+v, %q", usage, h.output.String())
	}
}

// limitSlice bounds all sessions together, as a person would.
func limitSlice(t *testing.T, limit string) {
	t.Helper()
	set := func(to string) {
		for _, property := range []string{"MemoryMax=" + to, "MemorySwapMax=0"} {
			if out, err := exec.Command("systemctl", "--user", "set-property", "--runtime", sessionsSlice, property).CombinedOutput(); err != nil {
				t.Fatalf("systemctl: %v, %s", err, out)
			}
		}
	}
	t.Cleanup(func() { set("infinity") })
	set(limit)
}

// Promise: what a group is said to have is never more than what a group above
// it allows, also where that does not exist yet.
func TestGuestCeiling(t *testing.T) {
	guestOf(t, Scope)
	limitSlice(t, "1G")
	for text, want := range map[string]uint64{"auto": 1 << 30, "2G": 1 << 30, "512M": 512 << 20} {
		memory, err := ParseMemory(text)
		if err != nil {
			t.Fatal(err)
		}
		plan := prepared(t, "ceiling", Limits{Memory: memory})
		// The machine itself may have less.
		if got := *plan.bounds.MemoryMax; got > want || got < min(want, 512<<20) {
			t.Errorf("%s comes to %d, want %d", text, got, want)
		}
	}
}

// Promise: a name that a failed scope holds keeps nobody from starting.
func TestGuestNameIsTaken(t *testing.T) {
	guestOf(t, Scope)
	first := hold(t, hog(60))
	plan := prepared(t, "taken", Limits{Memory: Bytes(24 << 20)})
	n := plan.name
	if err := plan.manager.transport.start(t.Context(), n.unit(), first.still(t), plan.bounds); err != nil {
		t.Fatal(err)
	}
	second := hold(t, "true")
	g, err := plan.Place(t.Context(), second.still(t))
	if err != nil {
		t.Fatal(err)
	}
	if n.attempt = 2; g.Name() != n.unit() {
		t.Errorf("the second is called %s", g.Name())
	}
	ended(t, g)
	first.letGo()
	first.Wait()
	third := hold(t, "true")
	g, err = plan.Place(t.Context(), third.still(t))
	if err != nil {
		t.Fatal(err)
	}
	ended(t, g)
	// Leave no failed unit behind.
	n.attempt = 1
	if _, err := plan.manager.settled(t.Context(), n.unit()); err != nil {
		t.Error(err)
	}
}

// Promise: a group whose cage is dead is swept with everything in it, and that
// of one that lives stays.
func TestGuestSweep(t *testing.T) {
	guest(t)
	gone := exec.Command("true")
	if err := gone.Start(); err != nil {
		t.Fatal(err)
	}
	dead, err := proc.Identify(gone.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	gone.Wait()
	orphan := hold(t, `trap "" TERM; sleep 600`)
	plan := prepared(t, "orphan", Limits{})
	plan.name.owner.ID = dead
	left, err := plan.Place(t.Context(), orphan.still(t))
	if err != nil {
		t.Fatal(err)
	}
	orphan.letGo()
	mine, h := placed(t, "mine", Limits{}, "sleep 600")
	h.letGo()
	list, err := List(t.Context(), here())
	if err != nil || len(list) != 2 {
		t.Errorf("the list: %+v, %v", list, err)
	}
	for _, s := range list {
		if s.Alive != (s.Name == mine.Name()) || s.Tasks == nil || *s.Tasks == 0 {
			t.Errorf("in the list: %+v", s)
		}
	}
	swept, err := Sweep(t.Context(), here())
	if err != nil || !slices.Equal(swept, []string{left.Name()}) {
		t.Errorf("swept %q, %v", swept, err)
	}
	orphan.Wait()
	left.events.close()
	if h.ProcessState != nil || !h.id(t).Alive() {
		t.Error("the live session was swept too")
	}
	ended(t, mine)
	if swept, err := Sweep(t.Context(), here()); err != nil || len(swept) > 0 {
		t.Errorf("swept %q, %v at the end", swept, err)
	}
}

// Promise: the service manager's own socket does where there is no bus, and
// where there is neither the refusal says so.
func TestGuestWithoutBus(t *testing.T) {
	guestOf(t, Scope)
	runtime := t.TempDir()
	env := []string{"XDG_RUNTIME_DIR=" + runtime}
	_, err := Prepare(t.Context(), Request{ID: "no-manager", Host: Host{Env: env}})
	var why *Unavailable
	if !errors.As(err, &why) || !strings.Contains(why.Reason, "service manager") || !strings.Contains(why.Reason, "may not be divided") {
		t.Errorf("without a manager: %v", err)
	}
	if err := os.Symlink(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "systemd"), filepath.Join(runtime, "systemd")); err != nil {
		t.Fatal(err)
	}
	plan, err := Prepare(t.Context(), Request{ID: "no-bus", Host: Host{Env: env}})
	if err != nil {
		t.Fatal(err)
	}
	defer plan.Close()
	h := hold(t, "exit 4")
	g, err := plan.Place(t.Context(), h.still(t))
	if err != nil {
		t.Fatal(err)
	}
	h.letGo()
	h.Wait()
	ended(t, g)
	if h.ProcessState.ExitCode() != 4 {
		t.Errorf("it ended with %v", h.ProcessState)
	}
}

// Promise: a command that is told to end while it is placed has either not
// started, or ends like any other; and nothing of it is left.
func TestGuestEarlyEnd(t *testing.T) {
	guestOf(t, Scope)
	for step := range 8 {
		h := hold(t, "trap 'exit 9' TERM; echo started; sleep 5")
		plan := prepared(t, "early", Limits{Memory: Bytes(64 << 20)})
		id := h.id(t)
		timer := time.AfterFunc(time.Duration(step)*20*time.Millisecond, func() { h.Process.Signal(syscall.SIGTERM) })
		g, err := plan.Place(t.Context(), still{id})
		if err == nil {
			h.letGo()
		}
		h.Wait()
		timer.Stop()
		if err == nil {
			ended(t, g)
		} else if !errors.Is(err, ErrEnded) {
			t.Errorf("after %d steps: %v", step, err) // would be taken for a lack of the machine
		}
		if started, code := strings.Contains(h.output.String(), "started"), h.ProcessState.ExitCode(); started != (code == 9) && h.ProcessState.String() != "signal: terminated" {
			t.Errorf("after %d steps: started %t, %v, %v", step, started, h.ProcessState, err)
		}
	}
	if list, err := List(t.Context(), here()); err != nil || len(list) > 0 {
		t.Errorf("left behind: %+v, %v", list, err)
	}
}

// eventually polls until ok.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
