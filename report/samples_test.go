package report_test

import (
	"fmt"
	"strings"
	"time"

	"cage/report"
	"cage/rules"
)

// sample is a document that could be.
type sample struct {
	name string
	doc  report.Document
}

// uneventful is the base of every sample.
func uneventful() report.Document {
	started := time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC)
	return report.Document{
		Status:          report.OK,
		Command:         "agent",
		CommandExitCode: new(0),
		Root:            "/home/kim/shop",
		RevertMode:      report.ModeRevert,
		MaxFileBytes:    5 << 20,
		ProtectedFiles:  12,
		Watch: report.Watch{
			Enabled:          true,
			IntervalMS:       new(int64(1000)),
			ContestLimit:     3,
			SessionLog:       new("/tmp/gantry-cage-4711-9f3a2c1e.log"),
			RuleContestLimit: 10,
			WalkIntervalMS:   new(int64(30_000)),
		},
		Limits:    report.Limits(report.LimitFacts{Watch: true}),
		Session:   report.NewSession("20260301T093000-9f3a2c1e", started, started.Add(83*time.Second+250*time.Millisecond)),
		Lifetime:  report.Lifetime{Mode: "tree", Mechanism: "subreaper", Proved: true},
		Hygiene:   report.Hygiene{Environment: "inherit", Terminal: "foreground"},
		Resources: report.Resources{Mode: "off"},
	}
}

// with returns the base with its status and exit code decided after change.
func with(change func(d *report.Document), signal int) report.Document {
	d := uneventful()
	change(&d)
	e := report.Ending{
		Halted:     d.Watch.Halt != nil,
		Alive:      d.Lifetime.Unresolved(),
		Changes:    d.Changes,
		NotStarted: d.RuntimeError != nil,
		Signal:     signal,
	}
	if d.CommandExitCode != nil {
		e.ExitCode = *d.CommandExitCode
	}
	d.Status, d.ExitCode = report.Decide(e)
	return d
}

func digest(c string) *string { return new(strings.Repeat(c, 64)) }

const store = "/home/kim/.local/state/cage/sessions/20260301T093000-9f3a2c1e/"

func workflow() report.Change {
	return report.Change{
		Name: report.NameOf(".github/workflows/ci.yml"), Kind: report.Modified,
		Rule: rules.CIConfig, Source: rules.Builtin,
		SHA256Before: digest("a"), SHA256After: digest("b"),
		Outcome: report.OutcomeReverted, Restores: 1, Rounds: 1,
		Displaced: []report.Name{report.NameOf(store + "5f1c")},
	}
}

func dotenv() report.Change {
	return report.Change{
		Name: report.NameOf(".env"), Kind: report.Modified,
		Rule: rules.Secrets, Source: rules.Builtin,
		SHA256Before: digest("c"), SHA256After: digest("d"),
		Outcome: report.OutcomeReverted, Restores: 14, Rounds: 4,
		Displaced: []report.Name{report.NameOf(store + "77aa"), report.NameOf(store + "81bc")},
	}
}

func newHook() report.Change {
	return report.Change{
		Name: report.NameOf(".git/hooks/post-checkout"), Kind: report.Added,
		Rule: rules.GitControl, Source: rules.Builtin, SHA256After: digest("e"),
		Outcome: report.OutcomeRemoved, Restores: 1, Rounds: 1,
	}
}

func lockfile() report.Change {
	return report.Change{
		Name: report.NameOf("package-lock.json"), Kind: report.Modified,
		Rule: rules.Lockfile, Source: rules.Builtin,
		SHA256Before: digest("1"), SHA256After: digest("2"), Outcome: report.OutcomeKept,
	}
}

func bookkeeping() report.Change {
	return report.Change{
		Name: report.NameOf(".git/config"), Kind: report.Modified,
		Rule: rules.GitControl, Source: rules.Builtin,
		SHA256Before: digest("3"), SHA256After: digest("4"),
		Outcome: report.OutcomeKept, Note: report.NoteGitBookkeeping,
	}
}

// asWatch makes a session one without a command.
func asWatch(d *report.Document) {
	d.Command, d.CommandExitCode = "", nil
	d.Lifetime = report.Lifetime{Mode: "none", Mechanism: "none", Proved: true}
	d.Hygiene = report.Hygiene{Environment: "none", Terminal: "none"}
	d.Limits = report.Limits(report.LimitFacts{Watch: true, NoCommand: true})
}

