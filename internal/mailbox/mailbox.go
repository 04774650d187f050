// Package mailbox holds what one goroutine tells another until that takes it.
//
// It promises that whoever tells never waits, that what was told is taken in
// order, each once, and that Ready is heard after the last Put that no Take has
// followed. It does not bound how much waits.
package mailbox

import "sync"

// Box is safe for concurrent use. It is made by New.
type Box[T any] struct {
	ready   chan struct{}
	mu      sync.Mutex
	waiting []T
}

// New returns an empty box.
func New[T any]() *Box[T] { return &Box[T]{ready: make(chan struct{}, 1)} }

// Put tells.
func (b *Box[T]) Put(one T) {
	b.mu.Lock()
	b.waiting = append(b.waiting, one)
	b.mu.Unlock()
	select {
	case b.ready <- struct{}{}:
	default: // it is said already
	}
}

// Ready delivers when there may be something to Take.
func (b *Box[T]) Ready() <-chan struct{} { return b.ready }

// Take returns what was put since the last call.
func (b *Box[T]) Take() []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.waiting
	b.waiting = nil
	return taken
}
