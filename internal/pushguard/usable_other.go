//go:build !linux

package pushguard

// Usable cannot tell here before a guard is made.
func Usable(string) error { return nil }
