package session

import (
	"context"
	"errors"

	"cage/internal/program"
	"cage/journal"
	"cage/report"
	"cage/rules"
)

// Draft returns where the directories of the current root are, and the plan
// that a session there would begin with before it looks at the tree. It is for
// what has no place in a session: where one runs in the root, or the caller is
// a process of one, it is refused with the code. An error is a *Refusal.
func Draft(ctx context.Context, env []string, inSession string) (rules.Layout, *rules.Plan, error) {
	s := &session{Options: Options{Guarding: Guarding{Env: env}}}
	defer s.close()
	err := s.outside(ctx, inSession)
	if err == nil {
		err = s.plans(ctx)
	}
	if err != nil {
		return rules.Layout{}, nil, s.refuse(err)
	}
	return s.layout, s.plan, nil
}

// afterwards is what to do about a session that is in the way.
const afterwards = "do it when the session has ended, and not in it"

// notInside refuses with the code what a process of a session asks.
func (s *session) notInside(code string) error {
	if _, inside := program.Variables(s.Env)[sessionVariable]; inside {
		return refusal(code, afterwards, errors.New("this is a process of a session; "+sessionVariable+" says so"))
	}
	return nil
}

// outside finds the root, and refuses where a session runs in it or this is a
// process of one.
func (s *session) outside(ctx context.Context, code string) error {
	if err := s.notInside(code); err != nil {
		return err
	}
	if err := s.locate(ctx); err != nil {
		return err
	}
	const ofTheRootAlone = ""
	held, err := journal.Guarded(s.journalFolder(), ofTheRootAlone)
	if err != nil {
		return err
	}
	if held || knownToRun(s.layout.Root) {
		return refusal(code, afterwards, errors.New("a session runs in "+report.Quote(s.layout.Root)))
	}
	return nil
}
