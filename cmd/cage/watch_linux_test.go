package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// watch starts a watch and waits until it has begun.
func (f *field) watch(flags ...string) *run {
	f.t.Helper()
	begun := func() int { return strings.Count(f.events(), `"event":"session_start"`) }
	before := begun()
	r := f.prepareWatch(flags...)
	r.begin()
	f.eventually("the watch has begun", func() bool { return begun() > before || !r.lives() })
	return r
}

func (f *field) prepareWatch(flags ...string) *run {
	return f.prepare("cage", append([]string{"watch", "--report-file", filepath.Join(f.work, "report.json")}, flags...)...)
}

// program starts a shell that is no cage's, to be watched.
func (f *field) program(script string) *run {
	f.t.Helper()
	r := f.prepare("sh", "-c", script)
	r.begin()
	return r
}

func (r *run) pid() string { return strconv.Itoa(r.cmd.Process.Pid) }

// lives reports whether it still runs.
func (r *run) lives() bool {
	select {
	case <-r.over:
		return false
	default:
		return true
	}
}

// heals waits until a file is as it should be.
func (f *field) heals(name, content string) {
	f.t.Helper()
	f.eventually(name+" is whole", func() bool { return f.read(name) == content })
}

// closedUp wants a watch that has ended to have left nothing but its log.
func (f *field) closedUp() {
	f.t.Helper()
	for _, pattern := range []string{"repo/.git/gantry-cage-journal", "repo/.git/gantry-cage-common.lock", "repo/.git/gantry-cage-kept/*"} {
		if found, _ := filepath.Glob(filepath.Join(f.work, pattern)); len(found) > 0 {
			f.t.Errorf("%v is left", found)
		}
	}
}

// Promise: a watch puts back what anybody changes, tells people and programs of
// it, and ends on a signal with a last check: exit 3.
func TestWatchRestoresUntilASignal(t *testing.T) {
	for _, sig := range ending() {
		t.Run(unix.SignalName(sig), func(t *testing.T) {
			t.Parallel()
			f := newField(t)
			r := f.watch("--json")
			f.write(".env", "A=evil\n")
			f.heals(".env", dotenv)
			f.logs("restored")
			r.signal(sig)
			r.exits(3)
			f.closedUp()
			name := unix.SignalName(sig)
			f.wants("status=violations_reverted", "trapped_signal="+name, "command=", "command_exit_code=null",
				"lifetime.mode=none", "lifetime.mechanism=none", "lifetime.proved=true", "hygiene.environment=none", "watch.halt=null")
			if got, want := r.stdout.String(), f.events(); got != want {
				t.Errorf("stdout is %q, the log %q", got, want)
			}
			for _, line := range []string{"cage: watching ", " reverted modified .env (secrets)\n", " trapped " + name + "\n", "cage: 1 protected file changed, it is back\n"} {
				r.says(line)
			}
		})
	}
}

// Promise: a watch in which nothing happened says so and exits 0; it asks for no
// terminal, and stdout is for programs alone.
func TestWatchWithoutEvents(t *testing.T) {
	t.Parallel()
	f := newField(t)
	r := f.watch()
	f.write("honest", "work\n")
	r.signal(syscall.SIGTERM)
	r.exits(0)
	f.whole("honest", "work\n")
	f.wants("status=ok", "changes=[]", "trapped_signal=SIGTERM")
	if r.stdout.Len() > 0 {
		t.Errorf("stdout has %q", &r.stdout)
	}
}

// Promise: --report-only watches and undoes nothing.
func TestWatchThatOnlyReports(t *testing.T) {
	t.Parallel()
	f := newField(t)
	r := f.watch("--report-only", "--watch-interval", "20ms")
	f.write(".env", "A=evil\n")
	f.logs("kept")
	r.signal(syscall.SIGTERM)
	r.exits(3)
	f.whole(".env", "A=evil\n")
	f.wants("status=violations_unresolved", "revert_mode=report_only")
}

