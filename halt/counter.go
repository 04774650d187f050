package halt

import (
	"slices"
	"time"
)

// RoundLength is the time from the restore that opens a round to its end.
const RoundLength = time.Second

// contestedAfter is the number of rounds that make a path contested where a
// halt was possible and not wanted.
const contestedAfter = 3

// Limits are the numbers of rounds that are let pass, neither negative.
type Limits struct {
	// Path is the limit of each path. With 0 nothing halts, by path or by
	// rule, and a path is contested after three rounds.
	Path int
	// Rule is the limit of each rule. With 0 no rule halts.
	Rule int
	// NoHalt says that there is nothing to halt: a path past its limit is
	// contested, a Path of 0 lets every round pass, and Rule means nothing.
	NoHalt bool
}

// contestedAfter returns the number of counted rounds that make a path
// contested; 0 where none does.
func (l Limits) contestedAfter() int {
	switch {
	case l.Path == 0 && l.NoHalt:
		return 0
	case l.Path == 0:
		return contestedAfter
	case l.NoHalt:
		return l.Path + 1
	default:
		return 0
	}
}

// Counter counts rounds. P names a path, R a rule, and S a state that stood at
// a path: content, mode and the like, or absence.
//
// A restore is told with Restored. Where that says so, the caller finds out
// whether the state that was displaced is excusable, that is, whether it stood
// at its path in a commit reachable from the refs of the session's start, and
// tells it with Answer. A caller that cannot find out, or not in time, answers
// no: until then the round neither counts nor is dropped. At the time that Next
// gives, the caller asks for Due, asks git for each of these rounds whether
// HEAD or the index holds all of its states now, or HEAD came by them, and
// tells it with Judge.
//
// Only Answer and Judge can have an outcome to act on. There is one halt; after
// it the counter wants to know nothing more. After Close there is none: rounds
// are counted for the record alone.
//
// A Counter is not safe for use by several goroutines at once.
type Counter[P, R, S comparable] struct {
	limits    Limits
	paths     map[P]*tally[P, R, S]
	rules     map[R]*tally[P, R, S]
	undecided []*round[P, R, S]
	asked     map[Displaced[P, S]][]*round[P, R, S]
	rounds    int
	halted    bool
	closed    bool
}

// Displaced is a state that a restore displaced, and where.
type Displaced[P, S comparable] struct {
	Path  P
	State S
}

// Round is a round that has ended and in which every restore was excusable.
type Round[P, S comparable] struct {
	// Number tells it from other rounds.
	Number int
	// Displaced are the states that were displaced in it, each once.
	Displaced []Displaced[P, S]
}

// Kind says what follows from an Answer or a Judge.
type Kind uint8

const (
	// Nothing follows.
	Nothing Kind = iota
	// Halt the command.
	Halt
	// Contested: a path is fought over and nothing is halted for it. It is said
	// once a path.
	Contested
)

// Scope says whose limit was passed.
type Scope string

// The scopes, as reports spell them.
const (
	ByPath Scope = "path"
	ByRule Scope = "rule"
)

// Outcome is what follows from an Answer or a Judge. Where Kind is Nothing the
// rest is empty.
type Outcome[P, R comparable] struct {
	Kind  Kind
	Scope Scope
	// Path is the path that passed its limit, or the one whose round made its
	// rule pass it.
	Path P
	Rule R
	// LiveRestores counts every restore so far of the path, or under the rule
	// where Scope is ByRule.
	LiveRestores int
	// Limit is the number of rounds that were let pass, or that made the path
	// contested.
	Limit int
}

// Tally is what became of the rounds of a path or of a rule.
type Tally struct {
	// Opened are all of them, those that turned out to answer no change left
	// out.
	Opened int
	// Counted are those that count towards the limit, Uncounted those that were
	// branch switches. About the others nobody has said anything yet.
	Counted, Uncounted int
}

// tally is the account of a path or of a rule.
type tally[P, R, S comparable] struct {
	Tally
	scope    Scope
	limit    int
	restores int
	// latest is the round that opened last.
	latest *round[P, R, S]
}

