package session

import (
	"context"
	"os"
	"path/filepath"

	"cage/halt"
	"cage/internal/proc"
	"cage/report"
	"cage/spawn"
)

// supervision is what happened between the start of the command and the end of
// its tree.
type supervision struct {
	run       *spawn.Run
	mechanism string
	startErr  error
	exit      proc.Exit
	trapped   os.Signal
	halted    *report.Halt
	ended     halt.Ended
	// ending delivers what ended once an end is under way; hurry, closed, then
	// shortens its grace to nothing.
	ending                  chan halt.Ended
	hurry                   chan struct{}
	endingStarted, hurrying bool
	// over is set when the tree has ended.
	over bool

	contests
}

// supervise runs the command to the end of its tree, and takes what the guard
// does meanwhile.
func (s *session) supervise(ctx context.Context) {
	s.openContests(<-s.startRefs)
	signals := listen(s.Stdin)
	defer signals.stop()
	if s.startErr = s.startCommand(); s.startErr != nil {
		return
	}
	for over := false; !over; {
		select {
		case s.exit = <-s.run.Exited():
			s.end()
		case s.ended = <-s.ending:
			over = true
		case <-s.guard.Ready():
			s.takeEvents(ctx)
		case answer := <-s.answers:
			s.takeAnswer(ctx, answer)
		case <-s.judgement.C:
			s.judge(ctx)
		case sig := <-signals.c:
			s.trap(sig)
		}
	}
	s.over = true
	s.closeContests()
	s.takeLastExit()
}

// takeLastExit takes the command's exit where the end of the tree overtook it.
// A command that survived its end has none.
func (s *session) takeLastExit() {
	if s.ended.Proved {
		select {
		case s.exit = <-s.run.Exited():
		default:
		}
	}
}

// startCommand starts the command where the caller stands, with the session's
// names in its environment.
func (s *session) startCommand() error {
	run, err := s.Stage.Start(s.reaper, spawn.Command{
		Path: s.Command[0], Args: s.Command[1:],
		Env: append(s.Env[:len(s.Env):len(s.Env)],
			"GANTRY_CAGE_SESSION="+s.id, "GANTRY_CAGE_SESSION_LOG="+filepath.Clean(s.log.Path())),
		Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr,
	})
	if err != nil {
		return err
	}
	s.run, s.mechanism = run, run.Mechanism()
	s.ending, s.hurry = make(chan halt.Ended, 1), make(chan struct{})
	return nil
}

// end ends the tree, once, beside the supervision, so that restoring goes on.
func (s *session) end() {
	if s.endingStarted {
		return
	}
	s.endingStarted = true
	go func() { s.ending <- halt.End(s.run, s.Grace, s.hurry) }()
}

// trap ends the command because somebody wants the session to end. Asked a
// second time it waits no more.
func (s *session) trap(sig os.Signal) {
	if s.trapped != nil {
		s.hurryUp()
		return
	}
	s.trapped = sig
	s.log.TrappedSignal(signalName(sig))
	s.end()
}

func (s *session) hurryUp() {
	if !s.hurrying {
		s.hurrying = true
		close(s.hurry)
	}
}

// halt ends the command because it fights, if there is still something to end.
func (s *session) halt(h report.Halt) {
	if s.halted != nil || s.over || !s.live() {
		return
	}
	s.halted = &h
	s.log.Halt(h)
	s.ring()
	s.end()
}
