package session

import (
	"context"

	"cage/rules"
	"cage/snapshot"
	"cage/watch"
)

// Place is where a session started in the current directory would stand.
type Place struct {
	Layout rules.Layout
	// Journal is the folder in which it would look for an earlier session's.
	Journal string
	// Missed names a session that is known there, has not ended and does not run.
	Missed string
	// Temp is its temporary directory.
	Temp string
}

// Examination is what a session would have that started in the current
// directory.
type Examination struct {
	Place
	// Hooks is the active hooks folder, empty outside git, and HooksBy the
	// configuration file that names it; empty for the one that git has by
	// default.
	Hooks, HooksBy string
	// Refused says why the session would not start, and leaves what follows
	// empty; nil where it would.
	Refused *Refusal
	// Files is how many files it would protect.
	Files int
	// Watching is with what, after everything was watched.
	Watching watch.Status
	// Warnings are what it would say at its start beside Skipped: directories,
	// as bytes, that it may not enter.
	Warnings, Skipped []string
}

// Examine goes the way of a session in the current directory as far as the
// baseline, changes nothing and starts nothing but git. An earlier session in
// its way is only looked for. An error is a *Refusal: not even the root is
// known.
func Examine(ctx context.Context, env []string, limits snapshot.Limits) (*Examination, error) {
	s := &session{Options: Options{Guarding: Guarding{Env: env, Limits: limits}}}
	defer s.close()
	if err := s.locate(ctx); err != nil {
		return nil, s.refuse(err)
	}
	e := &Examination{Place: Place{Layout: s.layout, Journal: s.journalFolder(), Temp: s.temp}, HooksBy: s.hooksBy}
	if note, err := recall(s.layout.Root); err == nil && note != nil && !note.runs() {
		e.Missed = note.Session
	}
	if s.repo != nil {
		e.Hooks = s.repo.HooksDir
	}
	if err := s.rehearse(ctx); err != nil {
		e.Refused = s.refuse(err)
		return e, nil
	}
	e.Files, e.Watching = s.manifest.Len(), s.watcher.Status()
	e.Warnings, e.Skipped = s.warnings, displayAll(s.layout, s.skipped)
	return e, nil
}

func (s *session) rehearse(ctx context.Context) error {
	if err := s.plans(ctx); err != nil {
		return err
	}
	return s.protect(ctx)
}
