package session

import (
	"context"
	"maps"
	"slices"
	"time"

	"cage/guard"
	"cage/halt"
	"cage/internal/gitrepo"
	"cage/rules"
)

// The limits where neither flag nor rules file sets them.
const (
	defaultContestLimit     = 3
	defaultRuleContestLimit = 10
)

// askFor bounds how long git may take over one question. A contest waits that
// long at most; restoring goes on meanwhile.
const askFor = 10 * time.Second

// concludeFor bounds how long a session that is over waits for git to tell
// which of its last rounds were branch switches: without that its report has no
// word for what a person finds in git status. It takes that long only in a huge
// history, or on a machine where git hardly gets to run.
const concludeFor = askFor

// history is what contests ask of git.
type history interface {
	// Reached reports of every state, in their order and with an error too,
	// whether it stood at its path in a commit reachable from refs.
	Reached(ctx context.Context, refs gitrepo.Refs, states []gitrepo.State) ([]bool, error)
	// Held reports of every state whether HEAD or the index holds it, or a
	// commit that HEAD came by since the start.
	Held(ctx context.Context, states []gitrepo.State) ([]bool, error)
	// Indexed reports of every state whether a checkout of its path would bring
	// it.
	Indexed(ctx context.Context, states []gitrepo.State) ([]bool, error)
}

type (
	counter = halt.Counter[rules.Path, rules.Rule, *displacement]
	round   = halt.Round[rules.Path, *displacement]
	outcome = halt.Outcome[rules.Path, rules.Rule]
)

// contests is the session's account of who fights and who only switches
// branches. Restores are counted at once; whether one is a branch switch only
// git can say, which is asked beside the supervision, one question at a time.
type contests struct {
	*counter
	git  history
	refs gitrepo.Refs
	// act does what follows from an answer.
	act func(outcome)
	// switched has the paths whose changes a branch switch explains, and what
	// that brought there.
	switched map[rules.Path]gitrepo.State
	// fought are the paths that were changed to something else as well.
	fought map[rules.Path]bool

	// unexplained are displacements by the tag of their restore, and the same
	// in the order they came.
	unexplained map[int]*displacement
	waiting     []*displacement
	// next is the question to put when the open one is answered.
	next    question
	open    *openQuestion
	answers chan answer
	// alarm rings when judge has something to do.
	alarm *time.Timer
}

// displacement is what a restore displaced.
type displacement struct {
	tag  int
	path rules.Path
	// since is when it was displaced. What is not explained a round later,
	// because somebody keeps writing it, is no branch switch.
	since time.Time
	// explained says that the counter knows it, or will when git has answered.
	explained bool
	// state is what stood there. Absence is a branch switch only where git
	// could have taken the file away: where the baseline stood in the history
	// too.
	state    gitrepo.State
	baseline *gitrepo.State
}

// states returns what has to have stood in the history for d to be excusable.
func (d *displacement) states() []gitrepo.State {
	if d.baseline != nil {
		return []gitrepo.State{d.state, *d.baseline}
	}
	return []gitrepo.State{d.state}
}

// question is what git is asked in one go: whether displaced states stood in
// the history, and whether those of rounds are held now.
type question struct {
	displaced []*displacement
	rounds    []round
}

type openQuestion struct {
	question
	cancel context.CancelFunc
}

// answer has a word for everything in its question, in the same order.
type answer struct{ reached, held []bool }

func (q question) empty() bool { return len(q.displaced) == 0 && len(q.rounds) == 0 }

// and returns q followed by more.
func (q question) and(more question) question {
	return question{
		displaced: slices.Concat(q.displaced, more.displaced),
		rounds:    slices.Concat(q.rounds, more.rounds),
	}
}

// ask puts a question to git. What git cannot say, or not in time, is not so.
func (q question) ask(ctx context.Context, git history, refs gitrepo.Refs) answer {
	var a answer
	for _, r := range q.rounds {
		a.held = append(a.held, held(ctx, git, r))
	}
	var states []gitrepo.State
	for _, d := range q.displaced {
		states = append(states, d.states()...)
	}
	if len(states) == 0 {
		return a
	}
	reached, _ := git.Reached(ctx, refs, states)
	for _, d := range q.displaced {
		own := reached[:len(d.states())]
		reached = reached[len(own):]
		a.reached = append(a.reached, !slices.Contains(own, false))
	}
	return a
}

// held asks whether git holds every state of a round.
func held(ctx context.Context, git history, r round) bool {
	states := make([]gitrepo.State, 0, len(r.Displaced))
	for _, what := range r.Displaced {
		states = append(states, what.State.state)
	}
	answers, err := git.Held(ctx, states)
	return err == nil && !slices.Contains(answers, false)
}

func newContests(limits halt.Limits, git history, refs gitrepo.Refs, act func(outcome)) *contests {
	c := &contests{
		counter: halt.NewCounter[rules.Path, rules.Rule, *displacement](limits),
		git:     git, refs: refs, act: act,
		switched:    make(map[rules.Path]gitrepo.State),
		fought:      make(map[rules.Path]bool),
		unexplained: make(map[int]*displacement),
		answers:     make(chan answer, 1),
		alarm:       time.NewTimer(time.Hour),
	}
	c.alarm.Stop()
	return c
}

