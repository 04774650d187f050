package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Promise: what the command leaves running is ended with it, and counted; its
// own exit code stays.
func TestLeftProcessesAreEnded(t *testing.T) {
	t.Parallel()
	f := newField(t)
	r := f.cage(`tamper held ../lock sh -c 'sleep 1000 & sleep 1000 & exit 5'`)
	r.exits(5)
	f.free()
	f.wants("status=ok", "lifetime.ended=2", "lifetime.proved=true", "lifetime.mechanism=subreaper", "lifetime.survivors=[]")
}

// Promise: a process that takes SIGTERM and needs SIGKILL is one process.
func TestStubbornProcessesAreCountedOnce(t *testing.T) {
	t.Parallel()
	f := newField(t)
	r := f.cage(`tamper held ../lock sh -c 'trap "" TERM; sleep 1000 & sleep 1000 & exit 5'`, "--grace", "50ms")
	r.exits(5)
	f.free()
	f.wants("lifetime.ended=2")
}

// besides starts a cage in the place of a shell that had a child before. The
// child's number is returned; it ends with the test.
func (f *field) besides(script string, flags ...string) (r *run, foreign int) {
	f.t.Helper()
	r = f.prepare("sh", append([]string{"-c", `sleep 1000 >/dev/null 2>&1 & echo $! >../foreign.new; mv ../foreign.new ../foreign; exec cage "$@"`, "sh"},
		f.call(script, flags...)...)...)
	r.begin()
	foreign = f.number("../foreign")
	f.t.Cleanup(func() { unix.Kill(foreign, unix.SIGKILL) })
	return r, foreign
}

// number waits for a file with a process number.
func (f *field) number(name string) int {
	f.t.Helper()
	n := 0
	f.eventually(name+" holds a number", func() bool {
		data, err := os.ReadFile(f.path(name))
		if err != nil || !strings.HasSuffix(string(data), "\n") {
			return false
		}
		n, err = strconv.Atoi(strings.TrimSpace(string(data)))
		return err == nil
	})
	return n
}

// alive reports whether a process is there and no zombie.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')'):]), " ")
	return !strings.HasPrefix(after, "Z") && !strings.HasPrefix(after, "X")
}

// Promise: children that were there before the run are neither signalled nor
// awaited: not when the command ends, not in a halt, not at a signal. The run
// has a keeper then, and ends as any other.
func TestForeignChildIsNotTouched(t *testing.T) {
	t.Run("the command ends", func(t *testing.T) {
		t.Parallel()
		f := newField(t)
		r, foreign := f.besides(`tamper held ../lock sh -c 'sleep 1000 & exit 5'`)
		r.exits(5)
		f.free()
		f.wants("status=ok", "lifetime.mechanism=keeper", "lifetime.ended=1", "lifetime.proved=true")
		f.untouched(foreign)
	})
	t.Run("a halt", func(t *testing.T) {
		t.Parallel()
		f := newField(t)
		r, foreign := f.besides(`tamper held ../lock sh -c 'sh ../stubborn.sh & while :; do echo evil >>.env; sleep 0.05; done'`,
			"--contest-limit", "1", "--grace", "50ms")
		r.exits(4)
		f.free()
		f.whole(".env", dotenv)
		f.wants("status=halted", "lifetime.mechanism=keeper", "lifetime.proved=true", "watch.halt.path=.env")
		f.untouched(foreign)
	})
	t.Run("a signal", func(t *testing.T) {
		t.Parallel()
		f := newField(t)
		r, foreign := f.besides(`echo evil >>.env; tamper held ../lock sh ../stubborn.sh`, "--grace", "50ms")
		f.appears("ready")
		f.logs("restored")
		r.signal(syscall.SIGTERM)
		r.exits(3)
		f.free()
		f.whole(".env", dotenv)
		f.wants("trapped_signal=SIGTERM", "lifetime.mechanism=keeper", "lifetime.proved=true")
		f.untouched(foreign)
	})
	t.Run("the command cannot start", func(t *testing.T) {
		t.Parallel()
		f := newField(t)
		r := f.prepare("sh", "-c", `sleep 1000 >/dev/null 2>&1 & echo $! >../foreign; exec cage --report-file ../report.json -- ./no-such-file`)
		r.begin()
		foreign := f.number("../foreign")
		t.Cleanup(func() { unix.Kill(foreign, unix.SIGKILL) })
		r.exits(2)
		f.wants("status=runtime_error", `runtime_error=cannot run "./no-such-file": no such file`)
		f.untouched(foreign)
	})
}

func (f *field) untouched(foreign int) {
	f.t.Helper()
	if !alive(foreign) {
		f.t.Errorf("the foreign child %d is gone", foreign)
	}
}

// Promise: a keeper that is killed takes the command with it, and what carries
// the session's name is ended. That nothing else lives cannot be proved, and the
// report says so; the files are whole.
func TestKeeperIsKilled(t *testing.T) {
	t.Parallel()
	f := newField(t)
	r, foreign := f.besides(`echo $PPID >../keeper; echo $$ >../command; echo evil >>.env; sleep 1000 >/dev/null 2>&1 & echo $! >../left; : >ready; wait`)
	f.appears("ready")
	f.logs("restored")
	keeper, command, left := f.number("../keeper"), f.number("../command"), f.number("../left")
	f.must(unix.Kill(keeper, unix.SIGKILL))
	r.exits(3)
	f.whole(".env", dotenv)
	if alive(command) {
		t.Error("the command lives")
	}
	f.untouched(foreign)
	f.wants("status=violations_unresolved", "lifetime.proved=false", "command_signal=SIGKILL", "command_exit_code=null")
	r.says("cage: processes MAY STILL BE ALIVE, ")
	if alive(left) {
		t.Error("what the command had started lives")
		unix.Kill(left, unix.SIGKILL)
	}
}

// Promise: a command that stops its keeper is halted all the same.
func TestKeeperIsStopped(t *testing.T) {
	t.Parallel()
	f := newField(t)
	r, foreign := f.besides(`tamper held ../lock sh -c 'kill -STOP $PPID; while :; do echo evil >>.env; sleep 0.05; done'`,
		"--contest-limit", "1", "--grace", "50ms")
	r.exits(4)
	f.whole(".env", dotenv)
	f.free()
	f.wants("status=halted", "lifetime.proved=true")
	f.untouched(foreign)
}

// Promise: a cage that is killed takes the command with it.
func TestCageIsKilled(t *testing.T) {
	t.Parallel()
	f := newField(t)
	r := f.cage(`echo $$ >../command; (trap '' HUP; exec sleep 1000 >/dev/null 2>&1) & echo $! >../left; wait`)
	command, left := f.number("../command"), f.number("../left")
	r.signal(syscall.SIGKILL)
	f.eventually("the command is gone", func() bool { return !alive(command) })
	// What the command had started is beyond a parent-death signal.
	if !alive(left) {
		t.Log("what the command had left is gone too")
	}
	unix.Kill(left, unix.SIGKILL)
}

// Promise: with a keeper, a cage that is killed takes everything with it, for
// the keeper lives on to end it.
func TestCageIsKilledBesideAForeignChild(t *testing.T) {
	t.Parallel()
	f := newField(t)
	r, foreign := f.besides(`tamper held ../lock sh ../stubborn.sh`)
	f.appears("ready")
	r.signal(syscall.SIGKILL)
	f.eventually("everything is gone", func() bool { return free(filepath.Join(f.work, "lock")) == nil })
	f.untouched(foreign)
}
