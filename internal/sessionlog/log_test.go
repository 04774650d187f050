package sessionlog

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/rs/zerolog"

	"cage/report"
	"cage/report/reporttest"
	"cage/rules"
)

func open(t *testing.T, limit int64) *Log {
	t.Helper()
	l, err := create(t.TempDir(), limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// lines reads a log back; a line that is no JSON object fails the test.
func lines(t *testing.T, path string) []map[string]any {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > 0 && data[len(data)-1] != '\n' {
		t.Errorf("the last line is not ended: %q", data)
	}
	var list []map[string]any
	for line := range bytes.Lines(data) {
		var event map[string]any
		if err := json.Unmarshal(line, &event); err != nil {
			t.Fatalf("%v: %q", err, line)
		}
		list = append(list, event)
	}
	return list
}

func validator(t *testing.T) func(line []byte) error {
	t.Helper()
	validate, err := reporttest.CompileBy(report.EventSchema())
	if err != nil {
		t.Fatal(err)
	}
	return validate
}

// Every event holds to the schema, and none does without one of its fields.
func TestEvents(t *testing.T) {
	l := open(t, maxBytes)
	validate := validator(t)
	optional := []string{"note", "path_base64", "root_base64", "watched_pid"}
	env := Change{Path: ".env", Kind: report.Modified, Rule: rules.Secrets}
	odd := Change{Path: ".env.\xff", Kind: report.Added, Rule: rules.Secrets}
	base := map[string]any{"path": ".env", "kind": "modified", "rule": "secrets"}
	for _, c := range []struct {
		emit func()
		want map[string]any
	}{
		{
			func() {
				l.SessionStart(Start{Session: "id", Root: "/r\xff", Command: "agent", RevertMode: report.ModeRevert, ProtectedFiles: 3, Watch: true})
			},
			map[string]any{
				"event": "session_start", "session": "id", "root": "/r\ufffd", "root_base64": base64.StdEncoding.EncodeToString([]byte("/r\xff")),
				"command": "agent", "revert_mode": "revert", "protected_files": 3.0, "watch": true,
			},
		},
		{
			func() {
				l.SessionStart(Start{Session: "id", Root: "/r", RevertMode: report.ModeReportOnly, Watch: true, Watched: &report.Process{PID: 7, Name: "a"}})
			},
			map[string]any{
				"event": "session_start", "session": "id", "root": "/r", "command": "", "revert_mode": "report_only", "protected_files": 0.0, "watch": true,
				"watched_pid": 7.0,
			},
		},
		{func() { l.Restored(env, report.OutcomeReverted) }, merge(base, "event", "restored", "outcome", "reverted")},
		{
			func() { l.Restored(odd, report.OutcomeRemoved) },
			map[string]any{
				"event": "restored", "path": ".env.\ufffd", "path_base64": base64.StdEncoding.EncodeToString([]byte(odd.Path)),
				"kind": "added", "rule": "secrets", "outcome": "removed",
			},
		},
		{
			func() { l.Kept(env, report.OutcomeKept, false, report.NoteGitBookkeeping) },
			merge(base, "event", "kept", "outcome", "kept", "overridden", false, "note", "git_bookkeeping"),
		},
		{
			func() { l.Kept(env, report.OutcomeReported, true, "") },
			merge(base, "event", "kept", "outcome", "reported", "overridden", true),
		},
		{func() { l.DetectOnly(env) }, merge(base, "event", "detect_only")},
		{func() { l.RevertFailed(env, "EROFS") }, merge(base, "event", "revert_failed", "error_code", "EROFS")},
		{
			func() { l.Contested(".env", rules.Secrets, 3) },
			map[string]any{"event": "contested", "path": ".env", "rule": "secrets", "live_restores": 3.0},
		},
		{
			func() {
				l.Halt(report.Halt{Scope: report.HaltPath, Name: report.NameOf(".env"), Rule: rules.Secrets, LiveRestores: 4, Limit: 3})
			},
			map[string]any{"event": "halt", "scope": "path", "path": ".env", "rule": "secrets", "live_restores": 4.0, "limit": 3.0},
		},
		{
			func() { l.PushRefused([]PushedPath{{".env", rules.Secrets}, {"a\xff", rules.Protect}}, "") },
			map[string]any{"event": "push_refused", "paths": []any{
				map[string]any{"path": ".env", "rule": "secrets"},
				map[string]any{"path": "a\ufffd", "path_base64": "Yf8=", "rule": "cage_protect"},
			}},
		},
		{
			func() { l.PushRefused(nil, "no \xff") },
			map[string]any{"event": "push_refused", "paths": []any{}, "reason": "no \ufffd"},
		},
		{l.Overflow, map[string]any{"event": "overflow"}},
		{func() { l.Degraded("no watch \xff left") }, map[string]any{"event": "degraded", "reason": "no watch \ufffd left"}},
		{func() { l.TrappedSignal("SIGTERM") }, map[string]any{"event": "trapped_signal", "signal": "SIGTERM"}},
		{
			func() { l.Recovered("earlier", 2, 1) },
			map[string]any{"event": "recovered", "session": "earlier", "restored": 2.0, "ended": 1.0},
		},
		{func() { l.WatchError(errors.New("a\n\x1b")) }, map[string]any{"event": "watch_error", "message": "a\n\x1b"}},
		{
			func() { l.SessionEnd(report.Reverted, 3) },
			map[string]any{"event": "session_end", "status": "violations_reverted", "exit_code": 3.0},
		},
	} {
		before := len(lines(t, l.Path()))
		c.emit()
		all := lines(t, l.Path())
		if len(all) != before+1 {
			t.Fatalf("%v: %d lines more", c.want["event"], len(all)-before)
		}
		got := all[before]
		if at, _ := got["at"].(string); !regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`).MatchString(at) {
			t.Errorf("at is %v", got["at"])
		}
		holds := func() error {
			line, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			return validate(line)
		}
		if err := holds(); err != nil {
			t.Errorf("%v: %v", got, err)
		}
		for name, value := range maps.Clone(got) {
			delete(got, name)
			if missed := holds() == nil; missed != slices.Contains(optional, name) && !(name == "reason" && got["event"] == "push_refused") {
				t.Errorf("%v holds without %s: %v", got, name, missed)
			}
			got[name] = 1.5
			if holds() == nil {
				t.Errorf("%v holds", got)
			}
			got[name] = value
		}
		delete(got, "at")
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("got  %v\nwant %v", got, c.want)
		}
	}
}

// merge returns a copy of base with more pairs.
func merge(base map[string]any, pairs ...any) map[string]any {
	out := map[string]any{}
	for k, v := range base {
		out[k] = v
	}
	for pair := range slices.Chunk(pairs, 2) {
		out[pair[0].(string)] = pair[1]
	}
	return out
}

func TestLinesBeginWithTimeAndEvent(t *testing.T) {
	l := open(t, maxBytes)
	l.Overflow()
	data, err := os.ReadFile(l.Path())
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^\{"at":"[^"]+","event":"overflow"\}\n$`).Match(data) {
		t.Errorf("%q", data)
	}
}

func TestFileIsOurs(t *testing.T) {
	dir := t.TempDir()
	l, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	want := regexp.MustCompile(fmt.Sprintf(`^gantry-cage-%d-[0-9a-f]{8}\.log$`, os.Getpid()))
	if name := filepath.Base(l.Path()); filepath.Dir(l.Path()) != dir || !want.MatchString(name) {
		t.Errorf("path %s", l.Path())
	}
	info, err := os.Lstat(l.Path())
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	second, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if second.Path() == l.Path() {
		t.Error("two logs in one file")
	}
}

// Whatever stands at the name, a link to somebody's file included, is not
// opened.
func TestNeverOpensWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(victim, link); err != nil {
		t.Fatal(err)
	}
	dangling := filepath.Join(dir, "dangling")
	if err := os.Symlink(filepath.Join(dir, "made"), dangling); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{victim, link, dangling} {
		if f, err := os.OpenFile(path, openFlags, 0o600); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v, %v", path, f, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "made")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a dangling link was followed")
	}
}

