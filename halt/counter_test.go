package halt

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

type (
	counter = Counter[string, string, string]
	outcome = Outcome[string, string]
)

func newCounter(path, rule int) *counter {
	return NewCounter[string, string, string](Limits{Path: path, Rule: rule})
}

var start = time.Date(2031, 5, 4, 3, 2, 1, 0, time.UTC)

func at(d time.Duration) time.Time { return start.Add(d) }

// step is one call, and what is expected of it.
type step struct {
	at    time.Duration
	path  string
	rule  string
	state string
	// answer is "no", "yes", or "" for a step that leaves the question open.
	answer string
	want   outcome
}

func TestRounds(t *testing.T) {
	const ms = time.Millisecond
	halted := func(scope Scope, path, rule string, restores, limit int) outcome {
		return outcome{Kind: Halt, Scope: scope, Path: path, Rule: rule, LiveRestores: restores, Limit: limit}
	}
	fight := func(n int, gap time.Duration, path, rule string) []step {
		var steps []step
		for i := range n {
			steps = append(steps, step{at: time.Duration(i) * gap, path: path, rule: rule, state: fmt.Sprint(i), answer: "no"})
		}
		return steps
	}
	tests := []struct {
		name  string
		path  int
		rule  int
		steps []step
	}{
		{"five appends in a row are one round", 1, 1, fight(5, 10*ms, "a", "r")},
		{"the fourth round of a path halts", 3, 10, append(fight(3, time.Second, "a", "r"),
			step{3 * time.Second, "a", "r", "x", "no", halted(ByPath, "a", "r", 4, 3)})},
		{"every restore is in the number that is reported", 1, 10, []step{
			{at: 0, path: "a", rule: "r", state: "1", answer: "no"},
			{at: 1 * ms, path: "a", rule: "r", state: "2", answer: "no"},
			{at: 2 * ms, path: "a", rule: "r", state: "3", answer: "no"},
			{1000 * ms, "a", "r", "4", "no", halted(ByPath, "a", "r", 4, 1)},
		}},
		{"a round ends one second after it opened, not after its last restore", 1, 10, []step{
			{at: 0, path: "a", rule: "r", state: "1", answer: "no"},
			{at: 999 * ms, path: "a", rule: "r", state: "2", answer: "no"},
			{1000 * ms, "a", "r", "3", "no", halted(ByPath, "a", "r", 3, 1)},
		}},
		{"rounds of different paths are counted apart", 1, 10, []step{
			{at: 0, path: "a", rule: "r", state: "1", answer: "no"},
			{at: 2 * time.Second, path: "b", rule: "r", state: "1", answer: "no"},
			{at: 4 * time.Second, path: "c", rule: "r", state: "1", answer: "no"},
		}},
		{"moving from file to file halts by the rule", 3, 2, []step{
			{at: 0, path: "a", rule: "r", state: "1", answer: "no"},
			{at: 1100 * ms, path: "b", rule: "r", state: "1", answer: "no"},
			{2200 * ms, "c", "r", "1", "no", halted(ByRule, "c", "r", 3, 2)},
		}},
		{"many files at once are one round of their rule", 3, 1, []step{
			{at: 0, path: "a", rule: "r", state: "1", answer: "no"},
			{at: 1 * ms, path: "b", rule: "r", state: "1", answer: "no"},
			{at: 2 * ms, path: "c", rule: "r", state: "1", answer: "no"},
		}},
		{"rules are counted apart", 9, 1, []step{
			{at: 0, path: "a", rule: "r", state: "1", answer: "no"},
			{at: 2 * time.Second, path: "b", rule: "s", state: "1", answer: "no"},
			{at: 4 * time.Second, path: "c", rule: "t", state: "1", answer: "no"},
		}},
		{"rule limit 0 halts by no rule", 3, 0, []step{
			{at: 0, path: "a", rule: "r", state: "1", answer: "no"},
			{at: 2 * time.Second, path: "b", rule: "r", state: "1", answer: "no"},
			{at: 4 * time.Second, path: "c", rule: "r", state: "1", answer: "no"},
			{at: 6 * time.Second, path: "d", rule: "r", state: "1", answer: "no"},
		}},
		{"rule limit 0 leaves the path limit", 1, 0, []step{
			{at: 0, path: "a", rule: "r", state: "1", answer: "no"},
			{2 * time.Second, "a", "r", "2", "no", halted(ByPath, "a", "r", 2, 1)},
		}},
		{"path limit 0 halts nobody and contests once", 0, 1, []step{
			{at: 0, path: "a", rule: "r", state: "1", answer: "no"},
			{at: 1 * time.Second, path: "b", rule: "r", state: "1", answer: "no"},
			{at: 2 * time.Second, path: "a", rule: "r", state: "2", answer: "no"},
			{4 * time.Second, "a", "r", "3", "no", outcome{Kind: Contested, Scope: ByPath, Path: "a", Rule: "r", LiveRestores: 3, Limit: 3}},
			{at: 6 * time.Second, path: "a", rule: "r", state: "4", answer: "no"},
			{at: 8 * time.Second, path: "b", rule: "r", state: "5", answer: "no"},
		}},
		{"path before rule where both are passed", 1, 1, []step{
			{at: 0, path: "a", rule: "r", state: "1", answer: "no"},
			{2 * time.Second, "a", "r", "2", "no", halted(ByPath, "a", "r", 2, 1)},
		}},
		{"there is one halt", 1, 10, []step{
			{at: 0, path: "a", rule: "r", state: "1", answer: "no"},
			{2 * time.Second, "a", "r", "2", "no", halted(ByPath, "a", "r", 2, 1)},
			{at: 4 * time.Second, path: "a", rule: "r", state: "3", answer: "no"},
		}},
		{"excusable restores count for nothing until they are judged", 1, 1, []step{
			{at: 0, path: "a", rule: "r", state: "1", answer: "yes"},
			{at: 2 * time.Second, path: "a", rule: "r", state: "2", answer: "yes"},
			{at: 4 * time.Second, path: "a", rule: "r", state: "3", answer: "yes"},
		}},
		{"one inexcusable restore makes its round count at that moment", 1, 10, []step{
			{at: 0, path: "a", rule: "r", state: "1", answer: "no"},
			{at: 1000 * ms, path: "a", rule: "r", state: "main", answer: "yes"},
			{1500 * ms, "a", "r", "evil", "no", halted(ByPath, "a", "r", 3, 1)},
		}},
		{"a question left open counts for nothing", 1, 1, []step{
			{at: 0, path: "a", rule: "r", state: "1"},
			{at: 2 * time.Second, path: "a", rule: "r", state: "2"},
			{at: 4 * time.Second, path: "a", rule: "r", state: "3"},
		}},
		{"a clock that goes back opens no round", 1, 10, []step{
			{at: time.Minute, path: "a", rule: "r", state: "1", answer: "no"},
			{at: 0, path: "a", rule: "r", state: "2", answer: "no"},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newCounter(tt.path, tt.rule)
			for i, s := range tt.steps {
				c.Restored(at(s.at), s.path, s.rule, s.state)
				if s.answer == "" {
					continue
				}
				if got := c.Answer(s.path, s.state, s.answer == "yes"); got != s.want {
					t.Fatalf("step %d: got %+v, want %+v", i, got, s.want)
				}
			}
		})
	}
}

