package session

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"cage/halt"
	"cage/internal/console"
	"cage/internal/proc"
	"cage/report"
	"cage/rules"
	"cage/spawn"
)

// supervision is what happened between the start of the command and the end of
// its tree.
type supervision struct {
	run *spawn.Run
	// proxy passes the command's own terminal on; nil where it has none.
	proxy    *console.Proxy
	startErr error
	// droppedEnv are the names of the variables that the command did not get.
	droppedEnv []string
	// privateTmp is the command's own temporary directory; nil where it has none.
	privateTmp *privateTmp
	// exit is nil for a command that never ran or has survived its end.
	exit    *proc.Exit
	trapped os.Signal
	halted  *report.Halt
	ended   halt.Ended
	// ending delivers what ended once an end is under way; hurry, closed, then
	// shortens its grace to nothing.
	ending                  chan halt.Ended
	hurry                   chan struct{}
	endingStarted, hurrying bool
	// left is what a run that is to be left was let go with; nil where the end of
	// the run was enforced.
	left *[]proc.Process
	// cutShort says that the command was not left to end by itself.
	cutShort bool
	// over is set when the tree has ended.
	over bool

	contestLimits halt.Limits
	contests      *contests
	contested     []rules.Path
	bell          bell
}

// supervise runs the command to the end of its tree, or watches to the end of
// the watch, and takes what the guard does meanwhile. Ordered, when that is
// closed, ends it.
func (s *session) supervise(ctx context.Context, ordered <-chan struct{}) {
	defer s.contests.close()
	s.console.Hold()
	defer s.console.Release()
	if s.watching == nil {
		if s.startErr = s.startCommand(ctx); s.startErr != nil {
			return
		}
		s.passTerminal()
	}
	s.ending, s.hurry = make(chan halt.Ended, 1), make(chan struct{})
	if s.Bell {
		s.bell = newBell(s.Messages)
	}
	s.startJournalist()
	defer s.stopJournalist()
	programExited := s.programExited()
	for !s.over {
		select {
		case exit := <-s.commandExited():
			s.exit = &exit
			s.lookAtGroup()
			s.endOrLeave()
		case sig := <-s.commandStopped():
			s.suspend(ctx, sig)
		case <-programExited:
			programExited = nil
			s.end()
		case <-s.signals.continued:
			s.catchUpAfterStop(ctx)
		case s.ended = <-s.ending:
			s.over = true
		case <-s.guard.Ready():
			s.takeEvents()
		case <-s.refusals():
			s.takeRefusals()
		case answer := <-s.contests.answers:
			s.contests.take(answer)
		case now := <-s.contests.alarm.C:
			s.contests.judge(now)
		case sig := <-s.signals.orders:
			s.trap(sig)
		case sig := <-s.signals.fromKeys():
			s.trap(sig)
		case <-ordered:
			ordered = nil
			s.end()
		}
		s.contests.proceed(ctx)
	}
	s.proxy.Finish(s.ended.Proved)
	s.takeLastExit()
}

// takeLastExit takes the command's exit where the end of the tree overtook it.
func (s *session) takeLastExit() {
	select {
	case exit := <-s.commandExited():
		s.exit = &exit
	default:
	}
}

// commandExited and commandStopped are those of the command; a watch has none.
func (s *session) commandExited() <-chan proc.Exit {
	if s.run == nil {
		return nil
	}
	return s.run.Exited()
}

func (s *session) commandStopped() <-chan syscall.Signal {
	if s.run == nil {
		return nil
	}
	return s.run.Stopped()
}

// sessionVariable names the session to everything that it runs.
const sessionVariable = "GANTRY_CAGE_SESSION"

// startCommand starts the command where the caller stands, with the session's
// names in its environment whatever else reaches it.
func (s *session) startCommand(ctx context.Context) error {
	environment := s.Environment
	if err := s.makeTemp(&environment); err != nil {
		return err
	}
	environment.Set = append(slices.Clip(environment.Set), sessionVariable+"="+s.id, "GANTRY_CAGE_SESSION_LOG="+filepath.Clean(s.log.Path()))
	var env []string
	env, s.droppedEnv = environment.Apply(s.Env)
	env = s.withPushGuard(env)
	run, err := s.startConfined(ctx, spawn.Command{
		Path: s.Command[0], Args: s.Command[1:],
		Env:   env,
		Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr,
		Descriptors: s.Descriptors, Limits: s.Rlimits, Lifetime: s.Lifetime, Terminal: s.Terminal, Screen: s.screen(),
	})
	if err != nil {
		return err
	}
	s.run = run
	return nil
}

