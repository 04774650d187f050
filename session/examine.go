package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"cage/journal"
	"cage/report"
	"cage/rules"
	"cage/snapshot"
	"cage/watch"

	"golang.org/x/sys/unix"
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
	// Unjudged says why it would not judge pushes; empty where it would, and
	// outside git.
	Unjudged string
	// Elsewhere says that a session in another work tree guards the files that
	// all of them share, so that this one would only list changes to them.
	Elsewhere bool
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
	err := s.rehearse(ctx)
	if err == nil {
		err = s.foresee(ctx, e)
	}
	if err != nil {
		e.Refused = s.refuse(err)
		return e, nil
	}
	e.Files, e.Watching = s.manifest.Len(), s.watcher.Status()
	e.Warnings, e.Skipped = slices.Concat(s.warnings, s.doubts), displayAll(s.layout, s.skipped)
	return e, nil
}

// foresee fills in what a session would have to do without, as far as that can
// be told before it makes anything.
func (s *session) foresee(ctx context.Context, e *Examination) error {
	if s.repo == nil {
		return nil
	}
	var err error
	if e.Elsewhere, err = journal.GuardedElsewhere(e.Journal, s.layout.CommonDir); err != nil {
		return err
	}
	if err := s.foreseePushes(ctx); err != nil {
		e.Unjudged = err.Error()
	}
	return nil
}

func (s *session) rehearse(ctx context.Context) error {
	if err := s.plans(ctx); err != nil {
		return err
	}
	if err := s.protect(ctx); err != nil {
		return err
	}
	return s.roomToWrite()
}

// roomToWrite refuses where a session could make neither its journal nor its
// log.
func (s *session) roomToWrite() error {
	folder := s.journalFolder()
	if _, err := os.Lstat(folder); errors.Is(err, fs.ErrNotExist) {
		folder = filepath.Dir(folder)
	}
	if err := writable(folder); err != nil {
		return journalRefusal(fmt.Errorf("make the journal's folder: %w", err))
	}
	if err := writable(s.temp); err != nil {
		return refusal(report.CodeHost, ownTemp, fmt.Errorf("create the session log: %w", err))
	}
	return nil
}

// writable reports an error where no file can be made in a directory.
func writable(dir string) error {
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return &fs.PathError{Op: "write into", Path: dir, Err: err}
	}
	return nil
}
