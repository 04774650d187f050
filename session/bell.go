package session

import (
	"io"
	"time"
)

// maxRings is how many rings wait for a terminal that takes none; what comes
// on top of them would only make it louder.
const maxRings = 64

// bell rings beside the session: a terminal that was stopped (Ctrl-S) or a pipe
// that nobody reads keeps whoever writes to it waiting, and that must not be
// the one who halts the command. The zero bell is silent.
type bell struct {
	rings   chan struct{}
	stopped chan struct{}
}

func newBell(out io.Writer) bell {
	b := bell{rings: make(chan struct{}, maxRings), stopped: make(chan struct{})}
	go func() {
		defer close(b.stopped)
		for range b.rings {
			out.Write([]byte{'\a'}) // nobody to tell if it fails
		}
	}()
	return b
}

func (b bell) ring() {
	select {
	case b.rings <- struct{}{}:
	default:
	}
}

// lastRing is how long the end of a session waits for its bell.
const lastRing = time.Second

// stop lets what waits ring, so that it comes before whatever is written next,
// unless nobody takes it.
func (b bell) stop() {
	if b.rings == nil {
		return
	}
	close(b.rings)
	select {
	case <-b.stopped:
	case <-time.After(lastRing):
	}
}
