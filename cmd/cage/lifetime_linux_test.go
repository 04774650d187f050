package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"cage/internal/torture"
	"cage/report"
)

// leaver is a script that leaves two processes, one in a session of its own.
const leaver = `
sleep 1000 >/dev/null 2>&1 & echo $! >../child
setsid sh -c 'echo $$ >../detached; exec sleep 1000' >/dev/null 2>&1 &
while [ ! -s ../detached ]; do sleep 0.01; done
`

// leftAlone wants both processes of a leaver to live and the report to list
// them alone, and ends them.
func (f *field) leftAlone() {
	f.t.Helper()
	listed := make(map[int]string)
	for _, p := range *f.report().Lifetime.Left {
		listed[p.PID] = p.Name
	}
	for _, name := range []string{"../child", "../detached"} {
		pid := f.number(name)
		if !alive(pid) || listed[pid] != "sleep" {
			f.t.Errorf("%s, %d, was ended or is not listed: %v", name, pid, listed)
		}
		unix.Kill(pid, unix.SIGKILL)
		delete(listed, pid)
	}
	if len(listed) > 0 {
		f.t.Errorf("others are listed: %v", listed)
	}
}

// leftEnds waits until what the report lists as left has ended by itself, and
// writes nothing more.
func (f *field) leftEnds() {
	f.t.Helper()
	for _, p := range *f.report().Lifetime.Left {
		f.eventually(fmt.Sprintf("%s, %d, ends", p.Name, p.PID), func() bool { return !alive(p.PID) })
	}
}

// report returns the report as a program reads it.
func (f *field) report() report.Document {
	f.t.Helper()
	data, err := os.ReadFile(filepath.Join(f.work, "report.json"))
	f.must(err)
	var doc report.Document
	f.must(json.Unmarshal(data, &doc))
	return doc
}

// Promise: with the lifetime leave nothing is ended after the command. What it
// left is listed and changes no exit code. The keeper of a cage with other
// children does not stay for it either.
func TestLeftProcessesAreLeft(t *testing.T) {
	t.Run("", func(t *testing.T) {
		t.Parallel()
		f := newField(t)
		r := f.cage(leaver+`exit 5`, "--lifetime", "leave")
		r.exits(5)
		f.wants("status=ok", "lifetime.mode=leave", "lifetime.mechanism=subreaper", "lifetime.ended=0", "lifetime.proved=false",
			"lifetime.survivors=[]")
		r.says("\n  left running   ")
		f.leftAlone()
	})
	t.Run("beside a foreign child", func(t *testing.T) {
		t.Parallel()
		f := newField(t)
		r, foreign := f.besides(leaver+`echo $PPID >../keeper; echo evil >.env; exit 5`, "--lifetime", "leave")
		r.exits(3)
		f.whole(".env", dotenv)
		f.wants("status=violations_reverted", "lifetime.mechanism=keeper", "lifetime.ended=0")
		if alive(f.number("../keeper")) {
			t.Error("the keeper lingers")
		}
		f.leftAlone()
		f.untouched(foreign)
	})
	t.Run("nothing", func(t *testing.T) {
		t.Parallel()
		f := newField(t)
		f.cage(`exit 5`, "--lifetime", "leave").exits(5)
		f.wants("lifetime.left=[]", "lifetime.proved=true")
	})
}

// Promise: a halt and a signal end everything, also where it might have been
// left.
func TestLeaveIsNoWayOutOfAnEnd(t *testing.T) {
	t.Run("a halt", func(t *testing.T) {
		t.Parallel()
		f := newField(t)
		r := f.cage(`tamper held ../lock sh -c 'setsid sh ../stubborn.sh & while :; do echo evil >>.env; sleep 0.05; done'`,
			"--lifetime", "leave", "--contest-limit", "1", "--grace", "50ms")
		r.exits(4)
		f.free()
		f.wants("status=halted", "lifetime.mode=leave", "lifetime.proved=true", "lifetime.left=null")
	})
	t.Run("a signal", func(t *testing.T) {
		t.Parallel()
		f := newField(t)
		r := f.cage(`tamper held ../lock sh ../stubborn.sh`, "--lifetime", "leave", "--grace", "50ms")
		f.appears("ready")
		r.signal(syscall.SIGTERM)
		r.exits(128 + int(syscall.SIGTERM))
		f.free()
		f.wants("trapped_signal=SIGTERM", "lifetime.proved=true", "lifetime.left=null")
	})
}

// Promise: a killed cage leaves such a command running, and nobody guards it.
// So the next start ends it before it puts the files back.
func TestKilledCageLeavesTheCommand(t *testing.T) {
	for name, start := range map[string]func(f *field, script string, flags ...string) *run{
		"": (*field).cage,
		"beside a foreign child": func(f *field, script string, flags ...string) *run {
			r, _ := f.besides(script, flags...)
			return r
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newField(t)
			r := start(f, leaver+`exec >/dev/null 2>&1; echo $$ >../command; wait`, "--lifetime", "leave")
			command := f.number("../command")
			r.signal(syscall.SIGKILL)
			<-r.over
			f.write(".env", "evil\n")
			if !alive(command) {
				t.Error("the command has ended")
			}
			next := f.cage(`:`)
			next.exits(0)
			next.says("1 file put back, 3 processes ended")
			for _, name := range []string{"../command", "../child", "../detached"} {
				if alive(f.number(name)) {
					t.Errorf("%s lives", name)
				}
			}
			f.whole(".env", dotenv)
		})
	}
}

