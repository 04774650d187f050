package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Promise: no name reaches the terminal as an order, in any line about an error.
func TestComplaintsAreHarmless(t *testing.T) {
	demo := exec.Command("cage", "demo")
	demo.Env = append(os.Environ(), "TMPDIR=/nowhere\x1b[2J")
	out, err := demo.CombinedOutput()
	text := string(out)
	if err == nil || !strings.HasPrefix(text, "cage: ") || !strings.Contains(text, `nowhere\x1b[2J`) || strings.Contains(text, "\x1b") {
		t.Errorf("%v: %q", err, text)
	}
}
