// Package torture is what a command can do to those that want its end, for
// tests and the benchmark: processes that fork, detach and exit faster than a
// list of them can be read.
//
// Each part is the calling program, started again; so main has to call Main
// first. Every process of a part holds standard output open, which makes that a
// marker of their lives that needs no list. All is bounded: what is left alone
// ends by itself.
package torture

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Part is one thing to do.
type Part struct {
	Name string
	// Count is how many processes live, or lineages of them, once all of it is
	// up: standard output has as many lines then.
	Count int
	begin func(count int) error
}

// Parts returns all of them.
func Parts() []Part {
	return []Part{
		{"20 lineages that fork, exec and detach", 20, each(func() error { return hop(500) })},
		{"8 lineages that fork all the time", 8, each(func() error { return again(forking, 10_000) })},
		{"100 idle daemons", 100, each(func() error { return detached("/bin/sleep", "1000") })},
		{"a storm of 200 processes", 200, func(count int) error { return again(storming, count) }},
	}
}

// Args are the arguments with which the program does the part; the command
// exits once all of it is begun.
func (p Part) Args() []string {
	for i, part := range Parts() {
		if part.Name == p.Name {
			return []string{word, beginning, strconv.Itoa(i)}
		}
	}
	return nil
}

// word is the first argument of a process of the torture, and what it does the
// second. The third is a number.
const (
	word      = "torture"
	beginning = "begin"
	hopping   = "hop"
	forking   = "fork"
	storming  = "storm"
)

// Main must be what main does first, but for spawn.Main: in a process of the
// torture it does its work and does not return.
func Main() {
	if len(os.Args) != 4 || os.Args[1] != word {
		return
	}
	number, err := strconv.Atoi(os.Args[3])
	if err == nil {
		err = do(os.Args[2], number)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "torture:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func do(what string, number int) error {
	switch what {
	case beginning:
		part := Parts()[number]
		return part.begin(part.Count)
	case hopping:
		time.Sleep(hopPause)
		return hop(number)
	case forking:
		forkOn(number)
		return nil
	case storming:
		return storm(number)
	default:
		return errors.New("there is no " + what)
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

// hop starts the next of a lineage that is to have so many more.
func hop(left int) error {
	if left == 0 {
		return nil
	}
	return again(hopping, left-1)
}

// lifespan is how long a process lives that does nothing.
const lifespan = 1000 * time.Second

// storm becomes that many processes, each the parent of two at the most.
func storm(count int) error {
	first := count / 2
	for _, branch := range []int{first, count - 1 - first} {
		if branch == 0 {
			continue
		}
		if err := again(storming, branch); err != nil {
			return err
		}
	}
	fmt.Println("up")
	time.Sleep(lifespan)
	return nil
}

// again starts this program into another part of the torture.
func again(what string, number int) error {
	return detached("/proc/self/exe", word, what, strconv.Itoa(number))
}

// detached starts a program in a session of its own, if that is allowed.
func detached(path string, args ...string) error {
	argv := append([]string{path}, args...)
	attr := &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true}}
	_, err := syscall.ForkExec(path, argv, attr)
	if errors.Is(err, unix.EPERM) {
		attr.Sys = nil
		_, err = syscall.ForkExec(path, argv, attr)
	}
	return err
}

// forkOn forks so many times, as fast as it can: the child goes on, the parent
// ends. Nothing but system calls happens in between, since the child of a
// program with threads has one of them only.
//
//go:norace
func forkOn(times int) {
	runtime.LockOSThread()
	for range times {
		child, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if errno != 0 || child != 0 {
			break
		}
		unix.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
	}
	unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
}