// restored counts a restore. What it displaced is explained later.
func (c *contests) restored(e guard.Restored) {
	d := &displacement{tag: e.Tag, path: e.Path, since: e.At}
	if c.Restored(e.At, e.Path, e.Verdict.Rule, d) {
		c.unexplained[d.tag] = d
		c.waiting = append(c.waiting, d)
	}
}

// explain learns what a restore displaced.
func (c *contests) explain(e guard.Explained) {
	d := c.unexplained[e.Tag]
	if d == nil {
		return // it made no difference, or comes too late
	}
	c.strike(d)
	switch {
	case e.Unchanged:
		c.Withdraw(d.path, d)
	case e.State == nil || len(c.refs) == 0 || e.State.Blob == "" && e.Baseline == nil:
		c.settle(d, false)
	default:
		d.state, d.baseline = *e.State, e.Baseline
		c.next.displaced = append(c.next.displaced, d)
	}
}

// settle answers for a displacement.
func (c *contests) settle(d *displacement, excusable bool) {
	if !excusable {
		c.fought[d.path] = true
	}
	c.act(c.Answer(d.path, d, excusable))
}

// strike takes a displacement off those that wait to be explained.
func (c *contests) strike(d *displacement) {
	d.explained = true
	delete(c.unexplained, d.tag)
}

// judge takes up what is due.
func (c *contests) judge(now time.Time) {
	for _, d := range c.waiting {
		if now.Before(d.since.Add(halt.RoundLength)) {
			break
		}
		if !d.explained {
			c.strike(d)
			c.settle(d, false)
		}
	}
	c.next.rounds = append(c.next.rounds, c.Due(now)...)
}

// proceed puts the next question to git, if none is open, and sets the alarm.
func (c *contests) proceed(ctx context.Context) {
	if c.open == nil && !c.next.empty() {
		ctx, cancel := context.WithTimeout(ctx, askFor)
		q := c.next
		c.open, c.next = &openQuestion{q, cancel}, question{}
		go func() { c.answers <- q.ask(ctx, c.git, c.refs) }()
	}
	if at, ok := c.due(); ok {
		c.alarm.Reset(max(0, time.Until(at)))
	}
}

// due returns when judge has something to do: at the end of a round, or of the
// wait for an explanation.
func (c *contests) due() (at time.Time, ok bool) {
	at, ok = c.Next()
	for len(c.waiting) > 0 && c.waiting[0].explained {
		c.waiting = c.waiting[1:]
	}
	if len(c.waiting) == 0 {
		return at, ok
	}
	if late := c.waiting[0].since.Add(halt.RoundLength); !ok || late.Before(at) {
		return late, true
	}
	return at, ok
}

// take acts on what git said.
func (c *contests) take(a answer) {
	c.open.cancel()
	q := c.open.question
	c.open = nil
	c.learn(q, a)
}

func (c *contests) learn(q question, a answer) {
	for i, d := range q.displaced {
		c.settle(d, a.reached[i])
	}
	for i, r := range q.rounds {
		if a.held[i] {
			for _, what := range r.Displaced {
				c.switched[what.Path] = what.State.state
			}
		}
		c.act(c.Judge(r.Number, a.held[i]))
	}
}

// close ends what can halt the command: nothing is left of it. A question that
// is open is put off.
func (c *contests) close() {
	c.alarm.Stop()
	c.counter.Close()
	if c.open != nil {
		c.open.cancel()
		<-c.answers
		c.next = c.open.question.and(c.next)
		c.open = nil
	}
}

// conclude judges what nobody has judged yet, so that the report can tell what
// was a branch switch and still is. By now everything that can be explained is.
func (c *contests) conclude(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, concludeFor)
	defer cancel()
	for {
		c.next.rounds = append(c.next.rounds, c.Rest()...)
		q := c.next
		if c.next = (question{}); q.empty() {
			break
		}
		c.learn(q, q.ask(ctx, c.git, c.refs))
	}
	c.dropOthers(ctx)
}

// dropOthers forgets the paths that a branch switch does not explain alone, and
// those of which git's index holds something else by now: what it holds may be
// anybody's, and nobody is to be told to check it out.
func (c *contests) dropOthers(ctx context.Context) {
	maps.DeleteFunc(c.switched, func(p rules.Path, _ gitrepo.State) bool { return c.fought[p] })
	if len(c.switched) == 0 {
		return
	}
	paths := slices.Collect(maps.Keys(c.switched))
	states := make([]gitrepo.State, len(paths))
	for i, p := range paths {
		states[i] = c.switched[p]
	}
	indexed, err := c.git.Indexed(ctx, states)
	for i, p := range paths {
		if err != nil || !indexed[i] {
			delete(c.switched, p)
		}
	}
}
