package proc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// roleVariable makes this test binary play one of the roles instead of running
// tests: what must be seen of a whole program happens in a process of its own.
const roleVariable = "PROC_TEST_ROLE"

// markVariable is in the environment of everything that a test starts, so that
// it can be found by other means than those under test.
const markVariable = "PROC_TEST_MARK"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Unsetenv(roleVariable)
		os.Exit(roles()[role]())
	}
	goleak.VerifyTestMain(m)
}

// patience bounds every wait for something that must happen.
const patience = 60 * time.Second

// eventually polls until ok.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

// marker makes a mark of this test and sees to it that nothing that carries
// it outlives the test.
func marker(t *testing.T) string {
	mark := fmt.Sprintf("%s=%s-%d-%d", markVariable, strings.ReplaceAll(t.Name(), "/", "-"), os.Getpid(), time.Now().UnixNano())
	t.Cleanup(func() {
		for _, id := range marked(mark) {
			t.Errorf("process %d was left behind", id.PID)
			_ = id.Signal(unix.SIGKILL)
		}
	})
	return mark
}

// marked finds processes by their environment.
func marked(mark string) []ID {
	var found []ID
	names, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, name := range names {
		pid, _ := strconv.Atoi(strings.Split(name, "/")[2])
		id, err := Identify(pid)
		if err != nil {
			continue
		}
		environ, _ := os.ReadFile(name)
		for variable := range bytes.SplitSeq(environ, []byte{0}) {
			if string(variable) == mark && id.Alive() {
				found = append(found, id)
			}
		}
	}
	return found
}