func TestNothingToHalt(t *testing.T) {
	for _, limit := range []int{0, 1, 3} {
		c := NewCounter[string, string, string](Limits{Path: limit, Rule: 1, NoHalt: true})
		var got []outcome
		for i := range 8 {
			state := fmt.Sprint(i)
			c.Restored(at(time.Duration(i)*time.Second), "a", "r", state)
			if o := c.Answer("a", state, false); o != (outcome{}) {
				got = append(got, o)
			}
		}
		var want []outcome
		if rounds := limit + 1; limit > 0 {
			want = []outcome{{Kind: Contested, Scope: ByPath, Path: "a", Rule: "r", LiveRestores: rounds, Limit: rounds}}
		}
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: got %+v, want %+v", limit, got, want)
		}
	}
}

func TestBranchSwitchIsJudgedWhenItsRoundEnds(t *testing.T) {
	c := newCounter(3, 10)
	for i, path := range []string{"a", "b"} {
		if !c.Restored(at(time.Duration(i)*time.Millisecond), path, "r", "main") {
			t.Fatalf("nobody asks about %s", path)
		}
		c.Answer(path, "main", true)
	}
	if due := c.Due(at(999 * time.Millisecond)); due != nil {
		t.Fatalf("due before the round has ended: %v", due)
	}
	if next, ok := c.Next(); !ok || !next.Equal(at(time.Second)) {
		t.Fatalf("next is %v, %v", next, ok)
	}
	due := c.Due(at(time.Second))
	want := []Round[string, string]{
		{1, []Displaced[string, string]{{"a", "main"}}},
		{2, []Displaced[string, string]{{"a", "main"}, {"b", "main"}}},
	}
	if !slices.EqualFunc(due, want, func(a, b Round[string, string]) bool {
		return a.Number == b.Number && slices.Equal(a.Displaced, b.Displaced)
	}) {
		t.Fatalf("due are %v, want %v", due, want)
	}
	if next, ok := c.Next(); !ok || !next.Equal(at(1001*time.Millisecond)) {
		t.Fatalf("next is %v, %v; want the round of b", next, ok)
	}
	if again := c.Due(at(time.Second)); again != nil {
		t.Fatalf("due twice: %v", again)
	}
	for _, r := range due {
		if got := c.Judge(r.Number, true); got != (outcome{}) {
			t.Fatalf("a switch had the outcome %+v", got)
		}
	}
	c.Judge(c.Due(at(time.Minute))[0].Number, true)
	if next, ok := c.Next(); ok {
		t.Fatalf("something is due at %v after everything was judged", next)
	}
}

