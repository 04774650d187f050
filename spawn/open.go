package spawn

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"cage/internal/proc"
)

// What tells of processes belongs to the package that handles them; these are
// its names for programs outside the module.
type (
	// ID is the identity of a process: its number and when it started.
	ID = proc.ID
	// Process is a process as a listing saw it.
	Process = proc.Process
	// Exit says how a process ended.
	Exit = proc.Exit
	// Killed says what became of a run that was killed.
	Killed = proc.Killed
)

// patienceToDie is how long KillAll waits for what refuses to die.
const patienceToDie = 10 * time.Second

// Open starts a command in a run of its own, which ends with Close. The program
// may have other runs, and children that it started and waits for in any other
// way: a keeper, where the system has such, holds the run, and speaks of it
// alone. When the program dies the keeper ends the run. A command that cannot be
// run is a *StartError.
func (s Stage) Open(c Command) (*Run, error) {
	attendant, err := proc.NewBystander()
	if err != nil {
		return nil, err
	}
	run, err := s.Start(attendant, c)
	if err != nil {
		return nil, errors.Join(err, attendant.Close())
	}
	run.attendant = attendant
	return run, nil
}

// KillAll ends the run: everything of it that lives gets SIGKILL, over and over,
// until nothing is left. What refuses to die for ten seconds is a
// *SurvivorsError.
func (r *Run) KillAll() error {
	killed := r.Kill(patienceToDie)
	if killed.Proved {
		return nil
	}
	return &SurvivorsError{Survivors: killed.Survivors}
}

// Close ends the run as KillAll does, removes its own temporary directory, and
// lets go of it. Where something survives, the run's keeper stays until that has
// ended. A run with LifetimeLeave is let go of and left as it is. Calls
// after the first return what that did.
func (r *Run) Close() error {
	r.closing.Do(func() { r.closed = errors.Join(r.letGo(), removeTemp(r.temp), r.dismiss()) })
	return r.closed
}

func (r *Run) letGo() error {
	if r.lifetime != LifetimeLeave {
		return r.KillAll()
	}
	_, err := r.Leave()
	return err
}

// dismiss ends the waiting for the keeper of a run that Open made, once that has
// ended.
func (r *Run) dismiss() error {
	switch {
	case r.attendant == nil:
		return nil
	case r.keeperStays():
		go func() {
			<-r.lost
			r.attendant.Close()
		}()
		return nil
	default:
		return r.attendant.Close()
	}
}

// keeperStays reports whether a run that was closed has a keeper yet, which it
// has where something survives.
func (r *Run) keeperStays() bool {
	if r.lost == nil {
		return false
	}
	select {
	case <-r.lost:
		return false
	default:
		return true
	}
}

// SurvivorsError says that something of a run lives on after it was killed.
type SurvivorsError struct {
	// Survivors are what is known to live. Where it is empty nobody can tell: the
	// run's keeper was killed, or what lives cannot be listed.
	Survivors []Process
}

func (e *SurvivorsError) Error() string {
	if len(e.Survivors) == 0 {
		return "nothing proves that the run has ended: its keeper was killed; look for what it started in the process list"
	}
	var names []string
	for _, p := range e.Survivors {
		names = append(names, fmt.Sprintf("%d (%q)", p.PID, p.Name))
	}
	return "processes of the run survive SIGKILL: " + strings.Join(names, ", ")
}
