// Package session runs one command under guard: it finds the ground, builds
// the plan, takes the baseline, starts the command, supervises it, halts it
// when it fights, sweeps, and reports. It owns signals and the order in which
// things happen. A watch is the same without a command.
//
// It promises that whatever fails before the command starts stops the session
// closed, with a Refusal and nothing run; that restoring goes on for as long
// as anything of the run lives; and that the command's tree is gone, or its
// survivors named, before the last sweep.
package session

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"cage/guard"
	"cage/internal/console"
	"cage/internal/kept"
	"cage/internal/sessionlog"
	"cage/report"
	"cage/snapshot"
	"cage/spawn"
)

// Guarding is what a user can ask of whatever guards a root.
type Guarding struct {
	// Env is the whole environment of the caller.
	Env []string
	// Messages takes what the cage itself has to say.
	Messages io.Writer
	// Bell rings for every event.
	Bell bool

	ReportOnly bool
	Interval   time.Duration // between two rescans
	Grace      time.Duration // between SIGTERM and SIGKILL
	// ContestLimit and RuleContestLimit are nil where the rules file, then the
	// default, decides.
	ContestLimit     *int
	RuleContestLimit *int
	Overrides        []string
	Limits           snapshot.Limits
	// DropDisplaced lets displaced regular files go.
	DropDisplaced bool
	// ReportFile is the file that gets the report, or the document of a
	// refusal; empty for none.
	ReportFile string
}

// Options are what a user can ask of a session.
type Options struct {
	Guarding
	// Stage is what spawn.Main returned.
	Stage spawn.Stage
	// Command is the command and its arguments; it is not empty. It starts, and
	// the session looks for its root, in the current directory.
	Command []string
	// Environment says what of the caller's environment reaches the command.
	Environment spawn.Environment
	// Descriptors are what the command gets beside the standard streams.
	Descriptors []int
	// Lifetime says what may outlive the command.
	Lifetime spawn.Lifetime
	// Rlimits bound the command and its descendants. Core dumps are off unless
	// they say otherwise.
	Rlimits spawn.Limits
	// Resources are what the run may take of the machine; nil bounds nothing. They
	// do not go with LifetimeLeave.
	Resources *Resources
	// PrivateTmp gives the command a directory of its own for temporary files. It
	// does not go with LifetimeLeave.
	PrivateTmp bool
	// Terminal says which terminal the command gets.
	Terminal spawn.Terminal
	// Stdin, Stdout and Stderr are handed to the command, or what its own
	// terminal is passed on to.
	Stdin, Stdout, Stderr *os.File
	// NoWatch leaves everything to one check when the command has ended.
	NoWatch bool
}

// Refusal is returned where a session failed closed: nothing ran.
type Refusal = report.Refusal

// Run runs the command under guard and returns the report of the session. An
// error without a report is a *Refusal: the command did not run. One with a
// report says that the report file could not be written. When ctx ends, the
// command is ended with everything it started, and restored is all the same.
func Run(ctx context.Context, o Options) (*report.Document, error) {
	s := &session{Options: o, started: time.Now(), signals: listen(o.Stdin, o.Terminal == spawn.Foreground), console: console.Open(o.Stdin, o.Stdout, o.Stderr, o.Env)}
	return s.conduct(ctx)
}

// conduct runs a session from its preparation to its report.
func (s *session) conduct(ctx context.Context) (*report.Document, error) {
	defer s.signals.stop()
	defer s.putTerminalInOrder()
	defer s.close()
	start, begun := s.signals.beforeCommand(ctx)
	err := s.prepare(start)
	switch sig := begun(); {
	case err == nil && s.watching != nil:
		s.signals.resume(sig) // it has begun, and ends like any other
	case sig != nil:
		err = s.interrupted(signalName(sig))
	case ctx.Err() != nil:
		err = s.interrupted("the order to end")
	}
	if err != nil {
		refusal := s.refuse(err)
		io.WriteString(s.Messages, s.recoveredLine()) // nobody to tell if it fails
		s.writeFailure(refusal)
		_ = s.unfollow() // the refusal itself is told
		if s.log != nil {
			s.log.Discard()
		}
		return nil, refusal
	}
	doc := s.execute(ctx)
	return doc, errors.Join(s.writeReport(doc), s.unfollow())
}

// session is the state of one run.
type session struct {
	Options
	id      string
	dir     string // where the session was started
	started time.Time
	signals *signals
	console *console.Console
	// watching is nil where the session has a command.
	watching *watching

	reportFile *reportFile
	ownLimits  *ownLimits
	ground
	protection
	journalling
	log    *sessionlog.Log
	guard  *guard.Guard
	kept   *kept.Keeper
	ledger *kept.Ledger
	// reviewable says that the ledger was written to its end.
	reviewable bool

	pushes
	confinement
	supervision
}

// tell warns at once, beside what is announced and reported. If that fails,
// there is nobody to tell.
func (s *session) tell(warning string) { io.WriteString(s.Messages, report.Warning(warning)) }

// execute starts the command, if there is one, supervises it to its end, sweeps
// and reports.
func (s *session) execute(order context.Context) *report.Document {
	ctx := context.WithoutCancel(order)
	stopLoop := runLoop(ctx, s.guard)
	s.supervise(ctx, order.Done())
	s.ownLimits.putBack() // the sweep says so
	s.endPushes(ctx)
	s.endGroup(ctx)
	s.guard.Sweep(ctx)
	if s.guard.Failing() {
		s.removeTemp() // which may have taken the room
		s.guard.Sweep(ctx)
	}
	s.stopWatching()
	s.kept.Finish()
	s.guard.Seal()
	stopLoop()
	s.takeEvents()
	s.reviewable = s.writeLedger(true)
	s.contests.conclude(ctx)
	s.bell.stop()
	s.takeLateSignal()
	s.removeTemp()
	return s.report()
}

// runLoop runs a guard's loop until stop is called, which waits for its end.
func runLoop(ctx context.Context, g *guard.Guard) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		g.Run(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// stopWatching closes the watcher beside what is left to do; close waits for
// it.
func (s *session) stopWatching() {
	if s.watcher != nil {
		go s.watcher.Close()
	}
}

// close releases what the session holds open.
func (s *session) close() {
	if s.kept != nil {
		s.kept.Finish()
	}
	s.closePushGuard()
	if s.place != nil {
		s.place.Close()
	}
	if s.log != nil {
		if err := s.log.Close(); err != nil {
			s.tell("the session log is not complete: " + err.Error())
		}
	}
	s.reportFile.close()
	if program := s.program(); program != nil {
		program.Close()
	}
	s.closeJournal()
	if s.watcher != nil {
		s.watcher.Close() // last, because the kernel takes its time over it
	}
	if s.trees != nil {
		s.trees.Close()
	}
	s.ground.close()
}