func TestRoundThatGitDoesNotHoldCounts(t *testing.T) {
	c := newCounter(1, 0)
	c.Restored(at(0), "a", "r", "old")
	c.Answer("a", "old", true)
	c.Restored(at(time.Second), "a", "r", "older")
	c.Answer("a", "older", true)
	due := c.Due(at(5 * time.Second))
	if len(due) != 4 {
		t.Fatalf("due are %v, want two rounds of the path and two of the rule", due)
	}
	// The later round is judged first, and twice.
	for _, number := range []int{due[3].Number, due[2].Number, due[2].Number} {
		if got := c.Judge(number, false); got.Kind != Nothing {
			t.Fatalf("the first counted round had the outcome %+v", got)
		}
	}
	want := outcome{Kind: Halt, Scope: ByPath, Path: "a", Rule: "r", LiveRestores: 2, Limit: 1}
	if got := c.Judge(due[0].Number, false); got != want {
		t.Fatalf("got %+v, want %+v", got, want)
	}
}

func TestLateAnswerCountsEveryRoundThatWaitedForIt(t *testing.T) {
	c := newCounter(2, 0)
	for i := range 3 {
		ask := c.Restored(at(time.Duration(i)*2*time.Second), "a", "r", "same")
		if ask != (i == 0) {
			t.Fatalf("restore %d: ask is %v", i, ask)
		}
	}
	if due := c.Due(at(time.Minute)); due != nil {
		t.Fatalf("due without an answer: %v", due)
	}
	if got := c.Answer("a", "same", false); got.Kind != Halt || got.LiveRestores != 3 {
		t.Fatalf("got %+v", got)
	}
}

func TestRoundThatWasHandedOutTakesNoMoreRestores(t *testing.T) {
	c := newCounter(1, 0)
	c.Restored(at(0), "a", "r", "main")
	c.Answer("a", "main", true)
	due := c.Due(at(time.Second))
	c.Restored(at(0), "a", "r", "evil") // its time is older than the end of the round
	if got := c.Answer("a", "evil", false); got.Kind != Nothing {
		t.Fatalf("got %+v", got)
	}
	if len(due[0].Displaced) != 1 {
		t.Fatalf("the round changed under its judge: %v", due)
	}
	if got := c.Judge(due[0].Number, false); got.Kind != Halt {
		t.Fatalf("got %+v, want a halt at the second round", got)
	}
}

func TestRestoresThatAnsweredNoChangeMakeNoRound(t *testing.T) {
	c := newCounter(1, 10)
	c.Restored(at(0), "a", "r", "same")
	if next, ok := c.Next(); ok {
		t.Fatalf("something is due at %v before anybody knows what it is", next)
	}
	c.Withdraw("a", "same")
	if due := c.Due(at(time.Second)); due != nil {
		t.Fatalf("due are %v", due)
	}
	if got := c.OfPath("a"); got != (Tally{}) {
		t.Errorf("the path has the account %+v", got)
	}
	if got := c.Rules(); !maps.Equal(got, map[string]Tally{"r": {}}) {
		t.Errorf("the rules have the accounts %v", got)
	}
	if next, ok := c.Next(); ok {
		t.Errorf("something is due at %v after the round was forgotten", next)
	}
}