func newReaper(t testing.TB) *Reaper {
	t.Helper()
	r, err := NewReaper()
	if err != nil {
		t.Fatal(err)
	}
	if r.Shared() {
		t.Fatal("an earlier test left children")
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// rig is a tree under test. Everything in it holds the writing end of out.
type rig struct {
	reaper *Reaper
	tree   *Tree
	out    *os.File
	lines  *bufio.Reader
	mark   string
}

// plant starts a shell script as the command of a tree.
func plant(t *testing.T, script string, args ...string) *rig {
	t.Helper()
	mark := marker(t)
	r := newReaper(t)
	out, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	defer theirs.Close()
	tree, err := r.Start(Spec{
		Path:  "/bin/sh",
		Args:  append([]string{"sh", "-c", script, "sh"}, args...),
		Env:   append(os.Environ(), mark),
		Files: []*os.File{nil, theirs, os.Stderr},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &rig{r, tree, out, bufio.NewReader(out), mark}
}

// line waits for the next line that the tree writes.
func (g *rig) line(t *testing.T) string {
	t.Helper()
	if err := g.out.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	line, err := g.lines.ReadString('\n')
	if err != nil {
		t.Fatalf("reading what the tree writes: %v", err)
	}
	return strings.TrimSpace(line)
}

// kill ends the tree and checks, by other means, that nothing is left.
func (g *rig) kill(t *testing.T) Killed {
	t.Helper()
	killed := g.tree.Kill(patience)
	if !killed.Proved || len(killed.Survivors) > 0 {
		t.Fatalf("the tree was not proved to be gone: %+v", killed)
	}
	g.proveGone(t)
	return killed
}

// proveGone checks that nothing holds the pipe any more, now and not soon, and
// that nothing carries the mark.
func (g *rig) proveGone(t *testing.T) {
	t.Helper()
	conn, err := g.out.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var left error
	_ = conn.Control(func(fd uintptr) {
		buf := make([]byte, 1<<16)
		for {
			n, err := unix.Read(int(fd), buf)
			if n == 0 {
				return
			}
			if err != nil && !errors.Is(err, unix.EINTR) {
				left = err
				return
			}
		}
	})
	if left != nil {
		t.Errorf("something still holds the tree's pipe: %v", left)
	}
	if m := marked(g.mark); len(m) > 0 {
		t.Errorf("still alive: %v", m)
	}
	if p, err := g.tree.Processes(); len(p) > 0 || err != nil {
		t.Errorf("a tree that is gone lists %v, %v", p, err)
	}
}

func exitIn(t testing.TB, exited <-chan Exit) Exit {
	t.Helper()
	select {
	case e := <-exited:
		return e
	case <-time.After(patience):
		t.Fatal("no exit was delivered")
		return Exit{}
	}
}

func goneIn(t testing.TB, tree *Tree) {
	t.Helper()
	select {
	case <-tree.Gone():
	case <-time.After(patience):
		processes, err := tree.Processes()
		t.Fatalf("the tree is never gone; it lists %v, %v", processes, err)
	}
}

// play starts this binary in a role, through a shell script that has it as
// "$@", and returns what it writes. It must be called without a Reaper.
func play(t *testing.T, role, script string, env ...string) (pid int, out *bufio.Reader) {
	t.Helper()
	ours, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	pid, err = syscall.ForkExec("/bin/sh", []string{"sh", "-c", script, "sh", self}, &syscall.ProcAttr{
		Env:   append(append(os.Environ(), roleVariable+"="+role, "GORACE=atexit_sleep_ms=0"), env...),
		Files: []uintptr{null.Fd(), theirs.Fd(), os.Stderr.Fd()},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ours.Close()
		_ = unix.Kill(pid, unix.SIGKILL)
		_, _ = syscall.Wait4(pid, nil, 0, nil)
	})
	if err := ours.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return pid, bufio.NewReader(ours)
}

// word reads the next line that a role writes.
func word(t *testing.T, out *bufio.Reader) string {
	t.Helper()
	line, err := out.ReadString('\n')
	if err != nil {
		t.Fatalf("reading what the role says: %v", err)
	}
	return strings.TrimSpace(line)
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// roles are what this binary can be.
func roles() map[string]func() int {
	return map[string]func() int{
		"dispositions": roleDispositions,
		"holder":       roleHolder,
		"foreigner":    roleForeigner,
		"powerless":    rolePowerless,
		"headless":     roleHeadless,
	}
}

func fail(err error) int {
	fmt.Println("failed:", err)
	return 1
}

func shell(script string, files ...*os.File) Spec {
	return Spec{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: os.Environ(), Files: files}
}

// roleDispositions shows which signals its command ignores and blocks.
func roleDispositions() int {
	r, err := NewReaper()
	if err != nil {
		return fail(err)
	}
	tree, err := r.Start(shell("grep -E '^Sig(Ign|Blk)' /proc/self/status; exit 0", nil, os.Stdout, os.Stderr))
	if err != nil {
		return fail(err)
	}
	<-tree.Gone()
	return 0
}

// roleHolder holds a command that lives until its holder dies.
func roleHolder() int {
	r, err := NewReaper()
	if err != nil {
		return fail(err)
	}
	tree, err := r.Start(shell("exec sleep 1000"))
	if err != nil {
		return fail(err)
	}
	// Threads that come and go must not take the command with them.
	for range 20 {
		done := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(done)
		}()
		<-done
	}
	runtime.GC()
	fmt.Println(tree.Command().PID)
	<-tree.Gone()
	return 0
}

// foreignVariable has the number of a child that a role was given.
const foreignVariable = "PROC_TEST_FOREIGN"

// roleForeigner is started with a child that is not its own.
func roleForeigner() int {
	r, err := NewReaper()
	if err != nil {
		return fail(err)
	}
	if _, err := r.Start(shell(":")); !errors.Is(err, ErrForeign) {
		return fail(fmt.Errorf("a tree beside foreign children: %w", err))
	}
	for range 20 {
		child, err := r.Attend(shell("exit 5"))
		if err != nil {
			return fail(err)
		}
		if exit := <-child.Exited(); exit.Code != 5 {
			return fail(fmt.Errorf("an attended child: %v", exit))
		}
	}
	if err := r.Close(); err != nil {
		return fail(err)
	}
	// Now the foreign child is still there to be waited for.
	pid, err := strconv.Atoi(os.Getenv(foreignVariable))
	if err != nil {
		return fail(err)
	}
	if err := unix.Kill(pid, unix.SIGTERM); err != nil {
		return fail(err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil || status.Signal() != unix.SIGTERM {
		return fail(fmt.Errorf("waiting for the foreign child: %v, %w", status, err))
	}
	fmt.Println("waited")
	return 0
}

// rolePowerless starts a command as root and loses the right to signal it.
func rolePowerless() int {
	r, err := NewReaper()
	if err != nil {
		return fail(err)
	}
	tree, err := r.Start(shell("exec sleep 1000"))
	if err != nil {
		return fail(err)
	}
	if err := syscall.Setresuid(65534, 65534, 65534); err != nil {
		return fail(err)
	}
	fmt.Println(tree.Command().PID)
	killed := tree.Kill(10 * time.Millisecond)
	fmt.Println(killed.Proved, killed.Count, len(killed.Survivors), tree.Terminate())
	for _, s := range killed.Survivors {
		fmt.Println(s.PID, s.Name)
	}
	return 0
}

// roleHeadless ends its first thread and lives on.
func roleHeadless() int {
	if unix.Gettid() != os.Getpid() {
		// The scheduler has moved main to another thread; begin again.
		return fail(syscall.Exec("/proc/self/exe", os.Args, append(os.Environ(), roleVariable+"=headless")))
	}
	runtime.LockOSThread()
	go func() {
		deadline := time.Now().Add(patience)
		for {
			s, err := readStat(os.Getpid())
			if err != nil || time.Now().After(deadline) {
				os.Exit(1)
			}
			if s.state == 'Z' {
				break
			}
			time.Sleep(time.Millisecond)
		}
		fmt.Println("headless")
		time.Sleep(patience)
		os.Exit(0)
	}()
	_, _, _ = unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
	return 1
}
