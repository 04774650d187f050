package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// withoutGroups skips where the machine has what these scenarios lack.
func withoutGroups(t *testing.T) {
	var at unix.Statfs_t
	if unix.Statfs("/sys/fs/cgroup", &at) == nil && at.Type == unix.CGROUP2_SUPER_MAGIC {
		t.Skip("this machine has cgroup version 2")
	}
}

// showNiceness is a script that notes the niceness that it runs with.
const showNiceness = `cut -d' ' -f19 /proc/self/stat >../nice; exit 5`

// Promise: where the limits cannot be enforced the user is told in one line what
// is missing, and the command really is reniced, however it is held; one who
// requires the limits gets that reason, and nothing runs.
func TestMachineWithoutControlGroups(t *testing.T) {
	withoutGroups(t)
	const lack = "/sys/fs/cgroup is not cgroup version 2"
	inverse, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	own := 20 - inverse
	told := func(t *testing.T, r *run) {
		t.Helper()
		r.exits(5)
		if got, want := strings.TrimSpace(r.read("../nice")), fmt.Sprint(max(10, own)); got != want {
			t.Errorf("the niceness is %s, want %s", got, want)
		}
		r.wants("status=ok", "resources.mode=nice-only", "resources.group=null", "resources.memory_max=null", "resources.oom_kills=0")
		if reason := r.report().Resources.Reason; reason == nil || !strings.HasPrefix(*reason, lack) {
			t.Errorf("the reason is %v", reason)
		}
		if n := strings.Count(r.stderr.String(), lack); n != 1 {
			t.Errorf("it is said %d times:\n%s", n, &r.stderr)
		}
	}
	for name, flags := range map[string][]string{
		"memory": {"--memory-max", "1G"}, "tasks": {"--tasks-max", "64"}, "weight": {"--cpu-weight", "50"}, "scope": {"--scope", "auto"},
		"run": {"--memory-max", "25%", "--lifetime", "run"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told(t, newField(t).cage(showNiceness, flags...))
		})
	}
	t.Run("beside a foreign child", func(t *testing.T) {
		t.Parallel()
		f := newField(t)
		r, foreign := f.besides(showNiceness, "--memory-max", "auto")
		told(t, r)
		f.untouched(foreign)
	})
	t.Run("required", func(t *testing.T) {
		t.Parallel()
		f := newField(t)
		r := f.cage(`: >../ran`, "--memory-max", "1G", "--scope", "require")
		r.exits(2)
		r.says("cage: [GXT_CAGE_RESOURCES_UNAVAILABLE] the limits cannot be enforced: " + lack)
		f.wants("status=failed", "error_code=GXT_CAGE_RESOURCES_UNAVAILABLE")
		if _, err := os.Lstat(f.path("../ran")); err == nil {
			t.Error("the command ran")
		}
	})
	t.Run("not asked for", func(t *testing.T) {
		t.Parallel()
		f := newField(t)
		for _, flags := range [][]string{nil, {"--scope", "off"}} {
			r := f.cage(showNiceness, flags...)
			r.exits(5)
			f.wants("resources.mode=off", "resources.reason=null")
			if strings.Contains(r.stderr.String(), "warning") {
				t.Errorf("it warns: %s", &r.stderr)
			}
		}
	})
}
