package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Promise: systemd takes the unit as it is, with a cage where it looks for one.
func TestUnitIsTakenBySystemd(t *testing.T) {
	t.Parallel()
	needs(t, "systemd-analyze")
	const name = "cage-watch@.service"
	unit := page(t, filepath.Join("packaging", "systemd", name))
	const call = "\nExecStart=cage "
	if !strings.Contains(unit, call) {
		t.Fatalf("the unit does not call the cage:\n%s", unit)
	}
	program, err := exec.LookPath("cage")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(strings.Replace(unit, call, "\nExecStart="+program+" ", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	verify := exec.Command("systemd-analyze", "verify", "--user", "--man=no", file)
	verify.Env = append(os.Environ(), "HOME="+dir, "XDG_RUNTIME_DIR="+dir)
	// What it does not know it ignores, and only says so.
	if out, err := verify.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}
