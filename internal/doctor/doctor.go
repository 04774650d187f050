// Package doctor says what a session in the current directory would have, what
// the machine lets it enforce, and what earlier sessions left behind there. It
// goes a session's own way as far as that changes nothing, so that the two
// cannot disagree, and what it finds wrong it says with the way to mend it.
package doctor

import (
	"context"
	"fmt"

	"cage/internal/program"
	"cage/report"
	"cage/rules"
	"cage/scope"
	"cage/session"
	"cage/snapshot"
	"cage/spawn"
)

// Diagnose looks at the current directory and its machine. An error is a
// *session.Refusal: not even the root is known. A command that does nothing is
// started in each mode, to see what it can be given.
func Diagnose(ctx context.Context, stage spawn.Stage, env []string, limits snapshot.Limits) (report.Diagnosis, error) {
	e, err := session.Examine(ctx, env, limits)
	if err != nil {
		return report.Diagnosis{}, err
	}
	left, err := leftovers(e.Place)
	if err != nil {
		return report.Diagnosis{}, err
	}
	findings := onSession(e)
	findings = append(findings, onGit(e)...)
	if e.Refused == nil {
		findings = append(findings, onPushes(e)...)
		findings = append(findings, onWatching(e)...)
	}
	findings = append(findings, onMachine(stage)...)
	host := scope.Host{Env: env, Find: program.Finder(env, e.Layout.Root), Run: program.Exec}
	findings = append(findings, onResources(ctx, stage, host)...)
	return report.Diagnosis{Root: e.Layout.Root, Findings: findings, Leftovers: left}, nil
}

func ok(area, text string) report.Finding {
	return report.Finding{Area: area, Verdict: report.VerdictOK, Text: text}
}

func note(area, text string) report.Finding {
	return report.Finding{Area: area, Verdict: report.VerdictNote, Text: text}
}

func degraded(area, text, fix string) report.Finding {
	return report.Finding{Area: area, Verdict: report.VerdictDegraded, Text: text, Fix: fix}
}

func onSession(e *session.Examination) []report.Finding {
	if e.Refused != nil {
		fix := ""
		if len(e.Refused.FixHints) > 0 {
			fix = e.Refused.FixHints[0]
		}
		return []report.Finding{degraded("session", "would not start: ["+e.Refused.ErrorCode+"] "+e.Refused.Message, fix)}
	}
	found := []report.Finding{ok("session", fmt.Sprintf("would protect %d file(s)", e.Files))}
	for _, warning := range e.Warnings {
		found = append(found, note("rules", warning))
	}
	for _, dir := range e.Skipped {
		found = append(found, degraded("session", "cannot enter "+report.Quote(dir)+": what it holds is not protected", "make it readable, or remove it"))
	}
	return found
}

func onGit(e *session.Examination) []report.Finding {
	l := e.Layout
	if l.CommonDir == "" {
		return []report.Finding{note("git", "no repository: the rules for git's own files have nothing to match")}
	}
	where := "the git directory is " + report.Quote(l.CommonDir)
	if l.GitDir != "" {
		where = "a linked work tree; its git directory is " + report.Quote(l.GitDir) + ", shared is " + report.Quote(l.CommonDir)
	}
	if e.Hooks == "" {
		return []report.Finding{ok("git", where)}
	}
	return []report.Finding{ok("git", where), onHooks(e)}
}

// onPushes says what of git's a session could not look after.
func onPushes(e *session.Examination) []report.Finding {
	var found []report.Finding
	if e.Unjudged != "" {
		found = append(found, degraded("pushes", "are not judged: "+e.Unjudged, "set TMPDIR to a directory where programs may be executed, and use git 2.31 or later"))
	}
	if e.Elsewhere {
		found = append(found, degraded("git", "a session in another work tree guards "+report.Quote(e.Layout.CommonDir)+": here changes to it are only listed",
			"wait until it has ended"))
	}
	return found
}

func onHooks(e *session.Examination) report.Finding {
	hooks := report.Quote(e.Hooks)
	if e.HooksBy == "" {
		return ok("hooks", "are in "+hooks)
	}
	text := "are in " + hooks + ", by core.hooksPath in " + report.Quote(e.HooksBy)
	if e.Layout.Locate(e.Hooks).Anchor == rules.HooksDir {
		return note("hooks", text+": outside the root, so that the hooks that exist there are protected and nothing else")
	}
	return ok("hooks", text)
}

func onWatching(e *session.Examination) []report.Finding {
	w := e.Watching
	var found []report.Finding
	for _, lack := range w.Degraded {
		found = append(found, degraded("watching", lack.Reason, lack.Setting))
	}
	seen := fmt.Sprintf("%d directories and %d files give events", w.WatchedDirs, w.WatchedFiles)
	if len(found) == 0 {
		found = append(found, ok("watching", seen))
	} else if w.Events {
		found = append(found, note("watching", seen))
	}
	return append(found, onEventRoom()...)
}