func TestCreateNamesTheDirectory(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	if _, err := Create(missing); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), missing) {
		t.Errorf("got %v", err)
	}
}

func TestStopsGrowingAndSaysSo(t *testing.T) {
	const limit = 4096
	l := open(t, limit)
	for range 500 {
		l.Overflow()
	}
	l.SessionEnd(report.OK, 0)
	all := lines(t, l.Path())
	last := all[len(all)-1]
	if line, err := json.Marshal(last); err != nil || validator(t)(line) != nil {
		t.Errorf("%s does not hold to the schema (%v)", line, err)
	}
	if last["event"] != "log_full" || last["limit_bytes"] != float64(limit) {
		t.Errorf("the last line is %v", last)
	}
	for _, event := range all[:len(all)-1] {
		if event["event"] != "overflow" {
			t.Errorf("a line is %v", event)
		}
	}
	info, err := os.Stat(l.Path())
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > limit || info.Size() < limit-2*lastLine {
		t.Errorf("%d bytes of %d", info.Size(), limit)
	}
}

// One event alone may be larger than what is left.
func TestHugeEventDoesNotBreakTheLimit(t *testing.T) {
	const limit = 1024
	l := open(t, limit)
	l.Degraded(strings.Repeat("x", 10*limit))
	all := lines(t, l.Path())
	if len(all) != 1 || all[0]["event"] != "log_full" {
		t.Errorf("got %v", all)
	}
}

