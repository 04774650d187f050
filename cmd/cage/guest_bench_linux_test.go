package main

import (
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"
)

// BenchmarkGuestStart measures what limits add to the start and end of a session,
// beside a bare systemd-run that does nothing. The contenders take turns.
func BenchmarkGuestStart(b *testing.B) {
	if os.Getenv("CAGE_GUEST") != "user" {
		b.Skip("needs the guest of test/guest/run")
	}
	root := b.TempDir()
	if said, err := exec.Command("git", "init", "-q", root).CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, said)
	}
	contenders := []struct {
		name string
		argv []string
	}{
		{"true", []string{"true"}},
		{"systemd-run", []string{"systemd-run", "--user", "--scope", "--quiet", "--property=MemoryMax=64M", "true"}},
		{"cage", []string{"cage", "--", "true"}},
		{"cage-with-limits", []string{"cage", "--memory-max", "64M", "--scope", "require", "--", "true"}},
	}
	took := make([][]time.Duration, len(contenders))
	for b.Loop() {
		for i, c := range contenders {
			cmd := exec.Command(c.argv[0], c.argv[1:]...)
			cmd.Dir = root
			began := time.Now()
			if said, err := cmd.CombinedOutput(); err != nil {
				b.Fatalf("%s: %v: %s", c.name, err, said)
			}
			took[i] = append(took[i], time.Since(began))
		}
	}
	median := func(i int) float64 {
		slices.Sort(took[i])
		return float64(took[i][len(took[i])/2].Microseconds()) / 1000
	}
	for i, c := range contenders {
		b.ReportMetric(median(i), "ms-"+c.name)
	}
	b.ReportMetric(median(3)-median(2), "ms-added")
	b.ReportMetric((median(3)-median(2))/(median(1)-median(0)), "systemd-runs-added")
}
