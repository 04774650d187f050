package spawn

import (
	"fmt"
	"slices"
)

// firstNamed is the first descriptor that is no standard stream.
const firstNamed = 3

// checkDescriptors refuses what cannot be handed on by its number.
func (c Command) checkDescriptors() error {
	for _, fd := range c.Descriptors {
		if fd < firstNamed {
			return &StartError{Name: c.Path, Reason: fmt.Sprintf("descriptor %d is a standard stream, which it has anyway", fd)}
		}
		if err := isOpen(fd); err != nil {
			return &StartError{Name: c.Path, Reason: fmt.Sprintf("descriptor %d, which it is to get, is not open", fd), Err: err}
		}
	}
	return nil
}

// named is what a command gets beside the standard streams.
func named(descriptors []int) map[int]uintptr {
	same := make(map[int]uintptr, len(descriptors))
	for _, fd := range descriptors {
		same[fd] = uintptr(fd)
	}
	return same
}

// freeDescriptor returns a number that none of the descriptors has.
func freeDescriptor(taken []int) int {
	fd := firstNamed
	for slices.Contains(taken, fd) {
		fd++
	}
	return fd
}
