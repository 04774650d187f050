//go:build linux || darwin || freebsd || netbsd || openbsd

// Package limittest takes from tests what a program can run out of. It is not
// part of the program. Its limits are the whole test program's, so that a test
// which uses them runs alone.
package limittest

import (
	"testing"

	"golang.org/x/sys/unix"
)

// NoFiles lets the test open nothing more, until restored is called or the test
// ends. What is open stays so.
func NoFiles(t *testing.T) (restored func()) {
	t.Helper()
	return bound(t, 0)
}

// MoreFiles lets the test have so many more files open than it has now, until
// restored is called or the test ends.
func MoreFiles(t *testing.T, more int) (restored func()) {
	t.Helper()
	next, err := unix.Open("/", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(next)
	return bound(t, next+more)
}

// bound lets descriptors have only numbers below one.
func bound(t *testing.T, below int) (restored func()) {
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
	little := unix.Rlimit{Max: own.Max}
	for range below { // its type is another one on other systems
		little.Cur++
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &little); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(restored)
	return restored
}
