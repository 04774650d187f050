package session

import "io"

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

// stop waits until everything has rung.
func (b bell) stop() {
	if b.rings != nil {
		close(b.rings)
		<-b.stopped
	}
}