// Promise: a watch and a session exclude each other in one root, and so do two
// watches.
func TestWatchAndSessionExcludeEachOther(t *testing.T) {
	t.Parallel()
	f := newField(t)
	watch := f.watch()
	for _, other := range []*run{f.prepare("cage", "--", "touch", "ran"), f.prepare("cage", "watch"), f.prepare("cage", "watch", "--json")} {
		other.begin()
		other.exits(2)
		other.says(fmt.Sprintf("cage: [GXT_CAGE_SESSION_ACTIVE] another session runs here: process %s (", watch.pid()))
		json := len(other.cmd.Args) > 2 && other.cmd.Args[2] == "--json"
		if line := other.stdout.String(); json != strings.HasPrefix(line, `{"status":"failed","error_code":"GXT_CAGE_SESSION_ACTIVE",`) || strings.Count(line, "\n") > 1 {
			t.Errorf("stdout has %q", line)
		}
	}
	watch.signal(syscall.SIGTERM)
	watch.exits(0)
	session := f.cage(`: >ready; while [ ! -e go ]; do sleep 0.02; done`)
	f.appears("ready")
	other := f.prepare("cage", "watch")
	other.begin()
	other.exits(2)
	other.says("[GXT_CAGE_SESSION_ACTIVE]")
	f.write("go", "")
	session.exits(0)
	if _, err := os.Lstat(f.path("ran")); err == nil {
		t.Error("the other command ran")
	}
}

// Promise: nothing is halted. Where a file is fought over it is put back after a
// pause, again and again, and the end waits for none.
func TestWatchPacesAFight(t *testing.T) {
	t.Parallel()
	f := newField(t)
	r := f.watch("--contest-limit", "1")
	fight := f.program(`while [ ! -e stop ]; do echo evil >.env; sleep 0.05; done`)
	f.logs("contested")
	f.write("stop", "")
	fight.exits(0)
	restored := func() int { return strings.Count(f.events(), `"event":"restored"`) }
	before := restored()
	f.program(`n=0; while [ $n -lt 60 ]; do n=$((n+1)); echo evil >.env; sleep 0.05; done`).exits(0)
	// Without pauses it is put back for every change.
	if n := restored() - before; n == 0 || n > 20 {
		t.Errorf("it was put back %d times for 60 changes", n)
	}
	// The next pause is longer than what comes: only the end can put this back.
	f.write(".env", "A=evil\n")
	r.signal(syscall.SIGTERM)
	r.exits(3)
	f.whole(".env", dotenv)
	f.wants("status=violations_reverted", "watch.halt=null", `watch.contested=[".env"]`, "watch.contest_limit=1", "watch.rule_contest_limit=0")
	r.says("contested      .env (put back after pauses)\n")
}

// Promise: a limit of 0 is a fight at full speed.
func TestWatchThatNeverPauses(t *testing.T) {
	t.Parallel()
	f := newField(t)
	r := f.watch("--contest-limit", "0")
	f.program(`for n in 1 2 3 4 5; do echo evil >.env; sleep 1.1; done`).exits(0)
	r.signal(syscall.SIGTERM)
	r.exits(3)
	f.whole(".env", dotenv)
	f.wants("watch.contested=[]", "watch.contest_limit=0")
}

// Promise: another directory in the place of the root ends a watch: what it was
// to guard is not there any more.
func TestWatchEndsWhereTheGroundMoved(t *testing.T) {
	t.Parallel()
	f := newField(t)
	r := f.watch("--watch-interval", "50ms")
	f.must(os.Rename(f.repo, f.repo+".away"))
	f.must(os.Mkdir(f.repo, 0o700))
	r.exits(3)
	f.wants("status=violations_unresolved", "trapped_signal=null", "watch.halt=null")
	r.says("ground: nothing was written into the directory that stands there now")
}

// fightingProgram is a program that changes a file all the time, and starts two that,
// like it, do not listen to SIGTERM and hold a lock. One has a session of its
// own.
const fightingProgram = `trap '' TERM
tamper held ../lock sh -c 'sleep 1000 & setsid sleep 1000 & : >ready; wait' &
while [ ! -e ready ]; do sleep 0.02; done
n=0; while [ $n -lt 1000 ]; do n=$((n+1)); echo evil >>.env; sleep 0.05; done`