type round[P, R, S comparable] struct {
	number     int
	tally      *tally[P, R, S]
	rule       R
	opened     time.Time
	displaced  []Displaced[P, S]
	known      map[Displaced[P, S]]bool
	unanswered int
	decided    bool
	// due says that Due has returned it: it takes no more restores.
	due bool
}

func (r *round[P, R, S]) note(what Displaced[P, S]) {
	r.displaced = append(r.displaced, what)
	r.known[what] = true
	r.unanswered++
}

func (r *round[P, R, S]) ends() time.Time { return r.opened.Add(RoundLength) }

// judgeable reports whether only git's word is missing once the round ends.
func (r *round[P, R, S]) judgeable() bool { return r.unanswered == 0 && !r.due }

// NewCounter returns a counter without rounds.
func NewCounter[P, R, S comparable](limits Limits) *Counter[P, R, S] {
	return &Counter[P, R, S]{
		limits: limits,
		paths:  make(map[P]*tally[P, R, S]),
		rules:  make(map[R]*tally[P, R, S]),
		asked:  make(map[Displaced[P, S]][]*round[P, R, S]),
	}
}

// Restored notes that at this time path, under rule, was restored, and what
// that displaced. It reports whether the caller is to find out if that is
// excusable and to call Answer; for what is being found out already, or makes
// no difference any more, it is not.
func (c *Counter[P, R, S]) Restored(now time.Time, path P, rule R, state S) (ask bool) {
	if c.halted {
		return false
	}
	what := Displaced[P, S]{path, state}
	for _, t := range c.tallies(path, rule) {
		t.restores++
		current := c.roundAt(now, t, rule)
		if current.decided || current.known[what] {
			continue
		}
		current.note(what)
		ask = ask || len(c.asked[what]) == 0
		c.asked[what] = append(c.asked[what], current)
	}
	return ask
}

// tallies returns the accounts that a restore concerns.
func (c *Counter[P, R, S]) tallies(path P, rule R) []*tally[P, R, S] {
	byPath := c.paths[path]
	if byPath == nil {
		byPath = &tally[P, R, S]{scope: ByPath, limit: c.limits.Path}
		c.paths[path] = byPath
	}
	byRule := c.rules[rule]
	if byRule == nil {
		byRule = &tally[P, R, S]{scope: ByRule, limit: c.limits.Rule}
		c.rules[rule] = byRule
	}
	return []*tally[P, R, S]{byPath, byRule}
}

// roundAt returns the round of an account that a restore at this time falls
// into, which it opens where there is none.
func (c *Counter[P, R, S]) roundAt(now time.Time, t *tally[P, R, S], rule R) *round[P, R, S] {
	if t.latest != nil && !t.latest.due && now.Before(t.latest.ends()) {
		return t.latest
	}
	c.rounds++
	t.Opened++
	t.latest = &round[P, R, S]{
		number: c.rounds, tally: t, rule: rule, opened: now, known: make(map[Displaced[P, S]]bool),
	}
	c.undecided = append(c.undecided, t.latest)
	return t.latest
}

// Answer tells whether a displaced state that Restored asked about is
// excusable. A round in which one is not counts from that moment.
func (c *Counter[P, R, S]) Answer(path P, state S, excusable bool) Outcome[P, R] {
	what := Displaced[P, S]{path, state}
	rounds := c.asked[what]
	delete(c.asked, what)
	var outcome Outcome[P, R]
	for _, r := range rounds {
		if r.decided {
			continue
		}
		if excusable {
			r.unanswered--
		} else if o := c.count(r, path); o.Kind != Nothing {
			outcome = o
		}
	}
	return outcome
}

// Withdraw takes back a restore that Restored asked about: what it displaced
// was what should stand there, so that it answered no change.
func (c *Counter[P, R, S]) Withdraw(path P, state S) {
	what := Displaced[P, S]{path, state}
	for _, r := range c.asked[what] {
		if !r.decided {
			r.unanswered--
			r.displaced = slices.DeleteFunc(r.displaced, func(other Displaced[P, S]) bool { return other == what })
		}
	}
	delete(c.asked, what)
}

