package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"cage/internal/program"
	"cage/journal"
	"cage/report"
	"cage/rules"
)

// Past is what earlier sessions left for a person to look at, from the current
// directory.
type Past struct {
	Layout rules.Layout
	// Plan is that of a session that would begin here, before it looks at the
	// tree; nil before Hold.
	Plan *rules.Plan
	// Sessions is the folder that holds a store for every session, Temp that
	// for temporary files.
	Sessions, Temp string
	session        *session
}

// OpenPast looks where the current directory is. The caller closes what it
// returns; messages take what goes wrong at that. An error is a *Refusal.
func OpenPast(ctx context.Context, env []string, messages io.Writer) (*Past, error) {
	s := &session{Options: Options{Guarding: Guarding{Env: env, Messages: messages}}}
	if err := s.locate(ctx); err != nil {
		defer s.close()
		return nil, s.refuse(err)
	}
	return &Past{
		Layout: s.layout, Sessions: filepath.Join(s.state, "sessions"), Temp: s.temp, session: s,
	}, nil
}

// Spare names the folder for what the store of a session could not take.
func (p *Past) Spare(session string) string { return refuge(p.Temp, session) }

// Git returns the git to ask, and what runs it. An error is a *Refusal.
func (p *Past) Git() (binary string, run program.Runner, err error) {
	binary, err = program.Finder(p.session.Env, p.Layout.Root)("git")
	if err != nil {
		return "", nil, refusal(report.CodeGit, "install git, or put it into PATH outside "+report.Quote(p.Layout.Root), err)
	}
	return binary, p.session.runHelper, nil
}

// Hold keeps sessions from beginning in the root until Close, and makes the
// plan. Where one runs, is not recovered yet, or is that of the caller, it is
// refused with the code. An error is a *Refusal.
func (p *Past) Hold(ctx context.Context, inSession string) error {
	s := p.session
	err := s.hold(inSession)
	if err == nil {
		err = s.plans(ctx)
	}
	if err != nil {
		return s.refuse(err)
	}
	p.Plan = s.plan
	return nil
}

func (s *session) hold(inSession string) error {
	if err := s.notInside(inSession); err != nil {
		return err
	}
	j, left, err := journal.Acquire(s.journalFolder())
	var active *journal.ActiveError
	if errors.As(err, &active) {
		return refusal(inSession, afterwards, active)
	}
	if err != nil {
		return journalRefusal(err)
	}
	s.journal = j
	if left != nil {
		s.journalKept = true
		return refusal(inSession, "start a session here, which recovers it, or decide with: cage review --recover restore|keep",
			fmt.Errorf("session %s was interrupted here and is not recovered yet", left.Session))
	}
	if err := s.shareCommon(); err != nil {
		return journalRefusal(err)
	}
	return nil
}

// Close lets the root go.
func (p *Past) Close() { p.session.close() }
