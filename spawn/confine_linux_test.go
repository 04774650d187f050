package spawn

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cage/internal/proc"
)

// Promise: the command is the very process that was confined, and has not begun
// by then.
func TestConfineComesFirst(t *testing.T) {
	onEach(t, func(t *testing.T, mechanism string) {
		var confined proc.ID
		g := plantAs(t, mechanism, Command{Confine: func(held Held) (Confinement, error) {
			confined = held.Process()
			// The kernel says that it has become the stage before it shows its name.
			eventually(t, "the stage that stands still", func() bool {
				text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", confined.PID))
				return err == nil && strings.HasPrefix(string(text), stageName)
			})
			return Confinement{Niceness: 7}, nil
		}}, "cut -d' ' -f19 /proc/self/stat")
		if got, want := g.line(t), fmt.Sprint(max(7, niceness(t))); got != want {
			t.Errorf("the niceness is %s, want %s", got, want)
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
			full: func(Held) (Confinement, error) { return Confinement{}, full },
			ErrUnproved: func(Held) (Confinement, error) {
				return Confinement{Group: "/no-such-group", Controls: map[string]string{"memory.max": "1"}}, nil
			},
			ErrNeverStarted: func(held Held) (Confinement, error) {
				id := held.Process()
				err := id.Signal(unix.SIGTERM)
				eventually(t, "the end of the held process", func() bool { return !id.Alive() })
				return Confinement{}, err
			},
		} {
			var held proc.ID
			reads, stderr := pipe(t)
			_, err := Stage{entered: true}.Start(newReaper(t), Command{
				Path: "touch", Args: []string{marker}, Environment: Environment{Policy: Inherit}, Stderr: stderr,
				Confine: func(h Held) (Confinement, error) {
					held = h.Process()
					return confine(h)
				},
			})
			if !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
			stderr.Close()
			if said := readAll(t, reads); said != "" {
				t.Errorf("beside the error %v, %q is said", want, said)
			}
			eventually(t, "the end of what was held", func() bool { return !held.Alive() })
		}
	})
	if _, err := os.Lstat(marker); err == nil {
		t.Error("the command ran")
	}
}

// Promise: a held process comes back from another program as itself, with what
// that has done to it, and the command sees nothing of the way.
func TestHeldGoesThrough(t *testing.T) {
	onEach(t, func(t *testing.T, mechanism string) {
		g := plantAs(t, mechanism, Command{Confine: func(held Held) (Confinement, error) {
			for range 2 {
				said, err := held.Through([]string{"/bin/sh", "-c", `echo "$WAY" >&2; exec nice -n 3 "$@"`, "sh"},
					[]string{"WAY=this", "PATH=" + os.Getenv("PATH")}, time.Minute)
				if err != nil || said != nil {
					t.Errorf("it said %q, %v", said, err)
				}
			}
			return Confinement{}, nil
		}}, `echo $(cut -d' ' -f1,19 /proc/$$/stat) $(ls /proc/self/fd) $(readlink /proc/$$/fd/2) "$WAY"`)
		stderr, err := os.Readlink("/proc/self/fd/2")
		if err != nil {
			t.Fatal(err)
		}
		nice := min(niceness(t)+6, 19)
		// Descriptor 3 is that by which ls reads the directory.
		if got, want := g.line(t), fmt.Sprintf("%d %d 0 1 2 3 %s", g.Command().PID, nice, stderr); got != want {
			t.Errorf("process, niceness, descriptors, standard error and variable are %q, want %q", got, want)
		}
		goneIn(t, g.Run)
	})
}

// Promise: who does not come back says why, and never becomes the command.
func TestHeldDoesNotComeBack(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "ran")
	onEach(t, func(t *testing.T, _ string) {
		for name, c := range map[string]struct {
			prefix   []string
			patience time.Duration
			said     string
			err      string
		}{
			"it fails":         {[]string{"/bin/sh", "-c", "echo no such luck >&2; exit 1"}, time.Minute, "no such luck\n", "/bin/sh failed"},
			"it says a lot":    {[]string{"/bin/sh", "-c", "yes | head -c 100000 >&2; exit 1"}, time.Minute, strings.Repeat("y\n", mostSaid/2), "/bin/sh failed"},
			"it says nothing":  {[]string{"/bin/sh", "-c", "exit 1"}, time.Minute, "", ErrNeverStarted.Error()},
			"it is killed":     {[]string{"/bin/sh", "-c", "kill -9 $$"}, time.Minute, "", ErrNeverStarted.Error()},
			"there is no such": {[]string{"/no/such/program"}, time.Minute, stageName + ": exec /no/such/program: no such file or directory\n", "/no/such/program failed"},
			"it leaves others": {[]string{"/bin/sh", "-c", "sleep 100000; exit 1"}, 50 * time.Millisecond, "it did not end in 50ms", "/bin/sh failed"},
			"it takes long":    {[]string{"/bin/sh", "-c", "exec sleep 600"}, 50 * time.Millisecond, "it did not end in 50ms", "/bin/sh failed"},
		} {
			t.Run(name, func(t *testing.T) {
				var held proc.ID
				var said []byte
				_, err := Stage{entered: true}.Start(newReaper(t), Command{
					Path: "touch", Args: []string{marker}, Environment: Environment{Policy: Inherit},
					Confine: func(h Held) (Confinement, error) {
						held = h.Process()
						var err error
						said, err = h.Through(c.prefix, nil, c.patience)
						return Confinement{}, err
					},
				})
				if string(said) != c.said || err == nil || !strings.HasSuffix(err.Error(), c.err) {
					t.Errorf("it said %.100q, %v; want %.100q, %q", said, err, c.said, c.err)
				}
				eventually(t, "the end of what was held", func() bool { return !held.Alive() })
			})
		}
	})
	if _, err := os.Lstat(marker); err == nil {
		t.Error("the command ran")
	}
}

// Promise: what the other program leaves behind, its output open, keeps nobody from
// starting.
func TestHeldLeavesOthersBehind(t *testing.T) {
	onEach(t, func(t *testing.T, mechanism string) {
		g := plantAs(t, mechanism, Command{Confine: func(held Held) (Confinement, error) {
			said, err := held.Through([]string{"/bin/sh", "-c", `sleep 100000 & exec "$@"`, "sh"}, []string{"PATH=" + os.Getenv("PATH")}, time.Minute)
			if err != nil || said != nil {
				t.Errorf("it said %q, %v", said, err)
			}
			return Confinement{}, nil
		}}, "echo started; exec sleep 100000")
		if got := g.line(t); got != "started" {
			t.Errorf("it says %q", got)
		}
		if killed := g.Kill(patience); !killed.Proved || killed.Count != 2 {
			t.Errorf("got %+v", killed)
		}
		goneIn(t, g.Run)
	})
}

// Promise: a held process dies with its program also while it is another one.
func TestHeldDiesOnItsWay(t *testing.T) {
	t.Setenv(heldVariable, heldOnItsWay)
	pid, out := play(t, "exec "+copyOfThisBinary(t), nil)
	line, err := out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	held := passing(t, strings.TrimSpace(strings.TrimPrefix(line, heldOnItsWay+" ")))
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of what was held", func() bool { return !held.Alive() })
}

// niceness returns that of the test.
func niceness(t *testing.T) int {
	t.Helper()
	inverse, err := unix.Getpriority(unix.PRIO_PROCESS, 0) // 20 less the niceness, as the kernel returns it
	if err != nil {
		t.Fatal(err)
	}
	return 20 - inverse
}
