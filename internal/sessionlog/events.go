package sessionlog

import (
	"github.com/rs/zerolog"

	"cage/report"
	"cage/rules"
)

// Change is what the events about one protected path have in common.
type Change struct {
	// Path is the bytes of the path as reports spell it.
	Path string
	Kind report.Kind
	Rule rules.Rule
}

// Start is what is known when the command is about to start.
type Start struct {
	Session string
	Root    string
	// Command is its name, never its arguments.
	Command        string
	RevertMode     report.RevertMode
	ProtectedFiles int
	// Watch is false where there is one check at the exit only.
	Watch bool
	// Watched is the program that a watch may halt; nil where there is none.
	Watched *report.Process
}

// PushedPath is a protected path that a refused push would have published.
type PushedPath struct {
	Path string
	Rule rules.Rule
}

// SessionStart writes `session_start`.
func (l *Log) SessionStart(s Start) {
	l.emit("session_start", func(e *zerolog.Event) {
		e.Str("session", s.Session)
		name(e, "root", s.Root)
		name(e, "command", s.Command)
		e.Str("revert_mode", string(s.RevertMode)).
			Int("protected_files", s.ProtectedFiles).
			Bool("watch", s.Watch)
		if s.Watched != nil {
			e.Int("watched_pid", s.Watched.PID)
		}
	})
}

// Restored writes `restored`; the outcome is reverted or removed.
func (l *Log) Restored(c Change, outcome report.Outcome) {
	l.emit("restored", func(e *zerolog.Event) {
		c.fields(e)
		e.Str("outcome", string(outcome))
	})
}

// Kept writes `kept`: a change that stays while the session runs. The outcome
// is kept (by mode, override or note) or reported (nothing is restored).
func (l *Log) Kept(c Change, outcome report.Outcome, overridden bool, note report.Note) {
	l.emit("kept", func(e *zerolog.Event) {
		c.fields(e)
		e.Str("outcome", string(outcome)).Bool("overridden", overridden)
		if note != "" {
			e.Str("note", string(note))
		}
	})
}

// DetectOnly writes `detect_only`: a change that nothing was kept to undo.
func (l *Log) DetectOnly(c Change) {
	l.emit("detect_only", c.fields)
}

// RevertFailed writes `revert_failed` with an errno's name. The caller says it
// once per path and error, not at every attempt.
func (l *Log) RevertFailed(c Change, errorCode string) {
	l.emit("revert_failed", func(e *zerolog.Event) {
		c.fields(e)
		e.Str("error_code", errorCode)
	})
}

// Contested writes `contested`: a path that is left alone until the exit.
func (l *Log) Contested(path string, rule rules.Rule, liveRestores int) {
	l.emit("contested", func(e *zerolog.Event) {
		name(e, "path", path)
		e.Str("rule", string(rule)).Int("live_restores", liveRestores)
	})
}

// Halt writes `halt`.
func (l *Log) Halt(h report.Halt) {
	l.emit("halt", func(e *zerolog.Event) {
		e.Str("scope", string(h.Scope))
		name(e, "path", h.Bytes())
		e.Str("rule", string(h.Rule)).
			Int("live_restores", h.LiveRestores).
			Int("limit", h.Limit)
	})
}

// PushRefused writes `push_refused`; the reason says why a push could not be
// judged and is empty where it was.
func (l *Log) PushRefused(paths []PushedPath, reason string) {
	l.emit("push_refused", func(e *zerolog.Event) {
		list := zerolog.Arr()
		for _, p := range paths {
			list.Object(p)
		}
		e.Array("paths", list)
		if reason != "" {
			e.Str("reason", report.Text(reason))
		}
	})
}

// Overflow writes `overflow`: the kernel's event queue lost events.
func (l *Log) Overflow() {
	l.emit("overflow", func(*zerolog.Event) {})
}

// Degraded writes `degraded`: watches were lost or cannot be had.
func (l *Log) Degraded(reason string) {
	l.emit("degraded", func(e *zerolog.Event) { e.Str("reason", report.Text(reason)) })
}

// TrappedSignal writes `trapped_signal`; the name is as in SIGTERM.
func (l *Log) TrappedSignal(signal string) {
	l.emit("trapped_signal", func(e *zerolog.Event) { e.Str("signal", signal) })
}

// Recovered writes `recovered`: an interrupted session was cleaned up, with so
// many paths put back and processes ended.
func (l *Log) Recovered(session string, restored, ended int) {
	l.emit("recovered", func(e *zerolog.Event) {
		e.Str("session", session).Int("restored", restored).Int("ended", ended)
	})
}

// WatchError writes `watch_error`.
func (l *Log) WatchError(err error) {
	l.emit("watch_error", func(e *zerolog.Event) { e.Str("message", report.Text(err.Error())) })
}

// SessionEnd writes `session_end`.
func (l *Log) SessionEnd(status report.Status, exitCode int) {
	l.emit("session_end", func(e *zerolog.Event) {
		e.Str("status", string(status)).Int("exit_code", exitCode)
	})
}

func (c Change) fields(e *zerolog.Event) {
	name(e, "path", c.Path)
	e.Str("kind", string(c.Kind)).Str("rule", string(c.Rule))
}

// MarshalZerologObject implements [zerolog.LogObjectMarshaler].
func (p PushedPath) MarshalZerologObject(e *zerolog.Event) {
	name(e, "path", p.Path)
	e.Str("rule", string(p.Rule))
}

// name adds a name as documents spell it: text, and base64 where that lost
// something.
func name(e *zerolog.Event, key, raw string) {
	n := report.NameOf(raw)
	e.Str(key, n.Path)
	if n.PathBase64 != "" {
		e.Str(key+"_base64", n.PathBase64)
	}
}
