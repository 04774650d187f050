package spawn

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// repeatVariable is how often each run of the torture is done.
const repeatVariable = "CAGE_REPEAT"

// part is one thing that a command can do to those that want its end. What is
// left alone of it ends by itself after a while.
type part struct {
	name string
	// count is how many processes live, or lineages of them, when all of it is
	// up: as many lines say so.
	count int
	begin func(count int) error
}

func parts() []part {
	return []part{
		{"lineages that fork, exec and detach", 20, each(func() error { return hop(500) })},
		{"lineages that fork all the time", 8, each(func() error { return again("fork on", 10_000) })},
		{"idle daemons", 100, each(func() error { return detached("/bin/sleep", "1000") })},
		{"a storm", 200, func(count int) error { return again("storm", count) }},
	}
}

// each starts something so many times.
func each(start func() error) func(count int) error {
	return func(count int) error {
		for range count {
			if err := start(); err != nil {
				return err
			}
			fmt.Println("up")
		}
		return nil
	}
}

// hopPause is how long a process of a lineage lives at the least.
const hopPause = 5 * time.Millisecond

// hop starts the next of a lineage that has so many before it.
func hop(left int) error {
	if left == 0 {
		return nil
	}
	return again("hop", left-1)
}

// again starts this program into another part of the torture.
func again(name string, number int) error {
	return detached("/proc/self/exe", name, strconv.Itoa(number))
}

// detached starts a program in a session of its own, if that is allowed.
func detached(path string, args ...string) error {
	attr := &syscall.ProcAttr{
		Env: append(os.Environ(), roleVariable+"="+roleTorture), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true},
	}
	argv := append([]string{"torture"}, args...)
	_, err := syscall.ForkExec(path, argv, attr)
	if err == unix.EPERM {
		attr.Sys = nil
		_, err = syscall.ForkExec(path, argv, attr)
	}
	return err
}

// torture does what its arguments say.
func torture() int {
	number, err := strconv.Atoi(os.Args[2])
	if err == nil {
		switch os.Args[1] {
		case "begin":
			part := parts()[number]
			err = part.begin(part.count)
		case "hop":
			time.Sleep(hopPause)
			err = hop(number)
		case "fork on":
			forkOn(number)
		case "storm":
			err = storm(number)
		}
	}
	if err != nil {
		fmt.Println("failed:", err)
		return 1
	}
	return 0
}

// storm becomes that many processes, each the parent of two at the most, which
// then wait.
func storm(count int) error {
	first := count / 2
	for _, branch := range []int{first, count - 1 - first} {
		if branch == 0 {
			continue
		}
		if err := again("storm", branch); err != nil {
			return err
		}
	}
	fmt.Println("up")
	time.Sleep(1000 * time.Second)
	return nil
}

// forkOn forks so many times, as fast as it can: the child goes on, the parent
// ends. Nothing but system calls happens in between, since the child of a
// program with threads has one of them only.
//
//go:norace
func forkOn(times int) {
	runtime.LockOSThread()
	for range times {
		pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if errno == 0 && pid != 0 {
			break
		}
		unix.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
	}
	unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
}

// TestTorture ends runs that do all they can against it. Everything of a run
// holds a pipe: where nothing has it open any more, nothing lives.
func TestTorture(t *testing.T) {
	repeat := 1
	if text := os.Getenv(repeatVariable); text != "" {
		repeat = mustAtoi(t, text)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for number, part := range parts() {
		for _, lifetime := range []Lifetime{LifetimeRun, LifetimeTree} {
			t.Run(fmt.Sprintf("%s, %v", part.name, lifetime), func(t *testing.T) {
				onEach(t, func(t *testing.T, mechanism string) {
					var took []time.Duration
					for range repeat {
						took = append(took, endTorture(t, mechanism, lifetime, self, number))
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
func endTorture(t *testing.T, mechanism string, lifetime Lifetime, self string, number int) time.Duration {
	t.Helper()
	g := plantWith(t, mechanism, lifetime, `export `+roleVariable+`=`+roleTorture+`; exec "$@"`, self, "begin", strconv.Itoa(number))
	defer g.reaper.Close()
	count := parts()[number].count
	for range count {
		if said := g.line(t); said != "up" {
			t.Fatalf("it said %q", said)
		}
	}
	began := time.Now()
	killed := g.Kill(patience)
	took := time.Since(began)
	if !killed.Proved || killed.Count < count {
		t.Errorf("of %d the end took %+v", count, killed)
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
