package guard

import (
	"slices"
	"testing"
	"time"

	"cage/rules"

	"pgregory.net/rapid"
)

// paced plays a fight over one path that is contested from the start: it is
// changed as long after each restore as given, and put back as soon as it may
// be. It returns how long each change stood.
func paced(t interface{ Fatalf(string, ...any) }, changes []time.Duration) []time.Duration {
	now := time.Date(2031, 5, 4, 3, 2, 1, 0, time.UTC)
	p := rules.Path{Rel: ".env"}
	s := make(pacing)
	s.restored(p, now)
	s.add(p, now)
	s.add(p, now.Add(time.Minute)) // already is
	var stood []time.Duration
	for _, after := range changes {
		now = now.Add(after)
		changed := now
		if s.holds(p, now) {
			now = s.next()
			if due := s.due(now.Add(-1)); len(due) > 0 {
				t.Fatalf("due before its time: %v", due)
			}
			if due := s.due(now); !slices.Equal(due, []rules.Path{p}) {
				t.Fatalf("due are %v", due)
			}
			if s.holds(p, now) {
				t.Fatalf("held longer than it said")
			}
		}
		if next := s.next(); !next.IsZero() {
			t.Fatalf("waits for %v with nothing changed", next)
		}
		stood = append(stood, now.Sub(changed))
		s.restored(p, now)
	}
	return stood
}

func TestPauseGrowsWhileTheFightGoesOn(t *testing.T) {
	const s = time.Second
	for _, tt := range []struct {
		name    string
		changes []time.Duration
		want    []time.Duration
	}{
		{"changed again at once", make([]time.Duration, 7), []time.Duration{1 * s, 2 * s, 4 * s, 8 * s, 16 * s, 30 * s, 30 * s}},
		{"the pause has passed", []time.Duration{1 * s, 2 * s, 4 * s}, []time.Duration{0, 0, 0}},
		{"half of the pause has passed", []time.Duration{s / 2, 1 * s, 2 * s}, []time.Duration{s / 2, 1 * s, 2 * s}},
		{"peace", []time.Duration{0, 0, 34 * s, 0}, []time.Duration{1 * s, 2 * s, 0, 1 * s}},
		{"not quite peace", []time.Duration{0, 0, 34*s - 1, 0}, []time.Duration{1 * s, 2 * s, 0, 8 * s}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := paced(t, tt.changes); !slices.Equal(got, tt.want) {
				t.Errorf("the changes stood for %v, want %v", got, tt.want)
			}
		})
	}
}

func TestNoChangeStandsLongerThanTheLongestPause(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		changes := rapid.SliceOf(rapid.Map(rapid.IntRange(0, 90_000), func(n int) time.Duration {
			return time.Duration(n) * time.Millisecond
		})).Draw(t, "changes")
		for _, stood := range paced(t, changes) {
			if stood < 0 || stood > longestPause {
				t.Fatalf("a change stood for %v", stood)
			}
		}
	})
}

func TestPathThatIsNotContestedIsNeverHeld(t *testing.T) {
	now := time.Now()
	s := make(pacing)
	for range 100 {
		s.restored(rules.Path{Rel: ".env"}, now)
	}
	if s.holds(rules.Path{Rel: ".env"}, now) || !s.next().IsZero() || s.due(now) != nil {
		t.Error("it is held")
	}
}
