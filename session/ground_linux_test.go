package session

import (
	"testing"

	"cage/internal/proc"
	"cage/internal/program"
)

// Promise: a helper gets every argument, its environment and its input, and
// nothing else.
func TestHelperGetsWhatItIsGiven(t *testing.T) {
	reaper, err := proc.NewReaper()
	if err != nil {
		t.Fatal(err)
	}
	defer reaper.Close()
	g := ground{reaper: reaper}
	result, err := g.runHelper(t.Context(), program.Call{
		Path: "/bin/sh", Args: []string{"-c", `echo "$0 $1 $A"; cat; pwd; echo no >&2; exit 3`, "first", "second"},
		Env: []string{"A=b"}, Dir: "/", Stdin: []byte("in\n"),
	})
	if err != nil || string(result.Stdout) != "first second b\nin\n/\n" || string(result.Stderr) != "no\n" || result.ExitCode != 3 {
		t.Errorf("%q, %q, %d, %v", result.Stdout, result.Stderr, result.ExitCode, err)
	}
	if _, err := g.runHelper(t.Context(), program.Call{Path: "/bin/sh", Args: []string{"-c", "kill -9 $$"}, Dir: "/"}); err == nil {
		t.Error("one that was killed has answered")
	}
}
