package session

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"cage/guard"
	"cage/halt"
	"cage/internal/gitrepo"
	"cage/rules"
)

// stubGit answers as it is told. Every question waits until the test lets it go
// on, or until it is ended.
type stubGit struct {
	mu      sync.Mutex
	reached map[gitrepo.State]bool
	held    map[gitrepo.State]bool
	indexed map[gitrepo.State]bool
	err     error
	asked   [][]gitrepo.State
	// hold, where it is not nil, keeps questions waiting.
	hold chan struct{}
	// began has a value for every question about the history that was put.
	began chan struct{}
}

func newStubGit() *stubGit {
	return &stubGit{
		reached: map[gitrepo.State]bool{}, held: map[gitrepo.State]bool{}, indexed: map[gitrepo.State]bool{},
		began: make(chan struct{}, 100),
	}
}

func (g *stubGit) answer(ctx context.Context, states []gitrepo.State, known map[gitrepo.State]bool) ([]bool, error) {
	answers := make([]bool, len(states))
	if g.hold != nil {
		select {
		case <-g.hold:
		case <-ctx.Done():
			return answers, ctx.Err()
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, states)
	if g.err != nil {
		return answers, g.err
	}
	for i, s := range states {
		answers[i] = known[s]
	}
	return answers, ctx.Err()
}

func (g *stubGit) Reached(ctx context.Context, _ gitrepo.Refs, states []gitrepo.State) ([]bool, error) {
	g.began <- struct{}{}
	return g.answer(ctx, states, g.reached)
}

func (g *stubGit) Held(ctx context.Context, states []gitrepo.State) ([]bool, error) {
	return g.answer(ctx, states, g.held)
}

func (g *stubGit) Indexed(ctx context.Context, states []gitrepo.State) ([]bool, error) {
	return g.answer(ctx, states, g.indexed)
}

// bout is an account of contests with a clock of its own.
type bout struct {
	*contests
	t        *testing.T
	git      *stubGit
	now      time.Time
	tag      int
	outcomes []outcome
}

func newBout(t *testing.T, limits halt.Limits) *bout {
	b := &bout{t: t, git: newStubGit(), now: time.Now()}
	b.contests = newContests(limits, b.git, gitrepo.Refs{"0123"}, func(o outcome) {
		if o.Kind != halt.Nothing {
			b.outcomes = append(b.outcomes, o)
		}
	})
	t.Cleanup(b.close)
	return b
}

func path(name string) rules.Path { return rules.Path{Anchor: rules.Root, Rel: name} }

func blob(name, content string) gitrepo.State {
	return gitrepo.State{Path: name, Blob: content, Mode: gitrepo.ModeFile}
}

// restore counts a restore and returns its tag.
func (b *bout) restore(name string) int {
	b.tag++
	b.restored(guard.Restored{
		Tag: b.tag, Path: path(name), Verdict: rules.Verdict{Rule: rules.CIConfig}, At: b.now, Live: true,
	})
	b.proceed(b.t.Context())
	return b.tag
}

func (b *bout) explained(e guard.Explained) {
	b.explain(e)
	b.proceed(b.t.Context())
}

// pass lets time go by and has what is due taken up.
func (b *bout) pass(d time.Duration) {
	b.now = b.now.Add(d)
	b.judge(b.now)
	b.proceed(b.t.Context())
}

// answered takes git's answers until there is no open question.
func (b *bout) answered() {
	b.t.Helper()
	for b.open != nil {
		select {
		case a := <-b.answers:
			b.take(a)
			b.proceed(b.t.Context())
		case <-time.After(30 * time.Second):
			b.t.Fatal("git gives no answer")
		}
	}
}

func (b *bout) wants(kinds ...halt.Kind) {
	b.t.Helper()
	var got []halt.Kind
	for _, o := range b.outcomes {
		got = append(got, o.Kind)
	}
	if !slices.Equal(got, kinds) {
		b.t.Errorf("outcomes are %+v, want %v", b.outcomes, kinds)
	}
}

func (b *bout) account(name string, want halt.Tally) {
	b.t.Helper()
	if got := b.OfPath(path(name)); got != want {
		b.t.Errorf("%s has the account %+v, want %+v", name, got, want)
	}
}

func TestWhatGitDoesNotKnowIsAFight(t *testing.T) {
	b := newBout(t, halt.Limits{Path: 1, Rule: 10})
	for range 2 {
		tag := b.restore("ci.yml")
		evil := blob("ci.yml", "evil")
		b.explained(guard.Explained{Tag: tag, State: &evil})
		b.answered()
		b.pass(halt.RoundLength)
	}
	b.wants(halt.Halt)
	b.account("ci.yml", halt.Tally{Opened: 2, Counted: 2})
}

func TestBranchSwitchCountsForNothing(t *testing.T) {
	b := newBout(t, halt.Limits{Path: 1, Rule: 1})
	other := blob("ci.yml", "other")
	b.git.reached[other], b.git.held[other], b.git.indexed[other] = true, true, true
	for range 4 {
		b.explained(guard.Explained{Tag: b.restore("ci.yml"), State: &other})
		b.answered()
		b.pass(halt.RoundLength)
		b.answered()
	}
	b.wants()
	b.account("ci.yml", halt.Tally{Opened: 4, Uncounted: 4})
	b.close()
	b.conclude(t.Context())
	if _, ok := b.switched[path("ci.yml")]; !ok {
		t.Error("the report says nothing of a branch switch")
	}
}

func TestHistoryThatNobodyHoldsIsAFight(t *testing.T) {
	b := newBout(t, halt.Limits{Path: 1, Rule: 10})
	old := blob("ci.yml", "old")
	b.git.reached[old] = true
	for range 2 {
		b.explained(guard.Explained{Tag: b.restore("ci.yml"), State: &old})
		b.answered()
		b.wants() // not before the round has ended
		b.pass(halt.RoundLength)
		b.answered()
	}
	b.wants(halt.Halt)
}

func TestAbsenceNeedsABaselineThatGitRecorded(t *testing.T) {
	absence, was := gitrepo.State{Path: ".env"}, blob(".env", "start")
	for _, tt := range []struct {
		name     string
		baseline *gitrepo.State
		recorded bool
		want     halt.Tally
	}{
		{"recorded", &was, true, halt.Tally{Opened: 1, Uncounted: 1}},
		{"not recorded", &was, false, halt.Tally{Opened: 1, Counted: 1}},
		{"nothing there at the start", nil, true, halt.Tally{Opened: 1, Counted: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBout(t, halt.Limits{Path: 3, Rule: 10})
			b.git.reached[absence], b.git.held[absence] = true, true
			b.git.reached[was] = tt.recorded
			b.explained(guard.Explained{Tag: b.restore(".env"), State: &absence, Baseline: tt.baseline})
			b.answered()
			b.pass(halt.RoundLength)
			b.answered()
			b.account(".env", tt.want)
		})
	}
}

func TestWhatWasNoChangeIsNoRound(t *testing.T) {
	b := newBout(t, halt.Limits{Path: 1, Rule: 10})
	for range 5 {
		b.explained(guard.Explained{Tag: b.restore(".env"), Unchanged: true})
		b.pass(halt.RoundLength)
	}
	b.wants()
	b.account(".env", halt.Tally{})
	if len(b.git.asked) != 0 {
		t.Errorf("git was asked about %v", b.git.asked)
	}
	if len(b.switched) != 0 {
		t.Errorf("branch switches: %v", b.switched)
	}
}

func TestUnexplainedIsAFightWhenItsRoundHasPassed(t *testing.T) {
	b := newBout(t, halt.Limits{Path: 1, Rule: 10})
	tag := b.restore(".env")
	b.pass(halt.RoundLength - 1)
	b.account(".env", halt.Tally{Opened: 1})
	b.pass(1)
	b.account(".env", halt.Tally{Opened: 1, Counted: 1})
	// Too late.
	b.explained(guard.Explained{Tag: tag, Unchanged: true})
	b.account(".env", halt.Tally{Opened: 1, Counted: 1})
	b.restore(".env")
	b.pass(halt.RoundLength)
	b.wants(halt.Halt)
}

func TestAlarmIsSetForWhatIsDueFirst(t *testing.T) {
	b := newBout(t, halt.Limits{Path: 9, Rule: 0})
	if at, ok := b.due(); ok {
		t.Fatalf("something is due at %v", at)
	}
	first := b.restore(".env")
	start := b.now
	b.now = b.now.Add(10 * time.Millisecond)
	b.restore("ci.yml")
	if at, ok := b.due(); !ok || !at.Equal(start.Add(halt.RoundLength)) {
		t.Errorf("due at %v, %v", at, ok)
	}
	b.explained(guard.Explained{Tag: first})
	if at, ok := b.due(); !ok || !at.Equal(b.now.Add(halt.RoundLength)) {
		t.Errorf("with the first explained due at %v, %v", at, ok)
	}
}

func TestGitThatFailsExcusesNothing(t *testing.T) {
	b := newBout(t, halt.Limits{Path: 1, Rule: 10})
	other := blob("ci.yml", "other")
	b.git.reached[other], b.git.held[other] = true, true
	b.git.err = errors.New("no")
	b.explained(guard.Explained{Tag: b.restore("ci.yml"), State: &other})
	b.answered()
	b.account("ci.yml", halt.Tally{Opened: 1, Counted: 1})
}

func TestGitThatHangsIsEnded(t *testing.T) {
	git := newStubGit()
	git.hold = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	d := &displacement{path: path("ci.yml"), state: blob("ci.yml", "other")}
	q := question{displaced: []*displacement{d}, rounds: []round{{Number: 1, Displaced: []halt.Displaced[rules.Path, *displacement]{{Path: d.path, State: d}}}}}
	cancel()
	if a := q.ask(ctx, git, nil); !slices.Equal(a.reached, []bool{false}) || !slices.Equal(a.held, []bool{false}) {
		t.Errorf("a git that was ended said %+v", a)
	}
}

// One question is open at a time; what comes meanwhile is asked together.
func TestQuestionsWaitForTheirTurn(t *testing.T) {
	b := newBout(t, halt.Limits{Path: 9, Rule: 0})
	b.git.hold = make(chan struct{})
	for _, name := range []string{"a", "b", "c"} {
		state := blob(name, "x")
		b.explained(guard.Explained{Tag: b.restore(name), State: &state})
	}
	<-b.git.began
	close(b.git.hold)
	b.answered()
	want := [][]gitrepo.State{{blob("a", "x")}, {blob("b", "x"), blob("c", "x")}}
	if !slices.EqualFunc(b.git.asked, want, slices.Equal) {
		t.Errorf("git was asked %v, want %v", b.git.asked, want)
	}
}

// A halt does not come after the end: what is answered then is for the report.
func TestLateAnswersHaltNobody(t *testing.T) {
	b := newBout(t, halt.Limits{Path: 1, Rule: 1})
	b.git.hold = make(chan struct{})
	for i := range 3 {
		state := blob("ci.yml", string(rune('a'+i)))
		b.explained(guard.Explained{Tag: b.restore("ci.yml"), State: &state})
		b.now = b.now.Add(halt.RoundLength)
	}
	<-b.git.began
	b.close()
	if b.open != nil || len(b.next.displaced) != 3 {
		t.Fatalf("open is %v, next %+v", b.open, b.next)
	}
	close(b.git.hold)
	b.conclude(t.Context())
	b.wants()
	b.account("ci.yml", halt.Tally{Opened: 3, Counted: 3})
}

func TestConcludeJudgesRoundsThatHaveNotEnded(t *testing.T) {
	b := newBout(t, halt.Limits{Path: 1, Rule: 1})
	other, gone := blob("ci.yml", "other"), blob("old.yml", "gone")
	for _, s := range []gitrepo.State{other, gone} {
		b.git.reached[s], b.git.held[s] = true, true
	}
	b.git.indexed[other] = true
	b.explained(guard.Explained{Tag: b.restore("ci.yml"), State: &other})
	b.explained(guard.Explained{Tag: b.restore("old.yml"), State: &gone})
	b.close()
	b.conclude(t.Context())
	b.wants()
	b.account("ci.yml", halt.Tally{Opened: 1, Uncounted: 1})
	if _, ok := b.switched[path("ci.yml")]; !ok || len(b.switched) != 1 {
		t.Errorf("branch switches are %v, want the one that the index still has", b.switched)
	}
}

// A git that hangs at the end costs its bound and nothing more.
func TestConcludeGivesUp(t *testing.T) {
	b := newBout(t, halt.Limits{Path: 1, Rule: 1})
	b.git.hold = make(chan struct{})
	other := blob("ci.yml", "other")
	b.explained(guard.Explained{Tag: b.restore("ci.yml"), State: &other})
	b.close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b.conclude(ctx)
	b.account("ci.yml", halt.Tally{Opened: 1, Counted: 1})
}

func TestContestedIsSaidOnce(t *testing.T) {
	b := newBout(t, halt.Limits{Path: 0, Rule: 1})
	for range 5 {
		b.explained(guard.Explained{Tag: b.restore(".env")})
		b.pass(halt.RoundLength)
	}
	b.wants(halt.Contested)
}
