package session

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// signals are those that concern a session.
type signals struct{ c chan os.Signal }

// listen takes the signals that end a session, and keeps away from the cage
// those that are the command's: on a terminal SIGINT and SIGQUIT reach it
// through the foreground process group. What was ignored when the cage started
// stays ignored. SIGPIPE is taken so that a reader who goes away cannot end the
// cage before the restore; a handler, unlike an ignored signal, is not
// inherited by the command.
func listen(stdin *os.File) signals {
	s := signals{c: make(chan os.Signal, 8)}
	taken := []os.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT}
	dropped := []os.Signal{syscall.SIGPIPE}
	if stdin != nil && term.IsTerminal(int(stdin.Fd())) {
		taken, dropped = taken[:2], append(dropped, taken[2:]...)
	}
	for _, sig := range taken {
		if !signal.Ignored(sig) {
			signal.Notify(s.c, sig)
		}
	}
	for _, sig := range dropped {
		if !signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	return s
}

func (s signals) stop() { signal.Stop(s.c) }

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
