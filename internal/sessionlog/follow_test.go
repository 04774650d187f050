package sessionlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"cage/report"
	"cage/rules"
)

// patience is for what comes at once unless the machine is busy.
const patience = 30 * time.Second

func TestFollowerHasWhatTheFileHasAndMore(t *testing.T) {
	l := open(t, 1024)
	l.Overflow() // before anybody follows
	var raw, text bytes.Buffer
	releaseRaw, releaseText := l.Follow(&raw), l.Follow(Text{&text})
	const events = 100
	for range events {
		l.Restored(Change{Path: ".env", Kind: report.Modified, Rule: rules.Secrets}, report.OutcomeReverted)
	}
	if err := errors.Join(releaseRaw(patience), releaseText(patience)); err != nil {
		t.Fatal(err)
	}
	l.Overflow() // after everybody has gone
	if got := bytes.Count(raw.Bytes(), []byte(`"event":"restored"`)); got != events || bytes.Count(raw.Bytes(), []byte("\n")) != events {
		t.Errorf("%d events in\n%s", got, &raw)
	}
	file, err := os.ReadFile(l.Path())
	if err != nil {
		t.Fatal(err)
	}
	_, both, _ := bytes.Cut(file, []byte("\n"))
	if !bytes.Contains(both, []byte("log_full")) {
		t.Fatalf("the file is not full: %q", file)
	}
	for line := range bytes.Lines(both) {
		if !bytes.Contains(raw.Bytes(), line) && !bytes.Contains(line, []byte("log_full")) {
			t.Errorf("the file has %q, the follower has not", line)
		}
	}
	if got := strings.Count(text.String(), " reverted modified .env (secrets)\n"); got != events {
		t.Errorf("%d lines of text in\n%s", got, &text)
	}
}

// slow takes a line when it is let.
type slow struct {
	bytes.Buffer
	let chan struct{}
}

func (s *slow) Write(line []byte) (int, error) {
	<-s.let
	return s.Buffer.Write(line)
}

func TestFollowerThatIsTooSlowIsToldWhatItMissed(t *testing.T) {
	for _, more := range []bool{true, false} {
		t.Run(fmt.Sprintf("more comes: %v", more), func(t *testing.T) {
			l := open(t, maxBytes)
			out := &slow{let: make(chan struct{})}
			release := l.Follow(out)
			const events = 3 * mostWaiting
			sent := events
			for range events {
				l.Overflow() // returns, though nobody takes it
			}
			if more {
				for range 10 {
					out.let <- struct{}{}
				}
				l.Overflow()
				sent++
			}
			close(out.let)
			if err := release(patience); err != nil {
				t.Fatal(err)
			}
			validate := validator(t)
			had, lost := 0, 0
			for line := range bytes.Lines(out.Bytes()) {
				var e struct {
					Event string
					Lines int
				}
				if err := json.Unmarshal(line, &e); err != nil {
					t.Fatal(err)
				}
				if err := validate(line); err != nil {
					t.Fatalf("%q: %v", line, err)
				}
				if e.Event == "lines_lost" {
					lost += e.Lines
				} else {
					had++
				}
			}
			if had+lost != sent || lost == 0 {
				t.Errorf("%d events: %d came, %d are told to be missing", sent, had, lost)
			}
		})
	}
}

func TestFollowerThatIsGoneIsToldOf(t *testing.T) {
	l := open(t, maxBytes)
	read, write := io.Pipe()
	release := l.Follow(write)
	l.Overflow()
	line := make([]byte, 1)
	if _, err := read.Read(line); err != nil {
		t.Fatal(err)
	}
	gone := errors.New("gone")
	read.CloseWithError(gone)
	for range 2 * mostWaiting {
		l.Overflow()
	}
	if err := release(patience); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

func TestReleaseWaitsForNobodyForEver(t *testing.T) {
	l := open(t, maxBytes)
	out := &slow{let: make(chan struct{})}
	release := l.Follow(out)
	l.Overflow()
	if err := release(time.Millisecond); !errors.Is(err, errNotTaken) {
		t.Errorf("got %v", err)
	}
	close(out.let)
}

func TestText(t *testing.T) {
	odd := Change{Path: ".env.\x1b[2J\xff", Kind: report.Added, Rule: rules.Secrets}
	for _, tt := range []struct {
		emit func(l *Log)
		want string // after the time; empty where people are told nothing
	}{
		{func(l *Log) { l.SessionStart(Start{Session: "id", Root: "/r"}) }, ""},
		{func(l *Log) { l.SessionEnd(report.OK, 0) }, ""},
		{func(l *Log) { l.Recovered("earlier", 2, 1) }, ""},
		{func(l *Log) { l.Restored(odd, report.OutcomeRemoved) }, `removed added ".env.\x1b[2J\xff" (secrets)`},
		{func(l *Log) { l.Kept(odd, report.OutcomeKept, true, "") }, `kept added ".env.\x1b[2J\xff" (secrets, overridden)`},
		{func(l *Log) { l.DetectOnly(odd) }, `detect_only added ".env.\x1b[2J\xff" (secrets)`},
		{func(l *Log) { l.RevertFailed(odd, "EROFS") }, `revert_failed added ".env.\x1b[2J\xff" (secrets) EROFS`},
		{func(l *Log) { l.Contested(".env", rules.Secrets, 4) }, ".env is changed again and again: it is put back after pauses from now on, which grow as long as that goes on"},
		{func(l *Log) { l.Halt(report.Halt{Scope: report.HaltPath, Name: report.NameOf(".env")}) }, "halt (path): .env; the program is being ended"},
		{(*Log).Overflow, "events were lost; everything is compared again"},
		{func(l *Log) { l.Degraded("no watch\x1b left") }, `events are missing: no watch\x1b left`},
		{func(l *Log) { l.WatchError(errors.New("a\nb")) }, `trouble: a\nb`},
		{func(l *Log) { l.TrappedSignal("SIGTERM") }, "trapped SIGTERM"},
	} {
		l := open(t, maxBytes)
		var out bytes.Buffer
		release := l.Follow(Text{&out})
		tt.emit(l)
		if err := release(patience); err != nil {
			t.Error(err)
		}
		want := ""
		if tt.want != "" {
			want = "cage: 15:04:05 " + tt.want + "\n"
		}
		if got := out.String(); len(got) != len(want) || !strings.HasSuffix(got, tt.want+"\n") && want != "" {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