// Promise: what a command had left when it ended is left also where the cage is
// killed before it was done.
func TestKilledCageLeavesWhatWasLeft(t *testing.T) {
	t.Parallel()
	f := newField(t)
	for i := range 500 { // so that the last check takes a while
		f.write(fmt.Sprintf("%d/.env", i), dotenv)
	}
	const watcher = `sh -c 'until grep -qs "\"leaves\":true" .git/gantry-cage-journal/life-*.json; do [ -e ../over ] && exit; done; kill -9 '$PPID >/dev/null 2>&1 &`
	killed := func() bool {
		os.Remove(f.path("../over"))
		r := f.cage(leaver+watcher, "--lifetime", "leave")
		<-r.over
		f.write("../over", "")
		_, missing := os.Lstat(f.path(".git/gantry-cage-journal/session.json"))
		return r.cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled() && missing == nil
	}
	files := []string{"../child", "../detached"}
	for !killed() { // the last check was faster
		for _, name := range files {
			f.outlives(name, true)
			f.must(os.Remove(f.path(name)))
		}
	}
	f.write(".env", "evil\n")
	next := f.cage(`:`)
	next.exits(0)
	next.says("1 file put back")
	f.whole(".env", dotenv)
	f.wants("recovery.processes_ended=0")
	for _, name := range files {
		f.outlives(name, true)
	}
}

// Promise: a session leaves nothing of a command that does all it can against its
// end. What lived would hold the cage's output open, and the test waits for the
// end of that.
func TestTorturedSessionLeavesNothing(t *testing.T) {
	if os.Getenv("CAGE_REPEAT") == "" {
		t.Skip("its storms want the machine to themselves: set CAGE_REPEAT to the number of rounds")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range torture.Parts() {
		for _, lifetime := range []string{"run", "tree"} {
			t.Run(part.Name+", "+lifetime, func(t *testing.T) {
				for range repeats(t, 1) {
					f := newField(t)
					flags := []string{"--report-file", "../report.json", "--grace", "50ms", "--lifetime", lifetime, "--", self}
					r := f.prepare("cage", append(flags, part.Args()...)...)
					r.begin()
					r.exits(0)
					f.wants("status=ok", "lifetime.proved=true", "lifetime.survivors=[]")
				}
			})
		}
	}
}

// Promise: a cage works in a run that refuses sessions, too.
func TestCageInARun(t *testing.T) {
	t.Parallel()
	f := newField(t)
	other := newField(t)
	r := f.cage(fmt.Sprintf(`cd %q && cage --lifetime run -- sh -c 'echo evil >.env; exit 5'; exit $?`, other.repo), "--lifetime", "run")
	r.exits(3)
	other.whole(".env", dotenv)
	r.says("1 protected file changed, it is back")
	f.wants("status=ok", "lifetime.proved=true")
}

// Promise: with the lifetime run a process that asks for a session of its own
// is told no, so that no daemon is made; other work goes on.
func TestNoDaemonInARun(t *testing.T) {
	t.Parallel()
	f := newField(t)
	r := f.cage(`tamper held ../lock sh -c 'setsid sleep 1000 && exit 1; (sleep 1000 &); exit 5' 2>../said`, "--lifetime", "run")
	r.exits(5)
	f.free()
	f.wants("status=ok", "lifetime.mode=run", "lifetime.ended=1", "lifetime.proved=true", "lifetime.left=null", "lifetime.gaps=[]")
	if said := f.read("../said"); !strings.Contains(said, "Operation not permitted") {
		t.Errorf("it was told %q", said)
	}
}

// Promise: processes that stay are listed in one order, by their numbers, in the
// journal too: the same ones make the same record, which is not written again.
func TestProcessesAreListedInOrder(t *testing.T) {
	t.Parallel()
	f := newField(t)
	r := f.cage(`for i in 1 2 3 4 5 6 7 8; do sleep 1000 >/dev/null 2>&1 & done; while [ ! -e go ]; do sleep 0.02; done`,
		"--lifetime", "leave")
	var recorded []int
	f.eventually("the journal knows all of them", func() bool {
		lives, err := filepath.Glob(f.path(".git/gantry-cage-journal/life-*.json"))
		f.must(err)
		for _, life := range lives {
			var record struct{ Processes []struct{ PID int } }
			data, err := os.ReadFile(life)
			if err != nil || json.Unmarshal(data, &record) != nil || len(record.Processes) < 9 { // gone by now, or an older one
				continue
			}
			for _, p := range record.Processes[1:] { // the first is the command
				recorded = append(recorded, p.PID)
			}
			return true
		}
		return false
	})
	f.write("go", "")
	r.exits(0)
	var left []int
	for _, p := range *f.report().Lifetime.Left {
		left = append(left, p.PID)
		unix.Kill(p.PID, unix.SIGKILL)
	}
	if len(left) != 8 || !slices.IsSorted(left) || !slices.IsSorted(recorded) {
		t.Errorf("left are %v, recorded were %v", left, recorded)
	}
}
