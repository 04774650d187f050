package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const unitName = "cage-watch@.service"

// withProgram has a unit call the cage under test.
func withProgram(t *testing.T, unit string) []byte {
	t.Helper()
	const call = "\nExecStart=cage "
	if !strings.Contains(unit, call) {
		t.Fatalf("the unit does not call the cage:\n%s", unit)
	}
	program, err := exec.LookPath("cage")
	if err != nil {
		t.Fatal(err)
	}
	return []byte(strings.Replace(unit, call, "\nExecStart="+program+" ", 1))
}

// Promise: systemd takes the unit as it is, with a cage where it looks for one.
func TestUnitIsTakenBySystemd(t *testing.T) {
	t.Parallel()
	needs(t, "systemd-analyze")
	dir := t.TempDir()
	file := filepath.Join(dir, unitName)
	if err := os.WriteFile(file, withProgram(t, page(t, filepath.Join("packaging", "systemd", unitName))), 0o600); err != nil {
		t.Fatal(err)
	}
	verify := exec.Command("systemd-analyze", "verify", "--user", "--man=no", file)
	verify.Env = append(os.Environ(), "HOME="+dir, "XDG_RUNTIME_DIR="+dir)
	// What it does not know it ignores, and only says so.
	if out, err := verify.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

// Promise: the unit guards its repository, puts right what was changed when the
// watch was killed, and fails where a protected file was changed.
func TestGuestUnitGuards(t *testing.T) {
	if guest(t) != "scope" {
		t.Skip("about a user")
	}
	f := newField(t)
	escaped, err := exec.Command("systemd-escape", "--path", f.repo).Output()
	f.must(err)
	unit := "cage-watch@" + strings.TrimSpace(string(escaped)) + ".service"
	systemctl := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("systemctl", append([]string{"--user"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("systemctl %v: %v %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	install(t)
	systemctl("daemon-reload")
	t.Cleanup(func() { exec.Command("systemctl", "--user", "stop", unit).Run() })
	begun := func() {
		t.Helper()
		f.eventually("the watch has begun", func() bool {
			_, err := os.Lstat(f.path(".git/gantry-cage-journal/session.json"))
			return err == nil && systemctl("show", "-p", "ActiveState", "--value", unit) == "active"
		})
	}

	systemctl("start", unit)
	begun()
	systemctl("kill", "-s", "KILL", "--kill-who=main", unit)
	f.write(".env", "A=evil\n")
	f.heals(".env", dotenv) // by the next one
	begun()
	systemctl("stop", unit)

	systemctl("start", unit)
	begun()
	systemctl("stop", unit)
	if got := systemctl("show", "-p", "Result", "--value", unit); got != "success" {
		t.Errorf("the result is %s, though nothing was changed", got)
	}

	systemctl("start", unit)
	begun()
	f.write(".env", "A=evil\n")
	f.heals(".env", dotenv)
	systemctl("stop", unit)
	if got := systemctl("show", "-p", "Result,ExecMainStatus", unit); got != "Result=exit-code\nExecMainStatus=3" {
		t.Errorf("it ended with %s", got)
	}
	f.closedUp()
}

// install puts the unit, which test/guest/run laid beside the tests, where the
// user's service manager looks for it, and has it call this cage.
func install(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	unit, err := os.ReadFile(filepath.Join(filepath.Dir(self), unitName))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(os.Getenv("HOME"), ".config", "systemd", "user", unitName)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(file) })
	if err := os.WriteFile(file, withProgram(t, string(unit)), 0o600); err != nil {
		t.Fatal(err)
	}
}