func samples() []sample {
	return []sample{
		{"uneventful", uneventful()},
		{"empty", with(func(d *report.Document) { d.ProtectedFiles = 0; d.CommandExitCode = new(7) }, 0)},
		{"crashed", with(func(d *report.Document) { d.CommandExitCode, d.CommandSignal = nil, new("SIGSEGV") }, 11)},
		{"kept", with(func(d *report.Document) {
			d.CommandExitCode = new(7)
			d.Changes = []report.Change{lockfile(), bookkeeping()}
		}, 0)},
		{"reverted", with(func(d *report.Document) {
			d.Changes = []report.Change{workflow(), newHook(), lockfile()}
			d.Reviewable = true
			d.Watch.LiveRestores = 2
			d.Contests = []report.Contest{{Rule: rules.CIConfig, Rounds: 1, Paths: 1}, {Rule: rules.GitControl, Rounds: 1, Paths: 1}}
		}, 0)},
		{"halted", with(func(d *report.Document) {
			d.CommandExitCode, d.CommandSignal = nil, new("SIGTERM")
			d.Changes = []report.Change{dotenv(), newHook(), lockfile()}
			d.Watch.LiveRestores = 15
			d.Watch.Halt = &report.Halt{Scope: report.HaltPath, Name: report.NameOf(".env"), Rule: rules.Secrets, LiveRestores: 4, Limit: 3}
			d.Contests = []report.Contest{{Rule: rules.Secrets, Rounds: 4, Uncounted: 1, Paths: 1}}
			d.Lifetime.Ended = 3
		}, 15)},
		{"halted_rule", with(func(d *report.Document) {
			d.CommandExitCode, d.CommandSignal = nil, new("SIGKILL")
			for i := range 25 {
				c := dotenv()
				c.Name, c.Kind, c.Outcome = report.NameOf(fmt.Sprintf(".env.%02d", i)), report.Added, report.OutcomeRemoved
				c.SHA256Before, c.Restores, c.Rounds = nil, 1, 1
				d.Changes = append(d.Changes, c)
			}
			failed := workflow()
			failed.Outcome, failed.ErrorCode = report.OutcomeRevertFailed, new("ENOSPC")
			d.Changes = append(d.Changes, failed)
			d.Watch.LiveRestores = 25
			d.Watch.Halt = &report.Halt{Scope: report.HaltRule, Name: report.NameOf(".env.24"), Rule: rules.Secrets, LiveRestores: 11, Limit: 10}
		}, 9)},
		{"halted_ground", with(func(d *report.Document) {
			d.CommandExitCode, d.CommandSignal = nil, new("SIGTERM")
			d.Changes = []report.Change{{
				Name: report.NameOf("."), Kind: report.Modified, Rule: report.Ground, Source: rules.Builtin,
				Outcome: report.OutcomeRevertFailed, ErrorCode: new("ESTALE"),
			}}
			d.Watch.Halt = &report.Halt{Scope: report.HaltGround, Name: report.NameOf("."), Rule: report.Ground}
		}, 15)},
		{"unseen", with(func(d *report.Document) {
			d.Changes = []report.Change{{
				Name: report.NameOf("vendor"), Kind: report.Modified, Rule: report.Unseen, Source: rules.Builtin,
				Outcome: report.OutcomeRevertFailed, ErrorCode: new("EMFILE"),
			}}
			d.Watch.Degraded = 1
			d.Watch.DegradedReasons = []string{"looks at files failed (EMFILE) and had to be repeated"}
		}, 0)},
		{"halted_bounds", with(func(d *report.Document) {
			d.Changes = []report.Change{workflow()}
			d.Watch.Halt = &report.Halt{Scope: report.HaltBounds, Name: report.NameOf("k8s/5001.yaml"), Rule: rules.Protect, LiveRestores: 5001, Limit: 5000}
		}, 0)},
		{"not_back", with(func(d *report.Document) {
			failed := dotenv()
			failed.Kind, failed.SHA256After = report.Deleted, nil
			failed.Outcome, failed.ErrorCode, failed.Restores, failed.Displaced = report.OutcomeRevertFailed, new("ESTALE"), 0, nil
			failed.Original = &report.Name{Path: "/home/kim/.local/state/cage/sessions/0f1e2d3c4b5a6978/8d0e"}
			d.Changes = []report.Change{failed}
		}, 0)},
		{"journal_kept", with(func(d *report.Document) {
			failed := dotenv()
			failed.Kind, failed.SHA256After = report.Deleted, nil
			failed.Outcome, failed.ErrorCode, failed.Restores, failed.Displaced = report.OutcomeRevertFailed, new("ENOSPC"), 0, nil
			d.Changes = []report.Change{failed}
			d.JournalKept = &report.JournalKept{Name: report.NameOf("/home/kim/shop/.git/gantry-cage-journal"), Files: 1}
		}, 0)},
		{"unresolved", with(func(d *report.Document) {
			big, outside, failed, owner := workflow(), dotenv(), dotenv(), workflow()
			big.Name, big.Rule, big.Source = report.NameOf("infra/state.tfstate"), rules.Protect, rules.CageYAML
			big.Outcome, big.Restores, big.Displaced = report.OutcomeDetectOnly, 0, nil
			outside.Outcome, outside.Note, outside.Restores = report.OutcomeDetectOnly, report.NoteTargetOutside, 0
			outside.Name, outside.Displaced = report.NameOf("/home/kim/secrets/shop.env"), nil
			failed.Outcome, failed.ErrorCode = report.OutcomeRevertFailed, new("EROFS")
			failed.Name, failed.Restores, failed.Displaced = report.NameOf("config/.env.production"), 0, nil
			failed.Original = &report.Name{Path: "/home/kim/.local/state/cage/sessions/0f1e2d3c4b5a6978/8d0e"}
			owner.Lost = 1
			pipe := dotenv()
			pipe.Name, pipe.SHA256Before = report.NameOf("run/.env"), nil
			pipe.Outcome, pipe.Restores, pipe.Displaced = report.OutcomeDetectOnly, 0, nil
			owner.AttributeErrors = []report.AttributeError{{Attribute: "owner", ErrorCode: "EPERM"}}
			d.Changes = []report.Change{owner, big, outside, failed, pipe}
			d.Watch.LiveRestores = 1
		}, 0)},
		{"report_only", with(func(d *report.Document) {
			c := workflow()
			c.Outcome, c.Restores, c.Rounds, c.Displaced = report.OutcomeReported, 0, 0, nil
			d.Changes = []report.Change{c, lockfile()}
			d.RevertMode = report.ModeReportOnly
			d.Limits = report.Limits(report.LimitFacts{Watch: true, ReportOnly: true})
		}, 0)},
		{"no_watch", with(func(d *report.Document) {
			d.Changes = []report.Change{workflow()}
			d.Watch.Enabled, d.Watch.IntervalMS, d.Watch.WalkIntervalMS = false, nil, nil
			d.Limits = report.Limits(report.LimitFacts{Skipped: []string{"data/\x1b[2J"}})
		}, 0)},
		{"not_started", with(func(d *report.Document) {
			d.CommandExitCode = nil
			d.RuntimeError = new(`cannot run "agnet": not found in PATH`)
			d.Lifetime.Mechanism = "none"
		}, 0)},
		{"survivors", with(func(d *report.Document) {
			d.Changes = []report.Change{workflow()}
			d.Lifetime.Survivors = []report.Process{{PID: 4720, Name: "postgres"}, {PID: 4733, Name: "dd\x1b[31m"}}
			d.Lifetime.Proved = false
			d.Hygiene.PrivateTmp = &report.PrivateTmp{Name: report.NameOf("/tmp/gantry-cage-tmp-9f3a2c1e"), Reason: new("directory not empty")}
		}, 0)},
		{"ended", with(func(d *report.Document) { d.Lifetime.Ended = 1 }, 0)},
		{"left", with(func(d *report.Document) {
			d.Lifetime.Mode, d.Lifetime.Proved = "leave", false
			d.Lifetime.Left = &report.List[report.Process]{{PID: 4720, Name: "node"}, {PID: 4733, Name: "dd\x1b[31m"}}
		}, 0)},
		{"lost", with(func(d *report.Document) {
			d.CommandExitCode, d.CommandSignal = nil, new("SIGKILL")
			d.Lifetime.Mechanism, d.Lifetime.Proved = "keeper", false
		}, 0)},
		{"overridden", with(func(d *report.Document) {
			c := dotenv()
			c.Overridden, c.Outcome, c.Restores, c.Displaced = true, report.OutcomeKept, 0, nil
			d.Changes = []report.Change{c}
			d.Overrides = []string{"infra/", ".env", ".env"}
		}, 0)},
		{"branch_switch", with(func(d *report.Document) {
			a, b := workflow(), workflow()
			a.Note, b.Note = report.NoteBranchSwitch, report.NoteBranchSwitch
			b.Name = report.NameOf(".github/workflows/it's [new].yml")
			c := workflow()
			c.Name, c.Kind, c.SHA256After, c.Displaced, c.Note = report.NameOf(".github/workflows/old one.yml"), report.Deleted, nil, nil, report.NoteBranchSwitch
			d.Changes = []report.Change{a, b, c}
			d.Watch.LiveRestores = 3
			d.Contests = []report.Contest{{Rule: rules.CIConfig, Uncounted: 1, Paths: 3}}
		}, 0)},
		{"troubled", with(func(d *report.Document) {
			d.Changes = []report.Change{dotenv()}
			d.Watch.ContestLimit = 0
			d.Watch.Contested = []string{"web/.env", ".env"}
			d.Watch.LiveRestores = 14
			d.Watch.Overflows, d.Watch.Degraded = 2, 1
			d.Watch.DegradedReasons = []string{"no inotify watch left, see fs.inotify.max_user_watches"}
			d.PushGuard = report.PushGuard{RefusedPushes: 2, Reason: new("no \x1b hook"), Published: []report.Published{{
				Ref: "refs/remotes/origin/ma\x1bin",
				Changes: []report.PublishedChange{
					{Name: report.NameOf("web/.env"), Rule: rules.Secrets, Commit: strings.Repeat("4f", 20)},
					{Name: report.NameOf("b\xff"), Rule: rules.Protect, Commit: strings.Repeat("5e", 32)},
				},
			}}}
			d.TrappedSignal = new("SIGTERM")
			d.CommandExitCode, d.CommandSignal = nil, new("SIGTERM")
			d.Recovery = &report.Recovery{Lost: true, Session: "9f3a2c1e9f3a2c1e"}
			d.Changes[0].Displaced = []report.Name{
				report.NameOf("/a/1"), report.NameOf("/b/1"), report.NameOf("/b/2"), report.NameOf("/c/1"), report.NameOf("/d e\n/1"),
			}
		}, 15)},
		{"watched", with(func(d *report.Document) {
			asWatch(d)
			d.Changes = []report.Change{dotenv()}
			d.Watch.LiveRestores, d.Watch.RuleContestLimit, d.Watch.Contested = 14, 0, []string{".env"}
			d.TrappedSignal = new("SIGTERM")
		}, 0)},
		{"watched_program", with(func(d *report.Document) {
			asWatch(d)
			d.Command = "node"
			d.Lifetime = report.Lifetime{
				Mode: "watched", Mechanism: "listing", Ended: 3, Watched: &report.Process{PID: 4711, Name: "node"},
				Survivors: []report.Process{{PID: 4720, Name: "sudo"}},
			}
			d.Limits = report.Limits(report.LimitFacts{Watch: true, NoCommand: true, Program: true})
			d.Changes = []report.Change{dotenv()}
			d.Watch.LiveRestores = 14
			d.Watch.Halt = &report.Halt{Scope: report.HaltPath, Name: report.NameOf(".env"), Rule: rules.Secrets, LiveRestores: 4, Limit: 3}
		}, 0)},
		{"lossy", with(func(d *report.Document) { d.Watch.Overflows = 1 }, 0)},
		{"hostile_names", with(func(d *report.Document) {
			for _, raw := range []string{
				".env.\x1b]0;owned\a", ".env.a\nexit 0 (ok)", ".env.\xff\xfe", ".env.\u202egpj", ".env.\u0085", " .env", `".env"`, ".env.größe",
				".env." + strings.Repeat("long", 20),
			} {
				c := dotenv()
				c.Name, c.Restores = report.NameOf(raw), 1
				c.Note = report.NoteBranchSwitch
				d.Changes = append(d.Changes, c)
			}
			d.Command = "\x1b[2J"
			d.Watch.Contested = []string{"\x1b[2J\xff"}
			d.Watch.SessionLog = new("/tmp/\x1b[2J/gantry-cage-1-00000000.log")
			d.Overrides = []string{"\x1b[2J"}
			d.Watch.DegradedReasons, d.Watch.Degraded = []string{"\x1b[2J"}, 1
			d.Watch.Halt = &report.Halt{Scope: report.HaltPath, Name: report.NameOf(".env.\x1b[31m'\xff"), Rule: rules.Secrets, LiveRestores: 4, Limit: 3}
		}, 0)},
	}
}
