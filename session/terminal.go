package session

import (
	"context"
	"syscall"

	"golang.org/x/sys/unix"
)

// suspend stops the cage where its terminal stopped the command, so that the
// shell gets the terminal, and continues the command when the shell continues
// the cage.
func (s *session) suspend(ctx context.Context, sig syscall.Signal) {
	if s.endingStarted || !s.console.StopsWithCommand(sig) || !s.run.Command().MayBeStopped() {
		return
	}
	if s.live() {
		s.guard.CatchUp(ctx)
	}
	s.console.Stop(sig)
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
		}
	}
}

// catchUpAfterStop compares everything at once: while the cage was stopped
// nobody watched.
func (s *session) catchUpAfterStop(ctx context.Context) {
	if s.live() {
		s.guard.Rescan(ctx)
	}
}

// putTerminalInOrder comes when everything else is done, because writing to a
// terminal that is stopped (Ctrl-S) waits.
func (s *session) putTerminalInOrder() {
	killed := s.cutShort || s.exit != nil && s.exit.Signal != 0
	s.console.Restore(killed)
	s.console.Close()
}
