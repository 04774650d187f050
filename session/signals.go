package session

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"cage/internal/console"
)

// signals are those that end a session. They are taken from its first moment
// to its report, so that none can end the cage half way.
type signals struct {
	// orders end the session at any time.
	orders chan os.Signal
	// keys do so too unless they come from a terminal: then, once the command
	// runs, they are the command's, which they reach through the foreground
	// process group.
	keys     chan os.Signal
	commands bool
	// continued tells that the cage was stopped.
	continued chan os.Signal
}

// listen takes the signals that end a session. What was ignored when the cage
// started stays ignored. SIGPIPE is taken so that a reader who goes away
// cannot end the cage before the restore, and never given up again, because
// the report is written later; a handler, unlike an ignored signal, is not
// inherited by the command.
func listen(stdin *os.File, shared bool) *signals {
	s := &signals{
		orders: make(chan os.Signal, 4), keys: make(chan os.Signal, 4), continued: make(chan os.Signal, 1),
		commands: shared && console.IsTerminal(stdin),
	}
	s.takeEnding()
	take(s.continued, syscall.SIGCONT)
	take(make(chan os.Signal, 1), syscall.SIGPIPE)
	return s
}

// takeEnding takes the signals that end a session.
func (s *signals) takeEnding() {
	take(s.orders, syscall.SIGTERM, syscall.SIGHUP)
	take(s.keys, syscall.SIGINT, syscall.SIGQUIT)
}

func take(c chan os.Signal, wanted ...os.Signal) {
	for _, sig := range wanted {
		if !signal.Ignored(sig) {
			signal.Notify(c, sig)
		}
	}
}

func (s *signals) stop() {
	signal.Stop(s.orders)
	signal.Stop(s.keys)
	signal.Stop(s.continued)
}

// beforeCommand returns a context that the first signal ends, whatever its
// kind: there is no command yet that it could be for. A second one ends the
// program: nothing has happened that would have to be undone. It lasts until
// begun is called, which returns the signal that came.
func (s *signals) beforeCommand(ctx context.Context) (start context.Context, begun func() os.Signal) {
	start, cancel := context.WithCancel(ctx)
	came, over := make(chan os.Signal, 1), make(chan struct{})
	go func() {
		defer close(came)
		defer cancel()
		select {
		case sig := <-s.orders:
			came <- sig
		case sig := <-s.keys:
			came <- sig
		case <-over:
			return
		}
		signal.Reset(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT)
	}()
	return start, func() os.Signal {
		close(over)
		if sig := <-came; sig != nil {
			return sig
		}
		return first(s.orders, s.keys)
	}
}

// resume has a signal that came before begun taken like a later one, and takes
// those again that were given up for it; nil is none.
func (s *signals) resume(came os.Signal) {
	if came == nil {
		return
	}
	s.takeEnding()
	select {
	case s.orders <- came:
	default: // others wait, which order the same
	}
}

// fromKeys returns the keys of the keyboard where they end the session.
func (s *signals) fromKeys() <-chan os.Signal {
	if s.commands {
		return nil
	}
	return s.keys
}

// late returns a signal that has come and was not taken, or nil.
func (s *signals) late() os.Signal { return first(s.orders, s.fromKeys()) }

func first(orders, keys <-chan os.Signal) os.Signal {
	select {
	case sig := <-orders:
		return sig
	case sig := <-keys:
		return sig
	default:
		return nil
	}
}

// interrupted is the refusal of a session that was ended before its command, or
// of a watch before it began.
func (s *session) interrupted(by string) error {
	when := "before the command was started"
	if s.watching != nil {
		when = "before the watch had begun"
	}
	return refusal(codeInterrupted, "start it again", fmt.Errorf("%s came %s", by, when))
}

func signalName(sig os.Signal) string {
	number, ok := sig.(syscall.Signal)
	if !ok {
		return sig.String()
	}
	if name := unix.SignalName(number); name != "" {
		return name
	}
	return number.String()
}
