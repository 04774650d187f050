package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// guest skips unless test/guest/run started this, and returns which mode a cage
// has there: a user has a service manager, root has none.
func guest(t *testing.T) string {
	switch os.Getenv("CAGE_GUEST") {
	case "user":
		return "scope"
	case "root":
		return "cgroup"
	default:
		t.Skip("needs the guest of test/guest/run")
		return ""
	}
}

// hog is a command that takes so many mebibytes at once.
func hog(mebibytes int) string { return fmt.Sprintf(`perl -e '$x = "a" x (%d << 20)'`, mebibytes) }

// groupsOfCages are the control groups that cages have made.
func groupsOfCages(t *testing.T) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && strings.HasPrefix(entry.Name(), "cage-session-") {
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func (f *field) noGroups() {
	f.t.Helper()
	f.eventually("no group is left", func() bool { return len(groupsOfCages(f.t)) == 0 })
}

// Promise: an agent whose child takes too much reads 137 from it, goes on and
// ends with its own code; the report names the child, the limit and the peak.
// A machine that is slow enough may hide the child, but not every time.
func TestGuestAgentGoesOn(t *testing.T) {
	mode := guest(t)
	const tries = 3
	for range tries {
		f := newField(t)
		r := f.cage(hog(500)+`; echo $? >../code; cat /proc/self/cgroup >../group; exit 0`, "--memory-max", "256M", "--tasks-max", "100")
		r.exits(0)
		resources := f.report().Resources
		if resources.Group == nil {
			t.Fatalf("it has no group: %s", &r.stderr)
		}
		if code := strings.TrimSpace(f.read("../code")); code != "137" {
			t.Errorf("the child ended with %s", code)
		}
		f.wants("status=ok", "resources.mode="+mode, "resources.memory_max=268435456", "resources.tasks_max=100", "resources.cpu_weight=null",
			"resources.oom_kills=1", "resources.oom_limit=own", "resources.oom_group=null", "resources.tasks_refused=0", "lifetime.proved=true")
		if !strings.Contains(f.read("../group"), *resources.Group) {
			t.Errorf("the group is %s, the command was in %s", *resources.Group, f.read("../group"))
		}
		r.says("1 process was killed by the run's limit of 256 MiB")
		f.noGroups()
		if len(resources.Killed) == 1 {
			if resources.Killed[0].Name != "perl" {
				t.Errorf("killed: %+v", resources.Killed)
			}
			return
		}
	}
	t.Errorf("in %d runs nobody is named", tries)
}

// Promise: a command that dies itself by its limit says so, and one that meets
// its limit of tasks is told of; both also under a keeper and where nothing may
// make itself a daemon.
func TestGuestCommandDies(t *testing.T) {
	guest(t)
	f := newField(t)
	r := f.cage("exec "+hog(120), "--memory-max", "48M", "--lifetime", "run")
	r.exits(137)
	f.wants("status=ok", "command_signal=SIGKILL", "resources.oom_kills=1", "resources.oom_limit=own")
	r = f.cage(": >../ran", "--memory-max", "4K")
	<-r.over
	if doc := f.report(); doc.Resources.OOMKills == 0 && (doc.RuntimeError == nil || !strings.Contains(*doc.RuntimeError, "memory")) {
		t.Errorf("with one page: %s", &r.stderr)
	}
	if _, err := os.Lstat(f.path("../ran")); err == nil {
		t.Error("the command ran in one page")
	}
	r, foreign := f.besides(`for i in $(seq 30); do sleep 100 & done; exit 0`, "--tasks-max", "12", "--scope", "require")
	<-r.over
	f.untouched(foreign)
	f.wants("lifetime.mechanism=keeper", "lifetime.proved=true", "resources.tasks_max=12", "resources.memory_max=null")
	if f.report().Resources.TasksRefused == 0 {
		t.Error("no process was refused")
	}
	r.says("the limit is 12 processes and threads")
	f.noGroups()
}

// Promise: the command has the limits whatever terminal it gets.
func TestGuestTerminals(t *testing.T) {
	mode := guest(t)
	f := newField(t)
	for _, terminal := range []string{"none", "inherit", "pty"} {
		r := f.cage(`cat /sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)/memory.max >../max`, "--memory-max", "64M", "--tty", terminal)
		r.exits(0)
		f.wants("resources.mode=" + mode)
		if got := strings.TrimSpace(f.read("../max")); got != "67108864" {
			t.Errorf("with %s the limit is %s", terminal, got)
		}
	}
	f.noGroups()
}

// Promise: a processor weight is in force, or named as not, or required in vain.
func TestGuestWeight(t *testing.T) {
	guest(t)
	f := newField(t)
	const script = `cat /sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)/cpu.weight >../weight 2>/dev/null; exit 4`
	f.cage(script, "--cpu-weight", "42").exits(4)
	f.wants("resources.memory_max=null", "resources.tasks_max=512")
	if len(f.report().Resources.Gaps) == 0 {
		f.wants("resources.cpu_weight=42")
		if got := strings.TrimSpace(f.read("../weight")); got != "42" {
			t.Errorf("the weight is %q", got)
		}
		return
	}
	f.wants("resources.cpu_weight=null")
	r := f.cage(": >../ran", "--cpu-weight", "42", "--scope", "require")
	r.exits(2)
	r.says("was not given the controller cpu")
	if _, err := os.Lstat(f.path("../ran")); err == nil {
		t.Error("the command ran")
	}
}

// Promise: what a killed cage left running ends with the next start in its root,
// or of any cage with limits elsewhere, deaf to SIGTERM or not.
func TestGuestKilledCage(t *testing.T) {
	guest(t)
	for name, next := range map[string]func(f *field) *run{
		"same root": func(f *field) *run { return f.cage("exit 0") },
		"another root": func(f *field) *run {
			other := newField(f.t)
			return other.cage("exit 0", "--memory-max", "64M")
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newField(t)
			r := f.cage(stubborn, "--memory-max", "64M")
			f.appears("ready")
			r.signal(syscall.SIGKILL)
			// Its output is held open by what it has left.
			f.eventually("the cage is dead", func() bool { return !alive(r.cmd.Process.Pid) })
			if len(groupsOfCages(t)) == 0 {
				t.Fatal("nothing is left to sweep")
			}
			next(f).exits(0)
			f.noGroups()
			f.cage("exit 0").exits(0) // recovers, where the other root did not
		})
	}
}

