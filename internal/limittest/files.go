//go:build linux || darwin || freebsd || netbsd || openbsd

// Package limittest takes from tests what a program can run out of. It is not
// part of the program.
package limittest

import (
	"testing"

	"golang.org/x/sys/unix"
)

// NoFiles lets the test program open nothing more, until restored is called or
// the test ends. What is open stays so. It is for tests that run alone.
func NoFiles(t *testing.T) (restored func()) {
	t.Helper()
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &own); err != nil {
		t.Fatal(err)
	}
	restored = func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &own); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: own.Max}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(restored)
	return restored
}
