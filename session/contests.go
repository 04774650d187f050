package session

import (
	"context"
	"slices"
	"time"

	"cage/guard"
	"cage/halt"
	"cage/internal/gitrepo"
	"cage/report"
	"cage/rules"
)

// The limits of SPEC where neither flag nor rules file sets them.
const (
	defaultContestLimit     = 3
	defaultRuleContestLimit = 10
)

// reachedFor bounds how long git may search the history for displaced states.
// A contest waits that long at most; restoring goes on meanwhile.
const reachedFor = 10 * time.Second

// contests is the session's account of who fights and who only switches
// branches. Restores are counted at once; whether one is a branch switch only
// git can say, which is asked beside the supervision, one question at a time.
type contests struct {
	counter   *halt.Counter[rules.Path, rules.Rule, int]
	pathLimit int
	ruleLimit int
	contested []rules.Path
	// switched are paths whose changes a branch switch explains.
	switched map[rules.Path]bool

	refs      gitrepo.Refs
	displaced map[int]*displacement // by the tag of the restore
	reach     []int                 // tags to ask git about
	rounds    []halt.Round[rules.Path, int]
	asking    context.CancelFunc // nil while no question is open
	answers   chan answer
	judgement *time.Timer
}

// displacement is what a restore displaced.
type displacement struct {
	path rules.Path
	// since is when it was displaced. What is not explained a round later,
	// because somebody keeps writing it, is no branch switch.
	since     time.Time
	explained bool
	unchanged bool
	state     *gitrepo.State
}

// answer is what git said: which of the states were reached, by the tag of
// their restore, or which of the rounds were held.
type answer struct {
	reached map[int]bool
	rounds  []judged
}

type judged struct {
	halt.Round[rules.Path, int]
	held bool
}

func (s *session) openContests(refs gitrepo.Refs) {
	s.pathLimit = firstSet(s.ContestLimit, s.plan.ContestLimit, defaultContestLimit)
	s.ruleLimit = firstSet(s.RuleContestLimit, s.plan.RuleContestLimit, defaultRuleContestLimit)
	s.counter = halt.NewCounter[rules.Path, rules.Rule, int](halt.Limits{Path: s.pathLimit, Rule: s.ruleLimit})
	s.switched = make(map[rules.Path]bool)
	s.displaced = make(map[int]*displacement)
	s.refs = refs
	s.answers = make(chan answer, 1)
	s.judgement = time.NewTimer(time.Hour)
	s.judgement.Stop()
}

func firstSet(flag *int, file func() (int, bool), standard int) int {
	if flag != nil {
		return *flag
	}
	if n, ok := file(); ok {
		return n
	}
	return standard
}

// closeContests ends a question that is still open: the run is over.
func (s *session) closeContests() {
	s.judgement.Stop()
	if s.asking != nil {
		s.asking()
		<-s.answers
		s.asking = nil
	}
}

// count counts a restore. What it displaced is explained later.
func (s *session) count(e guard.Restored) {
	if !e.Live || !s.counter.Restored(e.At, e.Path, e.Verdict.Rule, e.Tag) {
		return
	}
	s.displaced[e.Tag] = &displacement{path: e.Path, since: e.At}
	s.schedule()
}

// explain learns what a restore displaced.
func (s *session) explain(ctx context.Context, e guard.Explained) {
	d := s.displaced[e.Tag]
	if d == nil || d.explained {
		return
	}
	d.explained, d.unchanged, d.state = true, e.Unchanged, e.State
	switch {
	case e.Unchanged:
		s.answer(e.Tag, true)
	case e.State == nil || len(s.refs) == 0:
		s.answer(e.Tag, false)
	default:
		s.reach = append(s.reach, e.Tag)
		s.ask(ctx)
	}
}

func (s *session) answer(tag int, excusable bool) {
	d := s.displaced[tag]
	if !excusable {
		delete(s.displaced, tag)
	}
	s.act(s.counter.Answer(d.path, tag, excusable))
	s.schedule()
}

