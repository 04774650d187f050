package rules

import (
	"errors"
	"strings"
	"testing"
)

// ordinary is a repository whose git directory stands in its root.
func ordinary() Layout { return Layout{Root: "/w/repo", CommonDir: "/w/repo/.git"} }

// worktree is a linked worktree beside the repository it belongs to.
func worktree() Layout {
	return Layout{Root: "/w/tree", CommonDir: "/w/repo/.git", GitDir: "/w/repo/.git/worktrees/tree"}
}

func yamlFile(text string) File { return File{Present: true, Data: []byte(text)} }

func draft(t testing.TB, in Inputs) *Plan {
	t.Helper()
	if in.Layout.Root == "" {
		in.Layout = ordinary()
	}
	p, err := New(in)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return p
}

func settle(t testing.TB, in Inputs, found ...Path) *Plan {
	t.Helper()
	p, err := draft(t, in).Settle(found)
	if err != nil {
		t.Fatalf("Settle: %v", err)
	}
	return p
}

func root(rel string) Path   { return Path{Root, rel} }
func common(rel string) Path { return Path{CommonDir, rel} }

// say is a verdict in one word, for tables: rule:mode, with marks.
func say(v Verdict, ok bool) string {
	if !ok {
		return ""
	}
	mode := "report"
	if v.Mode == Revert {
		mode = "revert"
	}
	text := string(v.Rule) + ":" + mode
	if v.Overridden {
		text += ":overridden"
	}
	if v.Transient {
		text += ":transient"
	}
	return text
}

// refused asserts a typed refusal with its code, line and a part of its text.
func refused(t *testing.T, err error, code Code, file string, line int, part string) {
	t.Helper()
	var refusal *Error
	if !errors.As(err, &refusal) {
		t.Fatalf("got %v, want a refusal with %q", err, part)
	}
	if refusal.Code != code || refusal.File != file || refusal.Line != line {
		t.Errorf("got %s %s:%d, want %s %s:%d (%v)", refusal.Code, refusal.File, refusal.Line, code, file, line, err)
	}
	if !strings.Contains(refusal.Message, part) {
		t.Errorf("message %q does not say %q", refusal.Message, part)
	}
}
