package halt

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"cage/internal/proc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tree is a Tree that ends at the step its test asks for.
type tree struct {
	gone   chan struct{}
	obeys  bool
	killed proc.Killed
	asked  []string
}

func (f *tree) Gone() <-chan struct{} { return f.gone }

func (f *tree) Terminate() int {
	f.asked = append(f.asked, "terminate")
	if f.obeys {
		close(f.gone)
	}
	return 2
}

func (f *tree) Kill(patience time.Duration) proc.Killed {
	f.asked = append(f.asked, "kill")
	if patience != Patience {
		f.asked = append(f.asked, "with another patience")
	}
	return f.killed
}

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// The grace of an hour stands for "not waited for": the test would time out.
func TestEnd(t *testing.T) {
	survivor := []proc.Process{{ID: proc.ID{PID: 7, Start: 8}, Name: "stubborn"}}
	tests := []struct {
		name  string
		tree  tree
		grace time.Duration
		hurry chan struct{}
		want  Ended
		asked int
	}{
		{"nothing is left to end", tree{gone: closed()}, time.Hour, nil, Ended{Proved: true}, 0},
		{"goes on at once when all obey", tree{gone: make(chan struct{}), obeys: true}, time.Hour, nil, Ended{Count: 2, Proved: true}, 1},
		{"kills after the grace", tree{gone: make(chan struct{}), killed: proc.Killed{Count: 3, Untold: 1, Proved: true}}, time.Millisecond, nil,
			Ended{Count: 3, Proved: true}, 2},
		{"no grace at all", tree{gone: make(chan struct{}), killed: proc.Killed{Count: 3, Untold: 1, Proved: true}}, 0, nil,
			Ended{Count: 3, Proved: true}, 2},
		{"hurry shortens the grace to nothing", tree{gone: make(chan struct{}), killed: proc.Killed{Count: 1, Proved: true}}, time.Hour, closed(),
			Ended{Count: 2, Proved: true}, 2},
		{"names survivors", tree{gone: make(chan struct{}), killed: proc.Killed{Count: 1, Survivors: survivor}}, 0, nil,
			Ended{Count: 2, Survivors: survivor}, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := End(&tt.tree, tt.grace, tt.hurry)
			if got.Count != tt.want.Count || got.Proved != tt.want.Proved ||
				len(got.Survivors) != len(tt.want.Survivors) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			if len(tt.tree.asked) != tt.asked {
				t.Errorf("the tree was asked to %v, want %d steps", tt.tree.asked, tt.asked)
			}
		})
	}
}