// Next returns when Due will have something to return, if no more is told
// until then.
func (c *Counter[P, R, S]) Next() (at time.Time, ok bool) {
	for _, r := range c.undecided {
		if r.judgeable() && (!ok || r.ends().Before(at)) {
			at, ok = r.ends(), true
		}
	}
	return at, ok
}

// Due returns, each once and in the order of their opening, the rounds that
// have ended by now and wait for Judge. Those of which nothing was left are
// forgotten.
func (c *Counter[P, R, S]) Due(now time.Time) []Round[P, S] {
	return c.due(func(r *round[P, R, S]) bool { return !now.Before(r.ends()) })
}

// Rest returns the rounds that wait for Judge or for their end: no restore is
// going to fall into them any more.
func (c *Counter[P, R, S]) Rest() []Round[P, S] {
	return c.due(func(*round[P, R, S]) bool { return true })
}

func (c *Counter[P, R, S]) due(ended func(*round[P, R, S]) bool) []Round[P, S] {
	var due []Round[P, S]
	for _, r := range slices.Clone(c.undecided) {
		switch {
		case !r.judgeable() || !ended(r):
		case len(r.displaced) == 0:
			r.tally.Opened--
			c.decide(r)
		default:
			r.due = true
			due = append(due, Round[P, S]{Number: r.number, Displaced: r.displaced})
		}
	}
	return due
}

// Judge tells whether git held every state of a round that Due
// returned. If so it was a branch switch and does not count.
func (c *Counter[P, R, S]) Judge(number int, held bool) Outcome[P, R] {
	i := slices.IndexFunc(c.undecided, func(r *round[P, R, S]) bool { return r.due && r.number == number })
	if i < 0 {
		return Outcome[P, R]{}
	}
	r := c.undecided[i]
	if held {
		r.tally.Uncounted++
		c.decide(r)
		return Outcome[P, R]{}
	}
	return c.count(r, r.displaced[0].Path)
}

// Close says that there is nothing left to halt.
func (c *Counter[P, R, S]) Close() { c.closed = true }

// OfPath returns the account of a path.
func (c *Counter[P, R, S]) OfPath(path P) Tally {
	if t := c.paths[path]; t != nil {
		return t.Tally
	}
	return Tally{}
}

// Rules returns the accounts of the rules under which there was a round, or a
// restore that turned out to answer no change.
func (c *Counter[P, R, S]) Rules() map[R]Tally {
	accounts := make(map[R]Tally, len(c.rules))
	for rule, t := range c.rules {
		accounts[rule] = t.Tally
	}
	return accounts
}

// decide takes a round off the list of those that something may still change.
func (c *Counter[P, R, S]) decide(r *round[P, R, S]) {
	r.decided, r.known = true, nil
	c.undecided = slices.DeleteFunc(c.undecided, func(other *round[P, R, S]) bool { return other == r })
}

// count counts a round, for which path is to be named.
func (c *Counter[P, R, S]) count(r *round[P, R, S], path P) Outcome[P, R] {
	c.decide(r)
	r.tally.Counted++
	outcome := Outcome[P, R]{
		Scope: r.tally.scope, Path: path, Rule: r.rule, LiveRestores: r.tally.restores, Limit: r.tally.limit,
	}
	switch {
	case c.closed || c.halted:
	case c.contests(r.tally):
		outcome.Kind, outcome.Limit = Contested, c.limits.contestedAfter()
		return outcome
	case c.passed(r.tally):
		c.halt()
		outcome.Kind = Halt
		return outcome
	}
	return Outcome[P, R]{}
}

// contests reports whether a path has just become contested.
func (c *Counter[P, R, S]) contests(t *tally[P, R, S]) bool {
	return t.scope == ByPath && t.Counted == c.limits.contestedAfter()
}

// passed reports whether an account is past a limit that halts.
func (c *Counter[P, R, S]) passed(t *tally[P, R, S]) bool {
	return !c.limits.NoHalt && c.limits.Path != 0 && t.limit != 0 && t.Counted > t.limit
}

// halt forgets what is undecided: the one outcome that matters is known.
func (c *Counter[P, R, S]) halt() {
	c.halted = true
	c.undecided = nil
	clear(c.asked)
}