// The push guard's hook appends from another process.
func TestCountsWhatOthersAppend(t *testing.T) {
	const limit = 4096
	l := open(t, limit)
	l.Overflow()
	other, err := os.OpenFile(l.Path(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := fmt.Fprintf(other, "{\"event\":\"push_refused\",\"x\":%q}\n", strings.Repeat("x", 3*limit/4)); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		l.Overflow()
	}
	info, err := os.Stat(l.Path())
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > limit {
		t.Errorf("%d bytes of %d", info.Size(), limit)
	}
	if all := lines(t, l.Path()); all[1]["event"] != "push_refused" || all[len(all)-1]["event"] != "log_full" {
		t.Errorf("got %v", all)
	}
}

func TestConcurrentLinesStayWhole(t *testing.T) {
	const writers, each = 8, 100
	l := open(t, maxBytes)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				l.Contested(fmt.Sprintf("%d/%d", w, i), rules.Secrets, i)
			}
		})
	}
	wg.Wait()
	seen := map[any]bool{}
	for _, event := range lines(t, l.Path()) {
		seen[event["path"]] = true
	}
	if len(seen) != writers*each {
		t.Errorf("%d of %d events", len(seen), writers*each)
	}
}

func TestCloseWhileWriting(t *testing.T) {
	l := open(t, maxBytes)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				l.Overflow()
			}
		})
	}
	for range 2 {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	size := len(lines(t, l.Path()))
	l.SessionEnd(report.OK, 0)
	if len(lines(t, l.Path())) != size {
		t.Error("written after Close")
	}
}

// A log that cannot be written says so when it is closed, and nowhere else.
func TestWriteErrorIsRemembered(t *testing.T) {
	l := open(t, maxBytes)
	readOnly, err := os.Open(l.Path())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.file.Close(); err != nil {
		t.Fatal(err)
	}
	l.file = readOnly
	l.Overflow()
	first := l.err
	l.Overflow()
	if all := lines(t, l.Path()); len(all) != 0 {
		t.Errorf("got %v", all)
	}
	if err := l.Close(); err == nil || err != first || !strings.Contains(err.Error(), l.Path()) {
		t.Errorf("got %v, want the first error", err)
	}
}

// A program that uses zerolog too finds its settings as it left them, and the
// log is written whatever they are short of being turned off.
func TestGlobalSettingsStayAsTheyAre(t *testing.T) {
	field, format, level := zerolog.TimestampFieldName, zerolog.TimeFieldFormat, zerolog.GlobalLevel()
	l := open(t, maxBytes)
	l.Overflow()
	if zerolog.TimestampFieldName != field || zerolog.TimeFieldFormat != format || zerolog.GlobalLevel() != level || zerolog.ErrorHandler != nil {
		t.Error("a setting of the package changed")
	}
}

func FuzzPaths(f *testing.F) {
	f.Add(".env")
	f.Add("\xff\x00\u2028\"\\\n")
	f.Add("\xed\xa0\x80")
	l, err := create(f.TempDir(), maxBytes)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = l.Close() })
	f.Fuzz(func(t *testing.T, raw string) {
		l.mu.Lock()
		l.render("detect_only", Change{Path: raw}.fields)
		line := bytes.Clone(l.line.Bytes())
		l.mu.Unlock()
		var event struct {
			report.Name
		}
		if err := json.Unmarshal(line, &event); err != nil || !utf8.Valid(line) || bytes.Count(line, []byte("\n")) != 1 {
			t.Fatalf("%q: %v in %q", raw, err, line)
		}
		if event.Bytes() != raw {
			t.Fatalf("%q reads back as %q", raw, event.Bytes())
		}
	})
}
