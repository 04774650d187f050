package report_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"cage/report"
	"cage/rules"
)

func TestStartLine(t *testing.T) {
	const log = "/tmp/gantry-cage-1-00000000.log"
	for name, c := range map[string]struct {
		start report.Start
		want  string
	}{
		"events": {
			report.Start{ProtectedFiles: 12, Events: true, Interval: time.Second, Log: log},
			"cage: watching 12 protected file(s); live events: " + log + "\n",
		},
		"no log": {
			report.Start{ProtectedFiles: 1, Events: true, Interval: time.Second},
			"cage: watching 1 protected file(s)\n",
		},
		"no watch": {
			report.Start{ProtectedFiles: 12, Log: log},
			"cage: checking 12 protected file(s) at exit; live events: " + log + "\n",
		},
		"report only": {
			report.Start{ProtectedFiles: 12, Events: true, Interval: time.Second, ReportOnly: true, Log: log},
			"cage: watching 12 protected file(s); live events: " + log + "; report only, nothing is restored\n",
		},
		"no events": {
			report.Start{
				ProtectedFiles: 12, Interval: 500 * time.Millisecond, Log: log,
				Degraded: "no inotify instance left", Setting: "sysctl fs.inotify.max_user_instances=1024",
			},
			"cage: comparing 12 protected file(s) every 500ms; live events: " + log + "\n" +
				"cage: warning: no file events (no inotify instance left); changes are found every 500ms, not at once\n" +
				"fix: sysctl fs.inotify.max_user_instances=1024\n",
		},
		"some events": {
			report.Start{ProtectedFiles: 12, Events: true, Interval: time.Second, Degraded: "no watch left"},
			"cage: watching 12 protected file(s)\n" +
				"cage: warning: some file events are missing (no watch left); what they miss is found every 1s\n",
		},
		"hostile": {
			report.Start{Events: true, Interval: time.Second, Log: "/tmp/\x1b[2J", Degraded: "\x1b[2J\n", Setting: "\r"},
			"cage: watching 0 protected file(s); live events: \"/tmp/\\x1b[2J\"\n" +
				"cage: warning: some file events are missing (\\x1b[2J\\n); what they miss is found every 1s\n" +
				"fix: \\r\n",
		},
	} {
		if got := c.start.Line(); got != c.want {
			t.Errorf("%s:\n got %q\nwant %q", name, got, c.want)
		}
	}
}

func TestOtherLines(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{report.OverrideBanner(nil), ""},
		{
			report.OverrideBanner([]string{"infra/", ".env", "infra/", "\x1b"}),
			"cage: OVERRIDE: changes to \"\\x1b\", .env, infra/ are reported, not undone, in this run\n",
		},
		{report.Warning("a\nb"), "cage: warning: a\\nb\n"},
		{report.TrappedLine("SIGHUP"), "cage: trapped SIGHUP: ending the command, then a last check of every protected file\n"},
		{
			report.Failure{ErrorCode: "GXT_CAGE_LIMITS_EXCEEDED", Message: "6000 files\ncage: \x1b[2J", FixHints: []string{"a", "b"}}.Line(),
			"cage: [GXT_CAGE_LIMITS_EXCEEDED] 6000 files\n  cage: \\x1b[2J\nfix: a; or b\n",
		},
		{report.Complaint(errors.Join(errors.New("open \x1b[2J"), errors.New("b"))), "cage: open \\x1b[2J\n  b\n"},
		{report.Failure{ErrorCode: "GXT_X", Message: "m \xff\n"}.Line(), "cage: [GXT_X] m \\xff\n"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// Promise: what a person reads of a recovery ends with its last line.
func TestRecoverySummary(t *testing.T) {
	deleted := report.Change{
		Name: report.NameOf(".env"), Kind: report.Deleted, Rule: rules.Secrets, Outcome: report.OutcomeReverted, Restores: 1,
	}
	displaced := deleted
	displaced.Displaced = report.List[report.Name]{report.NameOf("/state/s-recovered/1")}
	found := displaced
	found.Outcome, found.Restores = report.OutcomeKept, 0
	const head = "cage: recovered an interrupted session s: 1 file put back, 0 processes ended\n" +
		"  reverted       deleted   .env  (secrets)\n"
	for _, c := range []struct {
		row  report.Change
		want string
	}{
		{deleted, head},
		{displaced, head + "\n  displaced      1 version in /state/s-recovered\n"},
		{found, "cage: recovered an interrupted session s: 0 files put back, 0 processes ended, 1 file left as it is\n" +
			"  kept           deleted   .env  (secrets)\n" +
			"\n  stored         1 version, as the session found it, in /state/s-recovered\n"},
	} {
		got := report.RecoverySummary(report.Recovery{Session: "s", Restored: c.row.Restores, Changes: report.List[report.Change]{c.row}}, false)
		if got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// Promise: a run that only reports names what a recovery would put back, and
// says what was done all the same.
func TestRecoveryLineOfARunThatOnlyReports(t *testing.T) {
	rows := func(names ...string) (list report.List[report.Change]) {
		for _, name := range names {
			list = append(list, report.Change{Name: report.NameOf(name), Outcome: report.OutcomeReported})
		}
		return append(list, bookkeeping())
	}
	for _, c := range []struct {
		ended int
		rows  report.List[report.Change]
		want  string
	}{
		{2, rows(".env"), "1 protected file changed: .env; 2 of its processes were ended"},
		{1, rows("b\n", "a"), `2 protected files changed: a, "b\n"; 1 of its processes was ended`},
		{0, rows("a", "b", "c", "d", "e", "f", "g"), "7 protected files changed: a, b, c, d, e and 2 more"},
		{0, rows(), "no protected file changed"},
	} {
		got := report.Recovery{Session: "s", ProcessesEnded: c.ended, Changes: c.rows}.Line(true)
		if want := "cage: an interrupted session s left " + c.want + "; --report-only puts nothing back\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestLimits(t *testing.T) {
	watched := report.Limits(report.LimitFacts{Watch: true})
	once := report.Limits(report.LimitFacts{})
	listed := report.Limits(report.LimitFacts{Watch: true, ReportOnly: true})
	if watched[0] == once[0] || watched[0] == listed[0] || once[0] == listed[0] {
		t.Error("three ways of restoring leave three different things open")
	}
	if !slices.Equal(watched[1:], once[1:]) || !slices.Equal(watched[1:], listed[1:]) {
		t.Error("the rest is the same for all")
	}
	skipped := report.Limits(report.LimitFacts{Watch: true, Skipped: []string{"a\x1b", "b"}})
	if len(skipped) != len(watched)+2 {
		t.Fatalf("%d sentences for two skipped directories", len(skipped)-len(watched))
	}
	if !strings.Contains(skipped[len(watched)], `"a\x1b"`) {
		t.Errorf("got %q", skipped[len(watched)])
	}
	for _, limit := range skipped {
		if !strings.HasSuffix(limit, ".") {
			t.Errorf("no sentence: %q", limit)
		}
	}
}

func TestTimestamp(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6_999_999, time.FixedZone("", 3600))
	if got := report.Timestamp(at); got != "2026-01-02T02:04:05.006Z" {
		t.Error(got)
	}
}