// Promise: told to end at any moment of its start, a session has run its command
// or says that it has not, and leaves no group.
func TestGuestEarlyEnd(t *testing.T) {
	guest(t)
	f := newField(t)
	for step := range 6 {
		for _, old := range []string{"ran", "report.json", "tmp"} {
			f.must(os.RemoveAll(filepath.Join(f.work, old)))
		}
		f.must(os.Mkdir(filepath.Join(f.work, "tmp"), 0o700))
		r := f.cage(`: >../ran; sleep 100`, "--memory-max", "64M", "--grace", "100ms")
		f.eventually("it watches, or has ended", func() bool {
			select {
			case <-r.over:
				return true
			default:
				return strings.Contains(f.events(), `"session_start"`)
			}
		})
		time.Sleep(time.Duration(step) * 20 * time.Millisecond)
		r.signal(syscall.SIGTERM)
		<-r.over
		_, err := os.Lstat(f.path("../ran"))
		if doc := f.report(); doc.RuntimeError != nil && err == nil {
			t.Errorf("step %d: it ran, and the report says %q", step, *doc.RuntimeError)
		}
	}
	f.noGroups()
}

// Promise: a user without a service manager is told what is missing, and one who
// requires limits gets none of the command.
func TestGuestWithoutManager(t *testing.T) {
	if guest(t) != "scope" {
		t.Skip("about a user")
	}
	f := newField(t)
	t.Setenv("XDG_RUNTIME_DIR", f.work)
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	r := f.cage("exit 6", "--memory-max", "64M")
	r.exits(6)
	f.wants("resources.mode=nice-only")
	r.says("no scope: the service manager of this user does not answer in " + f.work)
	r = f.cage(": >../ran", "--memory-max", "64M", "--scope", "require")
	r.exits(2)
	if _, err := os.Lstat(f.path("../ran")); err == nil {
		t.Error("the command ran")
	}
}
