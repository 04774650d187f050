package guard

import (
	"testing"
	"time"

	"cage/rules"

	"pgregory.net/rapid"
)

// sight is what was seen of a path at a time: whole, or in one of the states.
type sight struct {
	at    time.Duration
	whole bool
	state half
	crowd time.Duration
}

const ms = time.Millisecond

// firstUndone plays sights of one path and returns the time of the first that
// may stay no longer.
func firstUndone(sights []sight) (at time.Duration, undone bool) {
	start := time.Date(2031, 5, 4, 3, 2, 1, 0, time.UTC)
	p := rules.Path{Rel: ".env"}
	s := make(settling)
	for _, seen := range sights {
		now := start.Add(seen.at)
		if s.due(now); seen.whole {
			s.rest(p, now)
		} else if !s.hold(p, seen.state, now, seen.crowd) {
			return seen.at, true
		}
	}
	return 0, false
}

func TestSettling(t *testing.T) {
	for _, tt := range []struct {
		name   string
		sights []sight
		at     time.Duration // of the first that is undone; -1 where none is
	}{
		{"a truncated file has 5 ms", []sight{{at: 0, state: prefix}, {at: 4 * ms, state: prefix}, {at: 5 * ms, state: prefix}}, 5 * ms},
		{"an absent one 20 ms", []sight{{at: 0, state: absent}, {at: 19 * ms, state: absent}, {at: 20 * ms, state: absent}}, 20 * ms},
		{"a new one 250 ms", []sight{{at: 0, state: appeared}, {at: 249 * ms, state: appeared}, {at: 250 * ms, state: appeared}}, 250 * ms},
		{"one without its mode 20 ms", []sight{{at: 0, state: undressed}, {at: 19 * ms, state: undressed}, {at: 20 * ms, state: undressed}}, 20 * ms},
		{"also where it is made anew", []sight{
			{at: 0, state: undressed}, {at: 10 * ms, state: absent}, {at: 12 * ms, state: undressed}, {at: 18 * ms, state: absent},
			{at: 19 * ms, state: undressed}, {at: 20 * ms, state: undressed},
		}, 20 * ms},
		{"waiting for a processor does not count", []sight{
			{at: 0, state: absent, crowd: time.Hour}, {at: 30 * ms, state: absent, crowd: time.Hour + 15*ms},
			{at: 50 * ms, state: absent, crowd: time.Hour + 25*ms},
		}, 50 * ms},
		{"an account of it that cannot be read takes nothing away", []sight{
			{at: 0, state: absent, crowd: time.Hour}, {at: 19 * ms, state: absent}, {at: 20 * ms, state: absent},
		}, 20 * ms},
		{"up to a bound", []sight{
			{at: 0, state: prefix}, {at: 249 * ms, state: prefix, crowd: 300 * ms}, {at: 250 * ms, state: prefix, crowd: 300 * ms},
		}, 250 * ms},
		{"nor does it lengthen what may last as long anyway", []sight{
			{at: 0, state: appeared}, {at: 250 * ms, state: appeared, crowd: 300 * ms},
		}, 250 * ms},
		{"what was waited before counts for nothing", []sight{
			{at: 0, state: absent}, {at: 15 * ms, whole: true, crowd: 0}, {at: 20 * ms, state: absent, crowd: 500 * ms},
			{at: 30 * ms, state: absent, crowd: 500 * ms},
		}, 30 * ms},
		{"another state in between extends nothing", []sight{
			{at: 0, state: absent}, {at: 3 * ms, state: prefix}, {at: 7 * ms, state: absent}, {at: 12 * ms, state: absent}, {at: 13 * ms, state: prefix},
		}, 13 * ms},
		{"what was whole for as long as not begins anew", []sight{
			{at: 0, state: absent}, {at: 15 * ms, whole: true}, {at: 30 * ms, state: absent}, {at: 49 * ms, state: absent},
		}, -1},
		{"a moment of being whole gains that moment", []sight{
			{at: 0, state: absent}, {at: 19 * ms, whole: true}, {at: 20 * ms, state: absent}, {at: 22 * ms, state: absent},
		}, 22 * ms},
		{"also in small pieces", []sight{
			{at: 0, state: absent}, {at: 15 * ms, whole: true}, {at: 16 * ms, state: absent}, {at: 19 * ms, whole: true},
			{at: 20 * ms, state: absent}, {at: 23 * ms, state: absent}, {at: 24 * ms, state: absent},
		}, 24 * ms},
		{"time that was not looked at counts no more than the patience", []sight{
			{at: 0, state: prefix}, {at: time.Hour, whole: true}, {at: time.Hour + 6*ms, state: prefix}, {at: time.Hour + 10*ms, state: prefix},
		}, -1},
		{"being seen whole twice is being whole once", []sight{
			{at: 0, state: absent}, {at: 10 * ms, whole: true}, {at: 20 * ms, whole: true}, {at: 21 * ms, state: absent}, {at: 40 * ms, state: absent},
		}, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at, undone := firstUndone(tt.sights)
			if !undone {
				at = -1
			}
			if at != tt.at {
				t.Errorf("undone at %v, want %v", at, tt.at)
			}
		})
	}
}

// However somebody changes between the states and the whole, a path that is
// looked at often is not wrong for longer than twice the sum of all patience
// beyond the time in which it was whole.
func TestSettlingIsBounded(t *testing.T) {
	const every = ms
	const total = time.Duration(halves) * crowdPatience
	rapid.Check(t, func(t *rapid.T) {
		var sights []sight
		var whole, wrong, crowd time.Duration
		for at := time.Duration(0); at < 3*time.Second; at += every {
			s := sight{at: at, whole: rapid.IntRange(0, 4).Draw(t, "kind") == 0}
			s.state = half(rapid.IntRange(0, int(halves)-1).Draw(t, "state"))
			crowd += time.Duration(rapid.Int64Range(0, int64(every)).Draw(t, "crowd"))
			s.crowd = crowd
			sights = append(sights, s)
			if s.whole {
				whole += every
			} else if wrong += every; wrong > whole+2*total {
				break
			}
		}
		if _, undone := firstUndone(sights); !undone && wrong > whole+2*total {
			t.Fatalf("wrong for %v and whole for %v, and never undone", wrong, whole)
		}
	})
}

func TestSettlingForgets(t *testing.T) {
	start := time.Date(2031, 5, 4, 3, 2, 1, 0, time.UTC)
	s := make(settling)
	for _, name := range []string{"a", "b", "c"} {
		s.hold(rules.Path{Rel: name}, appeared, start, 0)
	}
	s.rest(rules.Path{Rel: "a"}, start.Add(ms))
	s.rest(rules.Path{Rel: "x"}, start.Add(ms)) // was never anything else
	s.over(rules.Path{Rel: "b"})
	if next := s.next(); !next.Equal(start.Add(appeared.patience())) {
		t.Errorf("the next is due at %v", next)
	}
	if due := s.due(start.Add(time.Second)); len(due) != 1 || due[0].Rel != "c" {
		t.Errorf("due are %v", due)
	}
	s.over(rules.Path{Rel: "c"})
	if len(s) != 0 {
		t.Errorf("it remembers %v", s)
	}
	if next := s.next(); !next.IsZero() {
		t.Errorf("with nothing to wait for the next is due at %v", next)
	}
}
