package spawn

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"cage/internal/proc"
)

// Promise: the command is the very process that was confined, and has not begun
// by then.
func TestConfineComesFirst(t *testing.T) {
	onEach(t, func(t *testing.T, mechanism string) {
		var confined proc.ID
		g := plantAs(t, mechanism, Command{Confine: func(id proc.ID) (Confinement, error) {
			confined = id
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", id.PID))
			if err != nil || !strings.HasPrefix(string(text), stageName) {
				t.Errorf("confined is %q, %v", text, err)
			}
			return Confinement{Niceness: 7}, nil
		}}, "cut -d' ' -f19 /proc/self/stat")
		if got := g.line(t); got != "7" {
			t.Errorf("the niceness is %s", got)
		}
		if g.Command() != confined {
			t.Errorf("confined was %v, the command is %v", confined, g.Command())
		}
		goneIn(t, g.Run)
	})
}

// Promise: a command whose confinement fails, is not true, or is interrupted has
// not run, and nothing is left of the attempt.
func TestUnconfinedNeverRuns(t *testing.T) {
	full := errors.New("there is no room")
	marker := filepath.Join(t.TempDir(), "ran")
	onEach(t, func(t *testing.T, _ string) {
		for want, confine := range map[error]Confine{
			full: func(proc.ID) (Confinement, error) { return Confinement{}, full },
			ErrUnproved: func(proc.ID) (Confinement, error) {
				return Confinement{Group: "/no-such-group", Controls: map[string]string{"memory.max": "1"}}, nil
			},
			ErrNeverStarted: func(id proc.ID) (Confinement, error) {
				err := id.Signal(unix.SIGTERM)
				eventually(t, "the end of the held process", func() bool { return !id.Alive() })
				return Confinement{}, err
			},
		} {
			var held proc.ID
			_, err := Stage{entered: true}.Start(newReaper(t), Command{
				Path: "touch", Args: []string{marker}, Environment: Environment{Policy: Inherit},
				Confine: func(id proc.ID) (Confinement, error) {
					held = id
					return confine(id)
				},
			})
			if !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
			eventually(t, "the end of what was held", func() bool { return !held.Alive() })
		}
	})
	if _, err := os.Lstat(marker); err == nil {
		t.Error("the command ran")
	}
}
