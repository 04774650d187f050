//go:build !linux

package watch

// deferRelease has nothing to do: here closing does not wait.
func deferRelease() (collect func()) { return func() {} }
