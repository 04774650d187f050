package proc

import (
	"os/exec"
	"testing"
)

// TestNewestTellsOfBirths: whoever finds the same number twice has missed no
// process.
func TestNewestTellsOfBirths(t *testing.T) {
	for range 20 {
		before := Newest()
		if before == 0 {
			t.Skip("this system does not tell")
		}
		if err := exec.Command("true").Run(); err != nil {
			t.Fatal(err)
		}
		if Newest() == before {
			t.Fatal("a process was born unnoticed")
		}
	}
}
