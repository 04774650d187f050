package report_test

import (
	"fmt"
	"slices"
	"testing"

	"cage/report"
)

// The table of exit codes, decided from the top, against every combination of
// what can be true of a session.
func TestDecideFollowsTheTable(t *testing.T) {
	all := []report.Outcome{
		report.OutcomeReverted, report.OutcomeRemoved, report.OutcomeKept,
		report.OutcomeReported, report.OutcomeDetectOnly, report.OutcomeRevertFailed,
	}
	has := func(e report.Ending, outcomes ...report.Outcome) bool {
		return slices.ContainsFunc(e.Changes, func(c report.Change) bool {
			return slices.Contains(outcomes, c.Outcome)
		})
	}
	table := []struct {
		when   func(report.Ending) bool
		status report.Status
		code   func(report.Ending) int
	}{
		{func(e report.Ending) bool { return e.Halted }, "halted", fixed(4)},
		{func(e report.Ending) bool { return e.Alive }, "violations_unresolved", fixed(3)},
		{func(e report.Ending) bool {
			return has(e, "reverted", "removed") && !has(e, "reported", "detect_only", "revert_failed")
		}, "violations_reverted", fixed(3)},
		{func(e report.Ending) bool { return has(e, "reported", "detect_only", "revert_failed") }, "violations_unresolved", fixed(3)},
		{func(e report.Ending) bool { return e.NotStarted }, "runtime_error", fixed(2)},
		{func(e report.Ending) bool { return e.Signal != 0 }, "ok", func(e report.Ending) int { return 128 + e.Signal }},
		{func(report.Ending) bool { return true }, "ok", func(e report.Ending) int { return e.ExitCode }},
	}
	hits := make([]int, len(table))
	for _, e := range endings(all) {
		row := slices.IndexFunc(table, func(r struct {
			when   func(report.Ending) bool
			status report.Status
			code   func(report.Ending) int
		}) bool {
			return r.when(e)
		})
		hits[row]++
		status, code := report.Decide(e)
		if status != table[row].status || code != table[row].code(e) {
			t.Errorf("%s: got %s %d, want %s %d", describe(e), status, code, table[row].status, table[row].code(e))
		}
	}
	if slices.Contains(hits, 0) {
		t.Errorf("a row of the table was never reached: %v", hits)
	}
}

func fixed(code int) func(report.Ending) int {
	return func(report.Ending) int { return code }
}

// endings returns every combination, with every set of outcomes.
func endings(all []report.Outcome) []report.Ending {
	var list []report.Ending
	for set := range 1 << len(all) {
		var changes []report.Change
		for i, o := range all {
			if set>>i&1 == 1 {
				changes = append(changes, report.Change{Outcome: o})
			}
		}
		for flags := range 1 << 4 {
			for _, exit := range []int{0, 2, 3, 4, 7, 255} {
				e := report.Ending{Changes: changes, Halted: flags&1 != 0, NotStarted: flags&4 != 0, ExitCode: exit}
				e.Alive = flags>>1&1 == 1
				e.Signal = flags >> 3 & 1 * 15
				list = append(list, e)
			}
		}
	}
	return list
}

func describe(e report.Ending) string {
	var outcomes []report.Outcome
	for _, c := range e.Changes {
		outcomes = append(outcomes, c.Outcome)
	}
	return fmt.Sprintf("halted=%v alive=%v not_started=%v signal=%d exit=%d %v", e.Halted, e.Alive, e.NotStarted, e.Signal, e.ExitCode, outcomes)
}

// An outcome that nobody has taught this package must not pass for harmless.
func TestUnknownOutcomeIsUnresolved(t *testing.T) {
	status, code := report.Decide(report.Ending{Changes: []report.Change{{}}})
	if status != report.Unresolved || code != 3 {
		t.Errorf("got %s %d", status, code)
	}
}
