//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package proc

import (
	"errors"
	"os"
)

// Strays refuses: the environments of other processes cannot be read here.
func Strays(string, uint64) ([]Process, error) { return nil, errors.ErrUnsupported }

// Ancestors returns this process and its parent; what is above that cannot be
// listed everywhere.
func Ancestors() (map[int]bool, error) {
	return map[int]bool{os.Getpid(): true, os.Getppid(): true}, nil
}
