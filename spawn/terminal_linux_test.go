package spawn

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestParseTerminal(t *testing.T) {
	for _, want := range []Terminal{NoTerminal, Foreground, Background, NewPTY} {
		if got, ok := ParseTerminal(want.String()); !ok || got != want {
			t.Errorf("%s is %v, %v", want, got, ok)
		}
	}
	if _, ok := ParseTerminal("tty"); ok {
		t.Error("tty is a terminal")
	}
}

// Without a terminal, and in the background, a command stands where it should,
// whoever holds it.
func TestPlaces(t *testing.T) {
	session, _ := unix.Getsid(0)
	for terminal, stands := range map[Terminal]func(command, group, sid int, terminal string) bool{
		NoTerminal: func(command, group, sid int, terminal string) bool {
			return group == command && sid == command && terminal == "0"
		},
		Background: func(command, group, sid int, _ string) bool { return group == command && sid == session },
	} {
		t.Run(terminal.String(), func(t *testing.T) {
			onEach(t, func(t *testing.T, mechanism string) {
				g := plantAs(t, mechanism, Command{Terminal: terminal}, `read stat </proc/$$/stat; echo "$stat"; (: </dev/tty) 2>/dev/null && echo open`)
				s := strings.Fields(g.line(t))
				if !stands(g.Command().PID, mustAtoi(t, s[4]), mustAtoi(t, s[5]), s[6]) {
					t.Errorf("process %d is in group %s and session %s with terminal %s", g.Command().PID, s[4], s[5], s[6])
				}
				if got := g.rest(t); terminal == NoTerminal && got != "" {
					t.Errorf("/dev/tty is %s", got)
				}
				goneIn(t, g.Run)
			})
		})
	}
}

// seat is where a person would sit: at the controller's side of a run's
// pseudo-terminal.
type seat struct {
	*Run
	lines *bufio.Reader
}

func sit(t *testing.T, screen Screen, script string) *seat {
	t.Helper()
	run, err := Stage{entered: true}.Start(newReaper(t), Command{
		Path: "bash", Args: []string{"--norc", "--noprofile", "-c", script}, Terminal: NewPTY, Screen: screen, Lifetime: LifetimeTree,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		run.Kill(patience)
		goneIn(t, run)
		run.PTY().Close()
	})
	if err := run.PTY().SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &seat{run, bufio.NewReader(run.PTY())}
}

func (s *seat) line(t *testing.T) string {
	t.Helper()
	line, err := s.lines.ReadString('\n')
	if err != nil {
		t.Fatalf("reading the screen: %v after %q", err, line)
	}
	return strings.TrimRight(line, "\r\n")
}

func (s *seat) shows(t *testing.T, want string) {
	t.Helper()
	if got := s.line(t); got != want {
		t.Fatalf("the screen shows %q, want %q", got, want)
	}
}

func (s *seat) types(t *testing.T, keys string) {
	t.Helper()
	if _, err := s.PTY().Write([]byte(keys)); err != nil {
		t.Fatal(err)
	}
}

// rest is what the screen still shows until the run is gone.
func (s *seat) rest(t *testing.T) string {
	t.Helper()
	text, err := io.ReadAll(s.lines)
	if err != nil {
		t.Fatalf("the screen does not end: %v after %q", err, text)
	}
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}

// A new pseudo-terminal is the command's standard streams and its controlling
// terminal, with the standard size until another is told.
func TestPTY(t *testing.T) {
	for mechanism, prepare := range mechanisms {
		t.Run("where a plain run has a "+mechanism, func(t *testing.T) {
			prepare(t)
			s := sit(t, Screen{}, `
				trap 'stty size; kill $!' WINCH
				[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && [ "$(tty)" = "$(readlink /proc/self/fd/2)" ] && stty size </dev/tty
				for fd in /proc/$$/fd/*; do [ -L "$fd" ] && echo "${fd##*/}"; done
				sleep 1000 & echo ready; wait; read line; echo "got $line"; exit 7`)
			if s.Mechanism() != Keeper {
				t.Errorf("it is held by a %s", s.Mechanism())
			}
			for _, want := range []string{"24 80", "0", "1", "2", "ready"} {
				s.shows(t, want)
			}
			if err := s.PTY().SetSize(50, 132); err != nil {
				t.Fatal(err)
			}
			s.shows(t, "50 132")
			s.types(t, "a line\r")
			s.shows(t, "a line")
			s.shows(t, "got a line")
			if got := exitOf(t, s.Run); got.Code != 7 {
				t.Errorf("ended with %v", got)
			}
			goneIn(t, s.Run)
			if got := s.rest(t); got != "" {
				t.Errorf("the screen still shows %q", got)
			}
		})
	}
}

