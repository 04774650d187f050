package session

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// What a cage that was killed was about to note of a root goes with the next
// note about that root, and nothing else does.
func TestPendingNotesAreSwept(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"d34a01", ".d34a0112345", ".d34a01", ".77bc02999", "77bc02"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := sweepPending(filepath.Join(dir, "d34a01")); err != nil {
		t.Fatal(err)
	}
	var left []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		left = append(left, entry.Name())
	}
	if want := []string{".77bc02999", "77bc02", "d34a01"}; !slices.Equal(left, want) {
		t.Errorf("left are %q, want %q", left, want)
	}
}