func TestWithdrawnRestoreIsNotAskedAboutWithItsRound(t *testing.T) {
	c := newCounter(3, 10)
	for _, state := range []string{"same", "main"} {
		c.Restored(at(0), "a", "r", state)
	}
	c.Withdraw("a", "same")
	c.Answer("a", "main", true)
	c.Withdraw("a", "main") // too late
	for _, round := range c.Due(at(time.Second)) {
		if !slices.Equal(round.Displaced, []Displaced[string, string]{{"a", "main"}}) {
			t.Errorf("due is %v", round)
		}
	}
}

func TestAccounts(t *testing.T) {
	c := newCounter(2, 0)
	restored := func(d time.Duration, path, state string, excusable bool) {
		c.Restored(at(d), path, "r", state)
		c.Answer(path, state, excusable)
	}
	restored(0, "a", "evil", false)
	restored(time.Millisecond, "a", "worse", false)
	restored(time.Second, "b", "main", true)
	for _, round := range c.Due(at(2 * time.Second)) {
		c.Judge(round.Number, true)
	}
	c.Restored(at(3*time.Second), "b", "r", "unknown")
	if got, want := c.OfPath("a"), (Tally{Opened: 1, Counted: 1}); got != want {
		t.Errorf("a has %+v, want %+v", got, want)
	}
	if got, want := c.OfPath("b"), (Tally{Opened: 2, Uncounted: 1}); got != want {
		t.Errorf("b has %+v, want %+v", got, want)
	}
	if got, want := c.OfPath("c"), (Tally{}); got != want {
		t.Errorf("a path without restores has %+v", got)
	}
	// Kept though no rule halts.
	if got, want := c.Rules()["r"], (Tally{Opened: 3, Counted: 1, Uncounted: 1}); got != want {
		t.Errorf("the rule has %+v, want %+v", got, want)
	}
}

func TestClosedCounterHasNoOutcome(t *testing.T) {
	for _, limit := range []int{0, 1} {
		c := newCounter(limit, 1)
		c.Close()
		for i := range 5 {
			state := fmt.Sprint(i)
			c.Restored(at(time.Duration(i)*time.Second), "a", "r", state)
			if got := c.Answer("a", state, false); got != (outcome{}) {
				t.Errorf("limit %d: got %+v", limit, got)
			}
		}
		if got := c.OfPath("a"); got.Counted != 5 {
			t.Errorf("limit %d: the path has %+v", limit, got)
		}
	}
}

func TestRestAreTheRoundsThatHaveNotEnded(t *testing.T) {
	c := newCounter(3, 0)
	c.Restored(at(0), "a", "r", "main")
	c.Restored(at(0), "b", "s", "unknown")
	c.Answer("a", "main", true)
	c.Close()
	if rest := c.Rest(); len(rest) != 2 {
		t.Errorf("the rest is %v, want the rounds of a and r", rest)
	}
	if rest := c.Rest(); rest != nil {
		t.Errorf("the rest came twice: %v", rest)
	}
}

func TestNothingIsAskedAfterItMattersNoMore(t *testing.T) {
	c := newCounter(1, 1)
	c.Restored(at(0), "a", "r", "1")
	c.Answer("a", "1", false)
	if c.Restored(at(1), "a", "r", "2") {
		t.Error("asks about a round that counts already")
	}
	if !c.Restored(at(1), "b", "r", "2") {
		t.Error("does not ask about the first round of another path")
	}
	c.Restored(at(time.Second), "a", "r", "3")
	if got := c.Answer("a", "3", false); got.Kind != Halt {
		t.Fatalf("got %+v", got)
	}
	if c.Restored(at(time.Minute), "c", "s", "4") {
		t.Error("asks after the halt")
	}
	if due := c.Due(at(time.Hour)); due != nil {
		t.Errorf("due after the halt: %v", due)
	}
	if got := c.Answer("b", "2", false); got.Kind != Nothing {
		t.Errorf("a second halt: %+v", got)
	}
	if got := c.Judge(12345, false); got.Kind != Nothing {
		t.Errorf("an unknown round had the outcome %+v", got)
	}
}

// restore is one restore of a drawn history.
type restore struct {
	at        time.Duration
	path      string
	rule      string
	state     string
	excusable bool
}