// Promise: --pid halts a program that fights, with all its processes: exit 4.
func TestWatchHaltsItsProgram(t *testing.T) {
	t.Parallel()
	f := newField(t)
	program := f.program(`while [ ! -e go ]; do sleep 0.02; done; ` + fightingProgram)
	r := f.watch("--pid", program.pid(), "--contest-limit", "1", "--grace", "200ms")
	f.write("go", "")
	r.exits(4)
	<-program.over
	f.free()
	f.whole(".env", dotenv)
	f.closedUp()
	f.wants("status=halted", "command=sh", "watch.halt.scope=path", "watch.halt.path=.env", "lifetime.mode=watched", "lifetime.mechanism=listing",
		"lifetime.proved=true", "lifetime.survivors=[]", "lifetime.watched.name=sh", "lifetime.watched.pid="+program.pid())
	r.says("; until process " + program.pid() + " (sh) ends\n")
	r.says("halt (path): .env; the program is being ended\n")
	r.says("; the program was ended\n")
}

// Promise: a signal in the middle of a halt does not cut it short; a second one
// does away with the grace.
func TestWatchThatHaltsIsToldToEnd(t *testing.T) {
	t.Parallel()
	f := newField(t)
	program := f.program(`while [ ! -e go ]; do sleep 0.02; done; ` + fightingProgram)
	r := f.watch("--pid", program.pid(), "--contest-limit", "1", "--grace", "1h")
	f.write("go", "")
	f.logs("halt")
	r.signal(syscall.SIGTERM)
	f.logs("trapped_signal")
	if !program.lives() || !r.lives() {
		t.Error("it ended within the grace")
	}
	r.signal(syscall.SIGTERM)
	r.exits(4)
	<-program.over
	f.free()
	f.wants("status=halted", "trapped_signal=SIGTERM")
}

// Promise: the watch ends with its program, and ends nothing that lives on.
func TestWatchEndsWithItsProgram(t *testing.T) {
	t.Parallel()
	f := newField(t)
	program := f.program(`while [ ! -e go ]; do sleep 0.02; done; sleep 1000 >/dev/null 2>&1 & echo $! >left.new; mv left.new left; echo evil >.env`)
	r := f.watch("--pid", program.pid())
	f.write("go", "")
	left := f.number("left")
	t.Cleanup(func() { unix.Kill(left, unix.SIGKILL) })
	program.exits(0)
	r.exits(3)
	f.whole(".env", dotenv)
	f.wants("status=violations_reverted", "trapped_signal=null", "lifetime.ended=0", "lifetime.proved=true")
	if err := unix.Kill(left, 0); err != nil {
		t.Errorf("what it left: %v", err)
	}
}

// Promise: a signal ends the watch and not the program, which nobody asked to
// end.
func TestWatchLeavesItsProgram(t *testing.T) {
	t.Parallel()
	f := newField(t)
	program := f.program(`while [ ! -e go ]; do sleep 0.02; done; exit 7`)
	r := f.watch("--pid", program.pid())
	r.signal(syscall.SIGTERM)
	r.exits(0)
	if !program.lives() {
		t.Error("the program has ended")
	}
	f.write("go", "")
	program.exits(7)
}

// Promise: what a killed watch left is put right by the next start, a session's
// or a watch's, and its program, which it did not start, is not ended by that.
func TestKilledWatchIsRecovered(t *testing.T) {
	for _, next := range []string{"run", "watch"} {
		t.Run(next, func(t *testing.T) {
			t.Parallel()
			f := newField(t)
			program := f.program(`while [ ! -e go ]; do sleep 0.02; done; exit 7`)
			r := f.watch("--pid", program.pid(), "--watch-interval", "20ms")
			f.eventually("the processes have been looked at", func() bool {
				found, _ := filepath.Glob(f.path(".git/gantry-cage-journal/life-*.json"))
				return len(found) > 0
			})
			r.signal(syscall.SIGKILL)
			<-r.over
			f.write(".env", "A=evil\n")
			switch next {
			case "run":
				f.cage(`:`).exits(0)
			case "watch":
				again := f.watch("--pid", program.pid())
				f.whole(".env", dotenv)
				again.signal(syscall.SIGTERM)
				again.exits(0)
				again.says("cage: recovered an interrupted session ")
			}
			f.whole(".env", dotenv)
			f.wants("recovery.restored=1", "recovery.processes_ended=0")
			f.closedUp()
			if !program.lives() {
				t.Error("the program has ended")
			}
			f.write("go", "")
			program.exits(7)
		})
	}
}