// act does what follows from an answer.
func (s *session) act(o halt.Outcome[rules.Path, rules.Rule]) {
	switch o.Kind {
	case halt.Halt:
		s.halt(report.Halt{
			Scope: report.HaltScope(o.Scope), Name: report.NameOf(display(s.layout, o.Path)), Rule: o.Rule,
			LiveRestores: o.Limit + 1, Limit: o.Limit,
		})
	case halt.Contested:
		s.contested = append(s.contested, o.Path)
		s.guard.Concede(o.Path)
		s.log.Contested(display(s.layout, o.Path), o.Rule, o.LiveRestores)
		s.ring()
	}
}

// schedule sets the alarm for what is due next: the end of a round, or of the
// wait for an explanation.
func (s *session) schedule() {
	next, ok := s.counter.Next()
	for _, d := range s.displaced {
		if late := d.since.Add(halt.RoundLength); !d.explained && (!ok || late.Before(next)) {
			next, ok = late, true
		}
	}
	if ok {
		s.judgement.Reset(max(0, time.Until(next)))
	}
}

// judge takes up what is due.
func (s *session) judge(ctx context.Context) {
	now := time.Now()
	for tag, d := range s.displaced {
		if !d.explained && !now.Before(d.since.Add(halt.RoundLength)) {
			d.explained = true
			s.answer(tag, false)
		}
	}
	s.rounds = append(s.rounds, s.counter.Due(now)...)
	s.ask(ctx)
	s.schedule()
}

// ask puts the next question to git, if none is open.
func (s *session) ask(ctx context.Context) {
	if s.asking != nil || len(s.reach) == 0 && len(s.rounds) == 0 {
		return
	}
	ctx, s.asking = context.WithTimeout(ctx, reachedFor)
	if len(s.rounds) > 0 {
		rounds, states := s.rounds, make(map[int][]gitrepo.State)
		for _, r := range rounds {
			states[r.Number] = s.statesOf(r)
		}
		s.rounds = nil
		go func() { s.answers <- answer{rounds: heldRounds(ctx, s.repo, rounds, states)} }()
		return
	}
	tags, states := s.reach, make([]gitrepo.State, len(s.reach))
	for i, tag := range tags {
		states[i] = *s.displaced[tag].state
	}
	s.reach = nil
	go func() { s.answers <- answer{reached: reachedTags(ctx, s.repo, s.refs, tags, states)} }()
}

// statesOf returns what git is to be asked about a round: what was displaced
// and not the baseline after all.
func (s *session) statesOf(r halt.Round[rules.Path, int]) []gitrepo.State {
	var states []gitrepo.State
	for _, what := range r.Displaced {
		if d := s.displaced[what.State]; d != nil && d.state != nil {
			states = append(states, *d.state)
		}
	}
	return states
}

// reachedTags asks which states stood in the history; what git cannot say did
// not.
func reachedTags(ctx context.Context, repo *gitrepo.Repo, refs gitrepo.Refs, tags []int, states []gitrepo.State) map[int]bool {
	reached, _ := repo.Reached(ctx, refs, states)
	answers := make(map[int]bool, len(tags))
	for i, tag := range tags {
		answers[tag] = i < len(reached) && reached[i]
	}
	return answers
}

// heldRounds asks of which rounds HEAD or the index holds every state.
func heldRounds(ctx context.Context, repo *gitrepo.Repo, rounds []halt.Round[rules.Path, int], states map[int][]gitrepo.State) []judged {
	answers := make([]judged, 0, len(rounds))
	for _, r := range rounds {
		var held []bool
		var err error
		if len(states[r.Number]) > 0 {
			held, err = repo.Held(ctx, states[r.Number])
		}
		answers = append(answers, judged{Round: r, held: err == nil && !slices.Contains(held, false)})
	}
	return answers
}

// takeAnswer acts on what git said and puts the next question.
func (s *session) takeAnswer(ctx context.Context, a answer) {
	s.asking()
	s.asking = nil
	for tag, reached := range a.reached {
		s.answer(tag, reached)
	}
	for _, r := range a.rounds {
		for _, what := range r.Displaced {
			s.switched[what.Path] = s.switched[what.Path] || r.held
		}
		s.act(s.counter.Judge(r.Number, r.held))
	}
	s.ask(ctx)
	s.schedule()
}
