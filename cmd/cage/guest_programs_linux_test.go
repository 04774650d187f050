package main

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// moody is a bus that hangs up on its first caller, and is that of the user from
// then on.
type moody struct {
	t    *testing.T
	path string
}

func (m moody) arm() {
	m.t.Helper()
	if err := os.Remove(m.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.t.Fatal(err)
	}
	listener, err := net.Listen("unix", m.path)
	if err != nil {
		m.t.Fatal(err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	go func() {
		defer listener.Close()
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		if err := errors.Join(os.Symlink(userBus, m.path+".new"), os.Rename(m.path+".new", m.path)); err != nil {
			m.t.Error(err)
		}
	}()
}

const userBus = "/run/user/1000/bus"

// Promise: where the bus does not take to the cage, systemd-run and systemctl do
// the same: the limits are proved, what dies of them is told, a killed cage is
// cleaned up after, and the command's streams carry nothing of theirs.
func TestGuestByPrograms(t *testing.T) {
	if guest(t) != "scope" {
		t.Skip("about a user")
	}
	f := newField(t)
	bus := moody{t, filepath.Join(t.TempDir(), "bus")}
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path="+bus.path)
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	// The program that is found is the one that is run.
	bin, calls := t.TempDir(), f.path("../calls")
	f.must(os.WriteFile(filepath.Join(bin, "systemd-run"), []byte("#!/bin/sh\necho \"$*\" >>"+calls+"\nexec /usr/bin/systemd-run \"$@\"\n"), 0o755))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	byPrograms := func() {
		t.Helper()
		if said := f.read("../calls"); !strings.Contains(said, "--unit=cage-session-") {
			t.Errorf("systemd-run was called with %q", said)
		}
		f.must(os.Remove(calls))
	}
	for _, terminal := range []string{"foreground", "pty"} {
		bus.arm()
		r := f.cage(hog(500)+`; echo $? >../code; cat /proc/self/cgroup >../group; exit 5`,
			"--memory-max", "256M", "--scope", "require", "--tty", terminal)
		r.exits(5)
		byPrograms()
		f.wants("resources.mode=scope", "resources.memory_max=268435456", "resources.oom_kills=1", "resources.oom_limit=own", "lifetime.proved=true")
		if code := strings.TrimSpace(f.read("../code")); code != "137" {
			t.Errorf("with %s the child ended with %s", terminal, code)
		}
		if group := f.report().Resources.Group; group == nil || !strings.Contains(f.read("../group"), *group) {
			t.Errorf("with %s the group is %v, the command was in %s", terminal, group, f.read("../group"))
		}
		f.noGroups()
	}
	bus.arm()
	r, foreign := f.besides("exit 5", "--tasks-max", "20", "--scope", "require", "--lifetime", "run")
	r.exits(5)
	byPrograms()
	f.untouched(foreign)
	f.wants("lifetime.mechanism=keeper", "resources.mode=scope", "resources.tasks_max=20")
	f.noGroups()

	bus.arm()
	r = f.cage(stubborn, "--memory-max", "64M")
	f.appears("ready")
	byPrograms()
	r.signal(syscall.SIGKILL)
	f.eventually("the cage is dead", func() bool { return !alive(r.cmd.Process.Pid) })
	if len(groupsOfCages(t)) == 0 {
		t.Fatal("nothing is left to sweep")
	}
	bus.arm()
	f.cage("exit 0").exits(0)
	f.noGroups()
}

// Promise: a limit that the service manager takes and then does not hold is none:
// who requires it gets none of the command, anybody else is told.
func TestGuestLimitDoesNotHold(t *testing.T) {
	if guest(t) != "scope" {
		t.Skip("about a user")
	}
	f := newField(t)
	dropin := filepath.Join(os.Getenv("HOME"), ".config/systemd/user/cage-session-.scope.d")
	f.must(os.MkdirAll(dropin, 0o755))
	f.must(os.WriteFile(filepath.Join(dropin, "50-none.conf"), []byte("[Scope]\nMemoryMax=infinity\n"), 0o644))
	reload := func() {
		if said, err := exec.Command("systemctl", "--user", "daemon-reload").CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, said)
		}
	}
	reload()
	t.Cleanup(func() {
		os.RemoveAll(dropin)
		reload()
	})
	r := f.cage(": >../ran", "--memory-max", "64M", "--scope", "require")
	r.exits(2)
	r.says("the limits cannot be enforced: no scope: memory.max reads back as max, not 67108864")
	if _, err := os.Lstat(f.path("../ran")); err == nil {
		t.Error("the command ran")
	}
	r = f.cage(": >../ran; exit 6", "--memory-max", "64M")
	r.exits(6)
	r.says("memory.max reads back as max, not 67108864")
	f.wants("resources.mode=nice-only", "resources.memory_max=null")
	f.noGroups()
}