// What was written when the last process ended is there to be read.
func TestPTYKeepsWhatWasNotRead(t *testing.T) {
	const script = `i=0; while [ $i -lt 300 ]; do echo line $i; i=$((i+1)); done; (sleep 0.05; echo last) & exit 0`
	var want strings.Builder
	for i := range 300 {
		fmt.Fprintf(&want, "line %d\n", i)
	}
	want.WriteString("last\n")
	s := sit(t, Screen{}, script)
	goneIn(t, s.Run)
	if got := s.rest(t); got != want.String() {
		t.Errorf("the screen shows %d bytes, want %d: %q", len(got), want.Len(), got)
	}
}

// Reading waits while the run lives, also when nothing of it has the terminal
// open, and a process that opens it again is heard.
func TestPTYOutlivesItsUsers(t *testing.T) {
	s := sit(t, Screen{}, `exec <&- >&- 2>&-; sleep 0.05; echo back >/dev/tty`)
	s.shows(t, "back")
	if got := s.rest(t); got != "" {
		t.Errorf("the screen still shows %q", got)
	}
}

// The keyboard's signals go to the command, and stop it too, unlike one that
// leads its session.
func TestPTYJobControl(t *testing.T) {
	s := sit(t, Screen{}, `trap 'said=1' INT; stty -echo; echo ready; read line
		echo again; until [ "$said" ]; do sleep 0.01; done; echo interrupted; read line; echo "got $line"`)
	s.shows(t, "ready")
	s.types(t, "\x1a")
	select {
	case sig := <-s.Stopped():
		if sig != unix.SIGTSTP {
			t.Errorf("stopped by %v", sig)
		}
	case <-time.After(patience):
		t.Fatal("Ctrl-Z does not stop it")
	}
	if err := s.Command().Signal(unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	s.types(t, "\r")
	s.shows(t, "again")
	s.types(t, "\x03")
	s.shows(t, "interrupted")
	s.types(t, "x\r")
	s.shows(t, "got x")
}

// Closing the controller's side hangs up: the command, its background jobs and
// those that are stopped hear of it.
func TestPTYHangsUp(t *testing.T) {
	s := sit(t, Screen{}, `set -m; sleep 1000 & (kill -STOP $BASHPID) & (setsid sh -c 'trap "" HUP; echo daemon; sleep 1000' &); echo ready; exec sleep 1000`)
	for said := map[string]bool{}; !said["ready"] || !said["daemon"]; {
		said[s.line(t)] = true
	}
	if err := s.PTY().Close(); err != nil {
		t.Fatal(err)
	}
	if got := exitOf(t, s.Run); got.Signal != unix.SIGHUP {
		t.Errorf("ended with %v", got)
	}
	eventually(t, "those that left the terminal are left", func() bool {
		left, err := s.Processes()
		return err == nil && len(left) == 2
	})
	if err := s.PTY().EndInput(); err == nil {
		t.Error("the input of a closed terminal can be ended")
	}
}

// What is on the terminal ends with the run, a deaf daemon too.
func TestPTYEnds(t *testing.T) {
	s := sit(t, Screen{}, `trap '' HUP TERM; setsid sh -c 'trap "" HUP TERM; echo daemon; sleep 1000 & wait' & sleep 1000 & wait`)
	s.shows(t, "daemon")
	if killed := s.Kill(patience); !killed.Proved {
		t.Errorf("got %+v", killed)
	}
	if got := s.rest(t); got != "" {
		t.Errorf("the screen still shows %q", got)
	}
}

// The end of input reaches whatever reads, at a line's begin and within it, with
// and without the terminal's own reading of lines.
func TestPTYEndInput(t *testing.T) {
	for name, tt := range map[string]struct{ before, script, keys, want string }{
		"nothing written":     {"", `cat; echo end`, "", "end\n"},
		"a line":              {"", `cat; echo end`, "one\r", "one\nend\n"},
		"half a line":         {"", `cat; echo end`, "half", "halfend\n"},
		"read twice":          {"", `cat; cat; echo end`, "", "end\n"},
		"character by one":    {"stty -icanon; ", `head -c 1 | od -An -tx1; echo end`, "", " 04\nend\n"},
		"a shell's prompt":    {"", `PS1= exec bash --norc --noprofile -i`, "", "exit\n"},
		"another character":   {"stty eof ^Y; ", `cat; echo end`, "x\r", "x\nend\n"},
		"who does not listen": {"", `sleep 0.1; echo end`, "", "end\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "a shell's prompt" {
				t.Setenv("TERM", "dumb")
			}
			s := sit(t, Screen{Silent: true}, tt.before+"echo ready; "+tt.script)
			s.shows(t, "ready")
			s.types(t, tt.keys)
			over := make(chan struct{})
			go func() {
				defer close(over)
				for s.PTY().EndInput() == nil {
					time.Sleep(5 * time.Millisecond)
				}
			}()
			if got := s.rest(t); got != tt.want {
				t.Errorf("the screen shows %q, want %q", got, tt.want)
			}
			<-over
		})
	}
}