// drawHistory draws restores in the order of their times. A path has one rule,
// and a state at a path is excusable or not, once and for all.
func drawHistory(t *rapid.T) []restore {
	var now time.Duration
	history := make([]restore, rapid.IntRange(0, 60).Draw(t, "restores"))
	for i := range history {
		now += time.Duration(rapid.SampledFrom([]int{0, 1, 10, 300, 999, 1000, 1500}).Draw(t, "gap")) * time.Millisecond
		path := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "path")
		state := rapid.SampledFrom([]string{"main", "old", "evil", "worse"}).Draw(t, "state")
		rule := "r"
		if path == "d" {
			rule = "s"
		}
		history[i] = restore{now, path, rule, state, state == "main" || state == "old"}
	}
	return history
}

// expected counts the rounds of each path and rule that hold an inexcusable
// restore, by the definition and without states kept between restores.
func expected(history []restore, key func(restore) string) map[string]int {
	counted := make(map[string]int)
	opened := make(map[string]time.Duration)
	guilty := make(map[string]bool)
	seen := make(map[string]bool)
	for _, r := range history {
		k := key(r)
		if !seen[k] || r.at-opened[k] >= RoundLength {
			seen[k], opened[k], guilty[k] = true, r.at, false
		}
		if !r.excusable && !guilty[k] {
			guilty[k] = true
			counted[k]++
		}
	}
	return counted
}

func TestHaltIffTheLimitIsPassed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		history := drawHistory(t)
		limits := Limits{Path: rapid.IntRange(1, 4).Draw(t, "path limit"), Rule: rapid.IntRange(0, 6).Draw(t, "rule limit")}
		c := NewCounter[string, string, string](limits)
		halts := 0
		for i, r := range history {
			c.Restored(at(r.at), r.path, r.rule, r.state)
			got := c.Answer(r.path, r.state, r.excusable)
			paths := expected(history[:i+1], func(r restore) string { return r.path })
			rules := expected(history[:i+1], func(r restore) string { return r.rule })
			passed := paths[r.path] > limits.Path || limits.Rule > 0 && rules[r.rule] > limits.Rule
			if got.Kind == Halt {
				halts++
			}
			if halts > 1 || passed && halts == 0 || got.Kind == Halt && !passed || got.Kind == Contested {
				t.Fatalf("restore %d: outcome %+v, %d halts, rounds of paths %v and rules %v", i, got, halts, paths, rules)
			}
			for _, due := range c.Due(at(r.at)) {
				if c.Judge(due.Number, true).Kind != Nothing {
					t.Fatal("a round that git holds had an outcome")
				}
			}
		}
	})
}

// When the answers come does not change whether there is a halt.
func TestAnswersMayComeInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		history := drawHistory(t)
		limits := Limits{Path: rapid.IntRange(1, 4).Draw(t, "path limit"), Rule: rapid.IntRange(0, 6).Draw(t, "rule limit")}
		prompt, late := NewCounter[string, string, string](limits), NewCounter[string, string, string](limits)
		promptly, lately := false, false
		var questions []restore
		for _, r := range history {
			prompt.Restored(at(r.at), r.path, r.rule, r.state)
			promptly = prompt.Answer(r.path, r.state, r.excusable).Kind == Halt || promptly
			if late.Restored(at(r.at), r.path, r.rule, r.state) {
				questions = append(questions, r)
			}
		}
		for _, q := range rapid.Permutation(questions).Draw(t, "answers") {
			lately = late.Answer(q.path, q.state, q.excusable).Kind == Halt || lately
		}
		if promptly != lately {
			t.Fatalf("halt with prompt answers: %v, with late ones: %v", promptly, lately)
		}
		// What is left are rounds of excusable restores alone.
		if !promptly && len(prompt.Due(at(time.Hour))) != len(late.Due(at(time.Hour))) {
			t.Fatal("prompt and late answers leave different rounds to judge")
		}
	})
}

// Inside a round the order of the restores does not matter.
func TestOrderInsideARoundDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		states := rapid.SliceOfN(rapid.SampledFrom([]string{"main", "old", "evil"}), 1, 12).Draw(t, "states")
		counts := func(states []string) bool {
			c := newCounter(1, 0)
			c.Restored(at(-time.Hour), "a", "r", "evil")
			c.Answer("a", "evil", false)
			halted := false
			for i, s := range states {
				c.Restored(at(time.Duration(i)*time.Millisecond), "a", "r", s)
				halted = c.Answer("a", s, s != "evil").Kind == Halt || halted
			}
			return halted
		}
		if counts(states) != counts(rapid.Permutation(states).Draw(t, "permuted")) {
			t.Fatal("the order of restores inside a round decides whether it counts")
		}
	})
}
