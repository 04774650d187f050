package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"cage/internal/pushguard"
	"cage/internal/sessionlog"
	"cage/report"
	"cage/spawn"
)

// pushes is the session's side of its push guard.
type pushes struct {
	judge pushguard.Judge
	// pushGuard is nil where pushes are not judged; unguarded says why.
	pushGuard *pushguard.Guard
	unguarded error
	refused   int
	published []pushguard.Published
}

var (
	errOutsideGit = errors.New("there is no repository")
	errReportOnly = errors.New("the run only reports")
	errNoCommand  = errors.New("there is no command that could be led to the session's hook")
	errTampered   = errors.New("the folder of the session's hooks was changed or removed while the command ran")
	errOldGit     = errors.New("git does not take the setting that leads it to the session's hook; git 2.31 and later do")
)

// guardPushes lays the push guard in git's way. A session without it protects
// the files as well as ever, so that where it cannot be had this is said, and
// the command runs.
func (s *session) guardPushes(ctx context.Context) {
	s.unguarded = s.tryGuardPushes(ctx)
	if unjudged := s.unjudged(); unjudged != "" && !s.ReportOnly {
		s.warnings = append(s.warnings, "pushes are not judged: "+unjudged)
	}
}

func (s *session) tryGuardPushes(ctx context.Context) error {
	switch {
	case s.repo == nil:
		return errOutsideGit
	case s.watching != nil:
		return errNoCommand
	}
	start, err := s.found.StartRefs(ctx)
	if err != nil {
		return err
	}
	s.judge = pushguard.Judge{Repo: s.repo, Plan: s.plan, Start: start}.Note(s.started)
	if s.ReportOnly {
		return errReportOnly
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the cage's own program: %w", err)
	}
	env, _ := s.Environment.Apply(s.Env)
	guard, err := pushguard.Open(pushguard.Options{Temp: s.temp, Session: s.id, Judge: s.judge, Env: env, Program: program})
	if err != nil {
		return err
	}
	if err := s.proveSettings(ctx, pushguard.Folder(s.temp, s.id), guard.Settings()...); err != nil {
		return errors.Join(err, guard.Close())
	}
	s.pushGuard = guard
	return nil
}

// proveSettings asks a git that may be too old whether settings lead it to the
// hooks in a folder.
func (s *session) proveSettings(ctx context.Context, folder string, settings ...spawn.GitSetting) error {
	if s.found.Modern() {
		return nil
	}
	hook, err := s.repo.Hook(ctx, "pre-push", spawn.WithGitSettings(nil, settings...))
	if err == nil && filepath.Dir(hook) != filepath.Clean(folder) {
		err = errOldGit
	}
	return err
}

// foreseePushes says why pushes would not be judged, as far as that can be told
// before there is a guard.
func (s *session) foreseePushes(ctx context.Context) error {
	if err := pushguard.Usable(s.temp); err != nil {
		return err
	}
	return s.proveSettings(ctx, s.temp, spawn.GitSetting{Key: "core.hooksPath", Value: s.temp})
}

// withPushGuard returns an environment in which git finds the session's hooks.
func (s *session) withPushGuard(env []string) []string {
	if s.pushGuard == nil {
		return env
	}
	return spawn.WithGitSettings(env, s.pushGuard.Settings()...)
}

// refusals delivers when pushes were refused; never where none are judged.
func (s *session) refusals() <-chan struct{} {
	if s.pushGuard == nil {
		return nil
	}
	return s.pushGuard.Ready()
}

// takeRefusals counts and logs the pushes that were refused.
func (s *session) takeRefusals() {
	if s.pushGuard == nil {
		return
	}
	for _, refusal := range s.pushGuard.Take() {
		s.refused++
		var paths []sessionlog.PushedPath
		for _, f := range perPath(refusal.Findings) {
			paths = append(paths, sessionlog.PushedPath{Path: f.Path, Rule: f.Rule})
		}
		s.log.PushRefused(paths, refusal.Reason)
		s.bell.ring()
	}
}

// perPath returns the first of the findings on each path.
func perPath(findings []pushguard.Finding) []pushguard.Finding {
	seen := make(map[string]bool)
	var first []pushguard.Finding
	for _, f := range findings {
		if !seen[f.Path] {
			seen[f.Path] = true
			first = append(first, f)
		}
	}
	return first
}

// endPushes takes the push guard out of git's way, and looks for what went past
// it. Nothing of the run is left to push.
func (s *session) endPushes(ctx context.Context) {
	s.closePushGuard()
	if s.judge.Repo == nil {
		return
	}
	var err error
	if s.published, err = s.judge.Published(ctx, s.started); err != nil {
		s.log.WatchError(err)
	}
}

func (s *session) closePushGuard() {
	if s.pushGuard == nil {
		return
	}
	if !s.pushGuard.Whole() {
		s.unguarded = errTampered
	}
	err := s.pushGuard.Close()
	s.takeRefusals()
	if s.pushGuard = nil; err != nil {
		s.tell(err.Error())
	}
}

// pushReport says what became of pushes.
func (s *session) pushReport() report.PushGuard {
	guard := report.PushGuard{Enabled: s.unguarded == nil, RefusedPushes: s.refused}
	if unjudged := s.unjudged(); unjudged != "" {
		guard.Reason = &unjudged
	}
	for _, p := range s.published {
		published := report.Published{Ref: p.Ref}
		for _, f := range perPath(p.Findings) {
			published.Changes = append(published.Changes, report.PublishedChange{
				Name: report.NameOf(f.Path), Rule: f.Rule, Commit: f.Commit,
			})
		}
		guard.Published = append(guard.Published, published)
	}
	return guard
}

// unjudged says why pushes were not judged, where there could have been any.
func (s *session) unjudged() string {
	if s.unguarded == nil || s.repo == nil || s.watching != nil {
		return ""
	}
	return s.unguarded.Error()
}

// removePushGuard removes what the push guard of a session left that did not
// end.
func (s *session) removePushGuard(id string) {
	for _, temp := range s.tempsOf(id) {
		if err := pushguard.Remove(temp, id); err != nil {
			s.warnings = append(s.warnings, err.Error())
		}
	}
}

// tempsOf returns the temporary directories that a session which did not end may
// have had: this one's, and the one that its note names.
func (s *session) tempsOf(id string) []string {
	temps := []string{s.temp}
	if note, err := recall(s.layout.Root); err == nil && note != nil && note.Session == id && note.Temp != s.temp {
		temps = append(temps, note.Temp)
	}
	return temps
}