// A pseudo-terminal that is like another has its size and its characters, but
// not the modes in which it happens to be.
func TestPTYIsLikeAnother(t *testing.T) {
	other, err := openPTY(Screen{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	defer other.letGo()
	settings, err := unix.IoctlGetTermios(int(other.line.Fd()), getTermios)
	if err != nil {
		t.Fatal(err)
	}
	settings.Cc[unix.VINTR] = 'K' & 0x1f
	settings.Iflag |= unix.IUTF8
	settings.Lflag &^= unix.ICANON | unix.ECHO | unix.ISIG
	if err := unix.IoctlSetTermios(int(other.line.Fd()), setTermios, settings); err != nil {
		t.Fatal(err)
	}
	if err := other.SetSize(7, 30); err != nil {
		t.Fatal(err)
	}
	s := sit(t, Screen{Like: other.line}, `stty size; stty -a`)
	s.shows(t, "7 30")
	got := s.rest(t)
	for _, want := range []string{"intr = ^K;", " iutf8", " icanon", " echo ", " isig"} {
		if !strings.Contains(strings.ReplaceAll(got, "\n", " "), want) {
			t.Errorf("the settings lack %q: %s", want, got)
		}
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	_, err = Stage{entered: true}.Start(newReaper(t), Command{Path: "true", Terminal: NewPTY, Screen: Screen{Like: null}})
	if !errors.Is(err, unix.ENOTTY) {
		t.Errorf("like what is no terminal: %v", err)
	}
}

// A command that cannot start leaves no terminal.
func TestPTYWithoutCommand(t *testing.T) {
	r := newReaper(t)
	before := descriptorsOpen(t)
	var refused *StartError
	if _, err := (Stage{entered: true}).Start(r, Command{Path: "/nonexistent", Terminal: NewPTY}); !errors.As(err, &refused) {
		t.Errorf("got %v", err)
	}
	_, err := Stage{entered: true}.Start(r, Command{Path: "sh", Dir: "/nonexistent", Terminal: NewPTY})
	if !errors.As(err, &refused) {
		t.Errorf("got %v", err)
	}
	if _, err := (Stage{}).Start(r, Command{Path: "true", Terminal: NewPTY}); !errors.Is(err, ErrNoStage) {
		t.Errorf("got %v", err)
	}
	eventually(t, "as many descriptors are open as before", func() bool { return descriptorsOpen(t) == before })
}

func descriptorsOpen(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// What a keeper holds that is killed comes to a program that has no other
// children. That ends it, whatever it has made of its environment.
func TestPTYLosesItsKeeper(t *testing.T) {
	s := sit(t, Screen{}, `env -i setsid sh -c 'trap "" HUP TERM; echo $$; while :; do sleep 0.1; done' & wait`)
	left := identify(t, s.line(t))
	if err := keeperOf(t, s.Run).Signal(unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if got := exitOf(t, s.Run); got.Signal != unix.SIGKILL {
		t.Errorf("the command ended by %v", got)
	}
	if processes, err := s.Processes(); err != nil || len(processes) == 0 {
		t.Errorf("listed are %v, %v", processes, err)
	}
	if n := s.Terminate(); n == 0 {
		t.Error("nothing took SIGTERM")
	}
	if killed := s.Kill(patience); !killed.Proved {
		t.Errorf("got %+v", killed)
	}
	goneIn(t, s.Run)
	if left.Alive() {
		t.Error("it lives")
		_ = left.Signal(unix.SIGKILL)
	}
}
