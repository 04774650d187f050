package session

import (
	"context"
	"io"
	"time"

	"cage/report"
	"cage/snapshot"
)

// ReviewOptions are what a person can decide about an interrupted session.
type ReviewOptions struct {
	Env      []string
	Messages io.Writer
	Decision Decision
	// Grace is the time between SIGTERM and SIGKILL for what still runs.
	Grace time.Duration
	// FileBytes is how much of a file is read that was smaller then.
	FileBytes int64
	// InSession is the code by which a process of a session is refused: what an
	// agent left must not approve its own changes.
	InSession string
}

// Recover cleans up after the interrupted session in the current root as
// decided and returns what it did; nil where no session was interrupted. An
// error is a *Refusal: nothing more was done.
func Recover(ctx context.Context, o ReviewOptions) (*report.Recovery, error) {
	s := &session{
		Options: Options{Guarding: Guarding{
			Env: o.Env, Messages: o.Messages, Grace: o.Grace, Limits: snapshot.Limits{FileBytes: o.FileBytes},
		}},
		started: time.Now(),
	}
	defer s.closeGround()
	err := s.notInside(o.InSession)
	if err == nil {
		err = s.recover(ctx, o.Decision)
	}
	if err != nil {
		return nil, s.refuse(err)
	}
	return s.recovered, nil
}

func (s *session) recover(ctx context.Context, decision Decision) error {
	if err := s.locate(ctx); err != nil {
		return err
	}
	_, err := s.takeOver(ctx, decision)
	if err == nil && s.recovered != nil && s.recovered.Lost {
		err = s.unnote() // a person was told
	}
	for _, warning := range s.warnings {
		s.tell(warning)
	}
	return err
}

// closeGround lets go of the root: what a recovery leaves is no session.
func (s *session) closeGround() {
	s.closeJournal()
	s.ground.close()
}