// endOrLeave comes when the command has ended by itself or in the midst of an
// end.
func (s *session) endOrLeave() {
	if s.Lifetime == spawn.LifetimeLeave && !s.endingStarted {
		s.leave()
		return
	}
	s.end()
}

// leave lets go of what the command left.
func (s *session) leave() {
	left, err := s.run.Leave()
	if err != nil {
		s.log.WatchError(err)
		left = s.strays()
	}
	s.left, s.over = &left, true
	select {
	case <-s.run.Gone():
		s.ended.Proved = true
	default:
	}
	s.leaveJournal()
}

// strays lists what carries the session's name and has lost its parent.
func (s *session) strays() []proc.Process {
	self, err := proc.Self()
	if err != nil {
		return nil
	}
	strays, _, err := proc.Strays(nil, sessionVariable+"="+s.id, self.Start)
	if err != nil {
		s.log.WatchError(err)
	}
	return strays
}

// end ends the session, and what its command left before. A watch, which started
// nothing, is over at once, unless it is halting its program.
func (s *session) end() {
	if s.watching != nil {
		s.over = s.over || !s.endingStarted
		return
	}
	s.endTree(s.run)
}

// endTree ends a tree, once, beside the supervision, so that restoring goes on.
func (s *session) endTree(tree halt.Tree) {
	if s.endingStarted {
		return
	}
	s.endingStarted, s.cutShort = true, s.exit == nil
	s.ownLimits.putBack() // the sweep says so
	go func() {
		ended := halt.End(tree, s.Grace, s.hurry)
		s.killGroup()
		if !ended.Proved && s.watching == nil {
			s.endStrays(&ended)
		}
		s.ending <- ended
	}()
}

// endStrays ends what still carries the session's name, where nothing proves
// that the tree is gone: its keeper was killed. That is no proof either.
func (s *session) endStrays(ended *halt.Ended) {
	for range strayRounds {
		strays := s.strays()
		if len(strays) == 0 {
			return
		}
		var ids []proc.ID
		for _, stray := range strays {
			ids = append(ids, stray.ID)
		}
		left := proc.EndAll(ids, 0, strayPatience)
		ended.Count += len(ids) - len(left)
		if len(left) > 0 {
			alive := slices.DeleteFunc(strays, func(p proc.Process) bool { return !slices.Contains(left, p.ID) })
			ended.Survivors = append(ended.Survivors, alive...)
			return
		}
	}
}

// trap ends the command because somebody wants the session to end. Asked a
// second time it waits no more.
func (s *session) trap(sig os.Signal) {
	if s.trapped != nil {
		s.hurryUp()
		return
	}
	s.noteTrapped(sig)
	s.end()
}

func (s *session) noteTrapped(sig os.Signal) {
	s.trapped = sig
	s.log.TrappedSignal(signalName(sig))
}

func (s *session) hurryUp() {
	if !s.hurrying {
		s.hurrying = true
		close(s.hurry)
	}
}

// takeLateSignal notes a signal that came when there was nothing left to end.
func (s *session) takeLateSignal() {
	if sig := s.signals.late(); sig != nil && s.trapped == nil {
		s.noteTrapped(sig)
	}
}

// act does what follows from an answer about a contest.
func (s *session) act(o outcome) {
	switch o.Kind {
	case halt.Halt:
		s.halt(report.Halt{
			Scope: report.HaltScope(o.Scope), Name: report.NameOf(display(s.layout, o.Path)), Rule: o.Rule,
			LiveRestores: o.Limit + 1, Limit: o.Limit,
		})
	case halt.Contested:
		s.contested = append(s.contested, o.Path)
		s.spareContested(o.Path)
		s.log.Contested(display(s.layout, o.Path), o.Rule, o.LiveRestores)
		s.bell.ring()
	}
}

// halt ends the command because it fights. That the ground moved is a halt also
// where only the last sweep sees it; of anything else there is nothing left to
// end by then.
//
// A watch without a program ends where the ground moved: what it is to guard is
// not there any more.
func (s *session) halt(h report.Halt) {
	tree, ground := s.tree(), h.Scope == report.HaltGround
	switch {
	case s.halted != nil || !s.live() || s.startErr != nil:
	case s.over && (!ground || s.watching != nil):
	case tree != nil:
		s.halted = &h
		s.log.Halt(h)
		s.bell.ring()
		s.endTree(tree)
	case ground:
		s.end()
	}
}
