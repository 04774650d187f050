//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package proc

// Attach refuses with ErrNoAttach.
func Attach(int) (Program, error) { return nil, ErrNoAttach }
