package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"cage/halt"
	"cage/internal/proc"
	"cage/internal/sessionlog"
	"cage/report"
	"cage/rules"
)

// WatchOptions are what a user can ask of a watch.
type WatchOptions struct {
	Guarding
	// PID is the process of a program that already runs, which the watch lasts
	// as long as and may halt; 0 for none.
	PID int
	// Events gets every event of the session log, as it happens and as the log
	// has it; nil for nobody. Messages gets them spelled for people.
	Events io.Writer
}

// Watch guards the root of the current directory without a command, until a
// signal comes, ctx ends or the program of PID has ended, and returns the report.
// Errors are as those of Run. It starts no process, so the end of a watch ends
// none, and neither does the recovery of one that was killed: only a program
// that fights is halted, as far as a listing of processes reaches.
func Watch(ctx context.Context, o WatchOptions) (*report.Document, error) {
	s := &session{
		Options: Options{Guarding: o.Guarding}, watching: &watching{WatchOptions: o}, started: time.Now(), signals: listen(nil, false),
	}
	return s.conduct(ctx)
}

// watching is what sets a watch apart from a session with a command.
type watching struct {
	WatchOptions
	// program is nil where the watch has none.
	program proc.Program
	// releaseText and releaseEvents let those go who follow the log; nil where
	// nobody does.
	releaseText, releaseEvents func(time.Duration) error
}

// codeProcess is the code of a process that cannot be guarded.
const codeProcess = "GXT_CAGE_PROCESS_UNUSABLE"

// attach takes hold of the program that a watch is to guard, if it has one.
func (s *session) attach() error {
	if s.watching == nil || s.watching.PID == 0 {
		return nil
	}
	program, err := proc.Attach(s.watching.PID)
	if err != nil {
		return refusal(codeProcess, processHint(err), fmt.Errorf("cannot guard process %d: %w", s.watching.PID, reasonOfProcess(err)))
	}
	s.watching.program = program
	return nil
}

func processHint(err error) string {
	switch {
	case errors.Is(err, proc.ErrAncestor):
		return "give the number of a program that was started elsewhere"
	case errors.Is(err, proc.ErrThread):
		return "give the number of its process"
	case errors.Is(err, syscall.EPERM):
		return "watch it as the user that it runs as, or as root"
	case errors.Is(err, proc.ErrNoAttach):
		return "watch without --pid: then nothing is halted"
	default:
		return "give the number of a program that runs"
	}
}

// reasonOfProcess says in a user's words what the system says in its own.
func reasonOfProcess(err error) error {
	if errors.Is(err, syscall.EPERM) {
		return fmt.Errorf("it is another user's (%w)", syscall.EPERM)
	}
	return err
}

// follow has the events of the log told to those who watch.
func (s *session) follow() {
	if s.watching == nil {
		return
	}
	s.watching.releaseText = s.log.Follow(sessionlog.Text{Out: s.Messages})
	if s.watching.Events != nil {
		s.watching.releaseEvents = s.log.Follow(s.watching.Events)
	}
}

// unfollow waits a moment until those who watch have been told everything. An
// error says that a program that asked for the events has not.
func (s *session) unfollow() error {
	if s.watching == nil || s.watching.releaseText == nil {
		return nil
	}
	_ = s.watching.releaseText(lastRing) // nobody to tell if it fails
	if s.watching.releaseEvents == nil {
		return nil
	}
	if err := s.watching.releaseEvents(lastRing); err != nil {
		return fmt.Errorf("print the events: %w", err)
	}
	return nil
}

// program returns the program of a watch; nil where there is none.
func (s *session) program() proc.Program {
	if s.watching == nil {
		return nil
	}
	return s.watching.program
}

// programExited returns what is closed when the program of a watch has ended.
func (s *session) programExited() <-chan struct{} {
	if program := s.program(); program != nil {
		return program.Exited()
	}
	return nil
}

// tree returns what a halt ends: the command or the program of a watch, with
// everything that descends from it; nil where there is neither.
func (s *session) tree() halt.Tree {
	switch {
	case s.run != nil:
		return s.run
	case s.program() != nil:
		return s.program()
	default:
		return nil
	}
}

// refreshInterval is the time between two refreshes of the journal. The processes
// of a watch's program are looked at as often as can be: one that loses its
// parent in between is lost.
func (s *session) refreshInterval() time.Duration {
	if s.program() != nil {
		return refreshEvery
	}
	return max(s.Interval, refreshEvery)
}

// firstJournalled is journalled for the first time: what descends from a command
// is too young to be listed.
func (s *session) firstJournalled(last *census) ([]proc.Process, error) {
	if s.run == nil {
		return s.journalled(last)
	}
	command := s.run.Command()
	if command == (proc.ID{}) { // it died before anybody knew it
		return nil, nil
	}
	return []proc.Process{{ID: command}}, nil
}

// journalled lists the processes that a recovery is to end. A watch did not
// start those of its program, so they are looked at, which is how some are found
// after their parent has ended, and not named in the journal.
func (s *session) journalled(last *census) ([]proc.Process, error) {
	switch {
	case s.run != nil:
		return last.take(s.run.Processes)
	case s.program() != nil:
		_, err := last.take(s.program().Processes)
		return nil, err
	default:
		return nil, nil
	}
}

// spareContested takes care that a contested path costs little from now on. A
// session leaves it alone until its end, which is near; that of a watch is not.
func (s *session) spareContested(p rules.Path) {
	if s.watching != nil {
		s.guard.Pace(p)
	} else {
		s.guard.Concede(p)
	}
}

// commandName is what the report calls the command: its name as it was called,
// of a program the kernel's short name; empty where there is neither.
func (s *session) commandName() string {
	switch {
	case s.watching == nil:
		return s.Command[0]
	case s.watching.program != nil:
		return s.watching.program.Process().Name
	default:
		return ""
	}
}

// watchedProcess is the program of a watch as documents have it.
func (s *session) watchedProcess() *report.Process {
	program := s.program()
	if program == nil {
		return nil
	}
	process := program.Process()
	return &report.Process{PID: process.PID, Name: process.Name}
}

// watchLifetime is what a watch has to say of processes: nothing, but for what a
// halt ended.
func (s *session) watchLifetime() report.Lifetime {
	l := report.Lifetime{Mode: "none", Mechanism: "none", Proved: true}
	if l.Watched = s.watchedProcess(); l.Watched == nil {
		return l
	}
	l.Mode, l.Mechanism = "watched", "listing"
	l.Ended, l.Proved, l.Survivors = s.ended.Count, !s.endingStarted || s.ended.Proved, listed(s.ended.Survivors)
	l.Gaps = append(proc.Limits(), "the program was not started by this cage: what had left its tree before a listing showed it is not found")
	return l
}
