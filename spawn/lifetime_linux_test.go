package spawn

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"cage/internal/proc"
)

func TestLifetimeNames(t *testing.T) {
	for _, l := range []Lifetime{LifetimeRun, LifetimeTree, LifetimeLeave} {
		if back, known := ParseLifetime(l.String()); back != l || !known {
			t.Errorf("%v is parsed as %v, %v", l, back, known)
		}
	}
	if _, known := ParseLifetime("ever"); known {
		t.Error("a lifetime that is none is known")
	}
	if (Command{}).Lifetime != LifetimeRun {
		t.Error("who asks for nothing gets another lifetime than run")
	}
}

// passing returns a process that the test ends if nothing else has.
func passing(t *testing.T, pid string) proc.ID {
	t.Helper()
	id := identify(t, pid)
	t.Cleanup(func() {
		_ = id.Signal(unix.SIGKILL)
		eventually(t, "the process ends", func() bool { return !id.Alive() })
	})
	return id
}

// What a command leaves lives on and is listed, detached or not. Its keeper
// goes, and where nothing is left that is proved.
func TestLeave(t *testing.T) {
	onEach(t, func(t *testing.T, mechanism string) {
		g := plantWith(t, mechanism, LifetimeLeave, `sleep 1000 & echo $!
			setsid sh -c 'echo $$; exec sleep 1000' & read go; exit 3`)
		holder := identify(t, strconv.Itoa(parentOf(t, g.Command().PID)))
		want := []proc.ID{passing(t, g.line(t)), passing(t, g.line(t))}
		g.tell(t)
		if got := exitOf(t, g.Run); got.Code != 3 {
			t.Errorf("ended with %v", got)
		}
		left, err := g.Leave()
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range want {
			if !slices.ContainsFunc(left, func(p proc.Process) bool { return p.ID == id }) || !id.Alive() {
				t.Errorf("%v is not left, or not listed: %v", id, left)
			}
		}
		if len(left) != len(want) {
			t.Errorf("left are %v", left)
		}
		if !heldByAnybody(t, g.out) {
			t.Error("the marker of the torture does not show what is left")
		}
		if mechanism == Keeper && holder.Alive() {
			t.Error("the keeper lingers")
		}
		select {
		case <-g.Gone():
			t.Error("what is left is called gone")
		default:
		}
	})
	onEach(t, func(t *testing.T, mechanism string) {
		g := plantWith(t, mechanism, LifetimeLeave, `echo $$; exec sleep 1000`)
		command := passing(t, g.line(t))
		left, err := g.Leave()
		if len(left) != 1 || left[0].ID != command || err != nil || !command.Alive() {
			t.Errorf("left are %v, %v; the command lives: %v", left, err, command.Alive())
		}
	})
	onEach(t, func(t *testing.T, mechanism string) {
		g := plantWith(t, mechanism, LifetimeLeave, `exit 4`)
		if got := exitOf(t, g.Run); got.Code != 4 {
			t.Errorf("ended with %v", got)
		}
		if left, err := g.Leave(); len(left) > 0 || err != nil {
			t.Errorf("left are %v, %v", left, err)
		}
		goneIn(t, g.Run)
	})
}

