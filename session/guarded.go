package session

import (
	"context"
	"strings"

	"cage/journal"
)

// Guarded reports whether a session guards the root of the current directory,
// or the caller runs inside one. An error is a *Refusal.
func Guarded(ctx context.Context, env []string) (bool, error) {
	for _, entry := range env {
		if strings.HasPrefix(entry, sessionVariable+"=") {
			return true, nil
		}
	}
	s := &session{Options: Options{Guarding: Guarding{Env: env}}}
	defer s.close()
	if err := s.locate(ctx); err != nil {
		return false, s.refuse(err)
	}
	held, err := journal.Guarded(s.journalFolder(), s.layout.CommonDir)
	if err != nil {
		return false, s.refuse(err)
	}
	return held, nil
}
