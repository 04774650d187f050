//go:build !linux

package torture

// Main has nothing to do: there is no torture on this system.
func Main() {}