// What contradicts itself is refused, and so is what no mode stands for.
func TestModesAreChecked(t *testing.T) {
	for _, c := range []Command{
		{Lifetime: LifetimeLeave, Terminal: NewPTY},
		{Lifetime: LifetimeLeave, PrivateTmp: true},
		{Lifetime: LifetimeLeave + 1},
		{Terminal: NewPTY + 1},
		{Environment: Environment{Policy: Inherit + 1}},
	} {
		c.Path = "true"
		var refused *StartError
		if _, err := (Stage{entered: true}).Start(newReaper(t), c); !errors.As(err, &refused) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// A run that may leave something can be killed all the same.
func TestRunThatMayLeaveIsKilled(t *testing.T) {
	onEach(t, func(t *testing.T, mechanism string) {
		g := plantWith(t, mechanism, LifetimeLeave, `setsid sleep 1000 & echo ready; wait`)
		g.line(t)
		if killed := g.Kill(patience); !killed.Proved || killed.Count != 2 {
			t.Errorf("got %+v", killed)
		}
		goneIn(t, g.Run)
		g.rest(t)
	})
}

// A keeper that is killed takes the command with it also where nothing else
// does.
func TestKilledKeeperLeavesNoCommand(t *testing.T) {
	foreignChild(t)
	g := plantWith(t, Keeper, LifetimeLeave, `echo ready; exec sleep 1000`)
	g.line(t)
	command := g.Command()
	if err := keeperOf(t, g.Run).Signal(unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if got := exitOf(t, g.Run); got.Signal != unix.SIGKILL {
		t.Errorf("got %v", got)
	}
	eventually(t, "the command dies", func() bool { return !command.Alive() })
	if left, err := g.Leave(); !errors.Is(err, errKeeperLost) {
		t.Errorf("left are %v, %v", left, err)
	}
}

// A run that may outlive its program does so when that is killed, and no keeper
// lingers beside it.
func TestRunOutlivesItsProgram(t *testing.T) {
	for mechanism, before := range map[string]string{Subreaper: "", Keeper: "sleep 1000 & echo foreign $!; "} {
		t.Run(mechanism, func(t *testing.T) {
			pid, out := play(t, before+"export "+lifetimeVariable+"=leave; exec "+copyOfThisBinary(t), nil)
			said := make(map[string]string)
			for said[mechanism] == "" {
				line, err := out.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				words := strings.Fields(line)
				said[words[0]] = words[1]
			}
			if mechanism == Keeper {
				passing(t, said["foreign"])
			}
			command := passing(t, said[mechanism])
			holder := identify(t, strconv.Itoa(parentOf(t, command.PID)))
			if err := unix.Kill(pid, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			eventually(t, "its holder goes", func() bool { return !holder.Alive() })
			if !command.Alive() {
				t.Error("the command went too")
			}
		})
	}
}

// Git's settings are appended to those that there are.
func TestGitInForeground(t *testing.T) {
	ours := func(at string, next string) []string {
		return []string{"GIT_CONFIG_KEY_" + at + "=gc.autoDetach", "GIT_CONFIG_VALUE_" + at + "=false",
			"GIT_CONFIG_KEY_" + next + "=maintenance.autoDetach", "GIT_CONFIG_VALUE_" + next + "=false"}
	}
	for name, tt := range map[string]struct{ environ, want []string }{
		"none":  {nil, append(ours("0", "1"), "GIT_CONFIG_COUNT=2")},
		"empty": {[]string{"A=1", "GIT_CONFIG_COUNT="}, append(append([]string{"A=1"}, ours("0", "1")...), "GIT_CONFIG_COUNT=2")},
		"one": {
			[]string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=a.b", "GIT_CONFIG_VALUE_0=c", "A=1"},
			append(append([]string{"GIT_CONFIG_KEY_0=a.b", "GIT_CONFIG_VALUE_0=c", "A=1"}, ours("1", "2")...), "GIT_CONFIG_COUNT=3"),
		},
		"more than counted": {
			[]string{"GIT_CONFIG_COUNT=0", "GIT_CONFIG_KEY_0=a.b", "GIT_CONFIG_VALUE_0=c", "GIT_CONFIG_KEY_10=d.e"},
			append(append([]string{"GIT_CONFIG_KEY_10=d.e"}, ours("0", "1")...), "GIT_CONFIG_COUNT=2"),
		},
		"no number":  {[]string{"GIT_CONFIG_COUNT=many", "A=1"}, []string{"GIT_CONFIG_COUNT=many", "A=1"}},
		"negative":   {[]string{"GIT_CONFIG_COUNT=-1"}, []string{"GIT_CONFIG_COUNT=-1"}},
		"impossible": {[]string{"GIT_CONFIG_COUNT=99999999999999999999"}, []string{"GIT_CONFIG_COUNT=99999999999999999999"}},
	} {
		given := slices.Clone(tt.environ)
		if got := WithGitSettings(tt.environ, gitInForeground()...); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
		if !slices.Equal(tt.environ, given) {
			t.Errorf("%s: the caller's own environment was changed to %q", name, tt.environ)
		}
	}
}

// Git takes them, and those it had; in the other lifetimes it detaches as ever.
func TestGitTidiesUpInTheRun(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git")
	}
	dir := t.TempDir()
	env := append(os.Environ(), "HOME="+dir, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=a.b", "GIT_CONFIG_VALUE_0=c")
	onEach(t, func(t *testing.T, _ string) {
		r := newReaper(t)
		for lifetime, want := range map[Lifetime]string{LifetimeRun: "c false false", LifetimeTree: "c", LifetimeLeave: "c"} {
			ours, theirs := pipe(t)
			run, err := Stage{entered: true}.Start(r, Command{
				Path: "sh", Args: []string{"-c", `for n in a.b gc.autoDetach maintenance.autoDetach; do git config --get $n; done`},
				Dir: dir, Env: env, Stdout: theirs, Stderr: os.Stderr, Lifetime: lifetime,
			})
			theirs.Close()
			if err != nil {
				t.Fatal(err)
			}
			goneIn(t, run)
			if got := strings.Join(strings.Fields(readAll(t, ours)), " "); got != want {
				t.Errorf("%v: git reads %q, want %q", lifetime, got, want)
			}
		}
	})
}