// Promise: a reader of the events who goes away ends no watch before its time. At
// the end it is said that they could not be printed.
func TestReaderOfAWatchMayGoAway(t *testing.T) {
	for _, tt := range []struct {
		name, content string
		code          int
	}{
		{"with a violation", "A=evil\n", 3},
		{"without", dotenv, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newField(t)
			read, write, err := os.Pipe()
			f.must(err)
			r := f.prepareWatch("--json")
			r.cmd.Stdout = write
			r.begin()
			f.must(write.Close())
			_, err = io.ReadFull(read, make([]byte, 1))
			f.must(err)
			f.must(read.Close())
			f.write("go.sum", "new\n")
			f.write(".env", tt.content)
			f.heals(".env", dotenv)
			if tt.code == 3 {
				f.logs("restored")
			}
			r.signal(syscall.SIGTERM)
			r.exits(tt.code)
			r.says("cage: print the events: ")
		})
	}
}

// Promise: a reader that takes nothing keeps only itself waiting.
func TestReaderOfAWatchMayStandStill(t *testing.T) {
	t.Parallel()
	f := newField(t)
	read, write, err := os.Pipe()
	f.must(err)
	t.Cleanup(func() { read.Close() })
	r := f.prepareWatch("--json")
	r.cmd.Stdout = write
	r.begin()
	_, err = io.ReadFull(read, make([]byte, 1))
	f.must(err)
	fill(t, write)
	f.must(write.Close())
	for i := range 3 {
		f.write(".env", fmt.Sprintf("A=%d\n", i))
		f.heals(".env", dotenv)
	}
	r.signal(syscall.SIGTERM)
	r.exits(3)
	r.says("cage: print the events: nobody takes more of them")
	f.wants("status=violations_reverted")
}

// Promise: a watch that was stopped compares everything when it goes on, what no
// event tells of included.
func TestWatchCatchesUpAfterAStop(t *testing.T) {
	t.Parallel()
	f := newField(t)
	r := f.watch("--watch-interval", "24h")
	f.write(".env", "A=evil\n")
	f.heals(".env", dotenv) // by now it has compared everything, and will not again
	file, err := os.OpenFile(f.path(".env"), os.O_RDWR, 0)
	f.must(err)
	defer file.Close()
	mapped, err := unix.Mmap(int(file.Fd()), 0, len(dotenv), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	f.must(err)
	defer unix.Munmap(mapped)
	r.signal(syscall.SIGSTOP)
	f.eventually("it is stopped", func() bool { return stateOf(r.pid()) == "T" })
	copy(mapped, "A=evil")
	r.signal(syscall.SIGCONT)
	f.heals(".env", dotenv)
	r.signal(syscall.SIGTERM)
	r.exits(3)
}

// Promise: in the background of a terminal its lines do not stop a watch,
// whatever that is set to; Ctrl-Z does, until fg, after which everything is
// compared; Ctrl-C ends it.
func TestWatchOnATerminal(t *testing.T) {
	t.Parallel()
	w := newWindow(t, `stty tostop; set -m; cage watch --report-file ../report.json &
		: >started; read line; echo evil >.env; read line; : >on
		fg; : >stopped; echo worse >.env; read line
		fg; echo $? >../exit.new; mv ../exit.new ../exit`)
	w.appears("started")
	w.logs("session_start")
	w.keys("Enter")
	w.shows(" reverted modified .env (secrets)")
	w.keys("Enter")
	w.appears("on") // or Ctrl-Z would drop what was typed
	w.until("Ctrl-Z has its effect", func(string) bool {
		w.keys("C-z") // once it is in the foreground
		_, err := os.Lstat(w.path("stopped"))
		return err == nil
	})
	w.eventually("it is changed", func() bool { return w.read(".env") == "worse\n" })
	w.keys("Enter")
	w.heals(".env", dotenv)
	w.keys("C-c")
	w.exited("3")
	w.whole(".env", dotenv)
	w.wants("status=violations_reverted", "trapped_signal=SIGINT")
}
