package session

import (
	"context"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"cage/internal/console"
	"cage/spawn"
)

// passTerminal begins to pass a command's own pseudo-terminal on to the streams.
func (s *session) passTerminal() {
	if pty := s.run.PTY(); pty != nil {
		s.proxy = s.console.Pass(pty, s.Stdin, s.Stdout)
	}
}

// screen says how a new pseudo-terminal is to be: like the user's, and where
// nobody types without an echo.
func (s *session) screen() spawn.Screen {
	return spawn.Screen{Like: s.console.Screen(), Silent: !console.IsTerminal(s.Stdin)}
}

// stopsWith reports whether the cage stops where the command was stopped by sig:
// it was so by the keyboard of a terminal that they share.
func (s *session) stopsWith(sig syscall.Signal) bool {
	shared := s.Terminal == spawn.Foreground || s.Terminal == spawn.NewPTY
	return shared && s.console.StopsWithCommand(sig)
}

// suspend stops the cage where its terminal stopped the command, so that the
// shell gets the terminal, and continues the command when the shell continues
// the cage.
func (s *session) suspend(ctx context.Context, sig syscall.Signal) {
	if s.endingStarted || !s.stopsWith(sig) || !s.run.Command().MayBeStopped() {
		return
	}
	if s.live() {
		s.guard.CatchUp(ctx)
	}
	if s.proxy == nil {
		s.console.Stop(sig)
	} else {
		s.proxy.Pause()
		console.StopGroup(sig)
		s.proxy.Resume()
	}
	s.continueCommand()
}

// continueCommand continues the command with the processes of its group. Of
// those that share the cage's own group the shell has continued the same.
func (s *session) continueCommand() {
	group, err := unix.Getpgid(s.run.Command().PID)
	if err != nil {
		return // it has ended
	}
	processes, err := s.run.Processes()
	if err != nil {
		s.log.WatchError(err)
	}
	for _, p := range processes {
		if of, err := unix.Getpgid(p.PID); err == nil && of == group {
			_ = p.Continue() // one that has ended needs none
			if s.proxy != nil {
				_ = p.Signal(unix.SIGWINCH) // what stood on the screen is gone
			}
		}
	}
}

// catchUpAfterStop compares everything at once: while the cage was stopped
// nobody watched, and somebody else had the terminal.
func (s *session) catchUpAfterStop(ctx context.Context) {
	s.proxy.Resume()
	if s.live() {
		s.guard.Rescan(ctx)
	}
}

// putTerminalInOrder comes when everything else is done, because writing to a
// terminal that is stopped (Ctrl-S) waits.
func (s *session) putTerminalInOrder() {
	if s.proxy != nil {
		s.proxy.Finish(s.ended.Proved)
		s.awaitOutput()
		s.proxy.Release()
		s.tellLost()
	}
	killed := s.cutShort || s.exit != nil && s.exit.Signal != 0
	s.console.Restore(killed)
	s.console.Close()
}

// tellLost warns where some of the command's output is lost, which the command
// could not hear of: it has written to its terminal.
func (s *session) tellLost() {
	if err := s.proxy.Lost(); err != nil {
		s.tell(fmt.Sprintf("what the command printed is not complete: %v", err))
	}
}

// awaitOutput waits until the command's last output has gone where it should, or
// somebody wants the cage to end.
func (s *session) awaitOutput() {
	select {
	case <-s.proxy.Done():
	case <-s.signals.orders:
	case <-s.signals.fromKeys():
	}
}
