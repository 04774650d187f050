package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// pane is a window of tmux with a cage in it.
type pane struct {
	*field
	socket string
}

// newPane opens a window in which a cage runs a program, and notes how it
// exited.
func newPane(t *testing.T, program string, flags ...string) *pane {
	t.Helper()
	return newWindow(t, underCage(program, flags...), program)
}

// underCage is a line of script that runs a program under a cage and notes how that
// exited.
func underCage(program string, flags ...string) string {
	return `trap : INT; cage --report-file ../report.json ` + strings.Join(flags, " ") + ` -- ` + program + `; echo $? >../exit.new; mv ../exit.new ../exit`
}

// newWindow opens a window in which a shell runs a line of script. It needs the
// programs whose names are the first words of needed.
func newWindow(t *testing.T, line string, needed ...string) *pane {
	t.Helper()
	needs(t, append(needed, "tmux")...)
	return openWindow(newField(t), line)
}

// needs skips a test that cannot do without programs whose names are the first
// words of these.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		name, _, _ := strings.Cut(program, " ")
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("no %s", name)
		}
	}
}

// openWindow opens a window in a field.
func openWindow(f *field, line string) *pane {
	t := f.t
	t.Helper()
	p := &pane{field: f}
	p.socket = filepath.Join(p.work, "tmux")
	t.Cleanup(func() {
		p.tmux("kill-server")
		p.eventually("the cage is gone", func() bool {
			left, err := filepath.Glob(p.path(".git/gantry-cage-journal/*"))
			return err == nil && len(left) == 0
		})
	})
	if out, err := p.tmux("-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "30", "sh", "-c", line); err != nil {
		t.Skipf("tmux does not start: %v %s", err, out)
	}
	return p
}

func (p *pane) tmux(args ...string) (string, error) {
	c := exec.Command("tmux", append([]string{"-S", p.socket}, args...)...)
	// A session inside another one is refused unless it does not know.
	// Where the password entry has no shell, vim would allow no commands.
	c.Dir, c.Env = p.repo, append(p.env(), "TMUX=", "TERM=xterm", "SHELL=/bin/sh")
	out, err := c.CombinedOutput()
	return string(out), err
}

func (p *pane) keys(keys ...string) {
	p.t.Helper()
	if out, err := p.tmux(append([]string{"send-keys"}, keys...)...); err != nil {
		p.t.Fatalf("tmux send-keys: %v %s", err, out)
	}
}

// interrupt presses Ctrl-C and waits for its effect: the kernel drops what is
// typed before it.
func (p *pane) interrupt(done func(screen string) bool) {
	p.t.Helper()
	p.keys("C-c")
	p.until("Ctrl-C has its effect", done)
}

// shows waits until the screen has a text.
func (p *pane) shows(text string) {
	p.t.Helper()
	p.until("the screen shows "+text, func(screen string) bool { return strings.Contains(screen, text) })
}

func (p *pane) until(what string, done func(screen string) bool) {
	p.t.Helper()
	screen := ""
	defer func() {
		if p.t.Failed() {
			p.t.Logf("the screen shows:\n%s", screen)
		}
	}()
	p.eventually(what, func() bool {
		screen, _ = p.tmux("capture-pane", "-p")
		return done(screen)
	})
}

// modes returns what tmux knows of the modes that programs turn on.
func (p *pane) modes() string {
	p.t.Helper()
	out, err := p.tmux("display-message", "-p",
		"alternate #{alternate_on} mouse #{mouse_any_flag} cursor #{cursor_flag} keypad #{keypad_flag} keys #{keypad_cursor_flag}")
	p.must(err)
	return strings.TrimSpace(out)
}

func (p *pane) exited(code string) {
	p.t.Helper()
	p.eventually("the cage exits", func() bool { _, err := os.Lstat(p.path("../exit")); return err == nil })
	p.whole("../exit", code+"\n")
}

// Promise: on a terminal Ctrl-C is the command's, which reacts as ever, and the
// cage goes on.
func TestCtrlCIsTheCommands(t *testing.T) {
	t.Run("bash", func(t *testing.T) {
		t.Parallel()
		p := newPane(t, "bash --norc --noprofile -i")
		p.keys("PS1='ready> '", "Enter")
		p.shows("\nready>")
		p.keys("echo began-$((40+2)); sleep 1000", "Enter")
		p.shows("began-42")
		// A shell that has not got as far yet goes on to it.
		p.until("the job runs", func(string) bool { return stateOf(p.job("sleep")) == "S" })
		p.interrupt(func(string) bool { return p.job("sleep") == "" })
		p.keys("echo still-$((40+2))", "Enter")
		p.shows("still-42")
		p.keys("echo evil >>.env", "Enter")
		p.logs("restored")
		p.keys("exit 5", "Enter")
		p.exited("3")
		p.whole(".env", dotenv)
		p.wants("status=violations_reverted", "command_exit_code=5", "trapped_signal=null")
	})
	t.Run("python", func(t *testing.T) {
		t.Parallel()
		p := newPane(t, "python3 -i -q")
		p.shows(">>>")
		p.keys("import time; print('began', 40+2); time.sleep(1000)", "Enter")
		p.shows("began 42")
		p.interrupt(func(screen string) bool { return strings.Contains(screen, "KeyboardInterrupt") })
		p.keys("print('still', 40+2)", "Enter")
		p.shows("still 42")
		p.keys("raise SystemExit(5)", "Enter")
		p.exited("5")
		p.wants("status=ok", "command_exit_code=5", "trapped_signal=null")
	})
	t.Run("vim", func(t *testing.T) {
		t.Parallel()
		p := newPane(t, `vim -N -u NONE -i NONE -n --cmd "set showmode" note`)
		p.shows("note")
		p.keys("i")
		p.shows("-- INSERT --")
		p.keys("one")
		p.shows("one")
		p.interrupt(func(screen string) bool { return !strings.Contains(screen, "-- INSERT --") })
		p.keys("o", "two")
		p.shows("two")
		p.keys("Escape")
		p.keys(":wq", "Enter")
		p.exited("0")
		p.whole("note", "one\ntwo\n")
		p.wants("status=ok", "trapped_signal=null")
	})
}

// Promise: a terminal that is closed ends the run, and the files are whole.
func TestTerminalIsClosed(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("SIGHUP is ignored here")
	}
	for _, tty := range []string{"foreground", "pty"} {
		t.Run(tty, func(t *testing.T) {
			t.Parallel()
			p := newPane(t, `tamper held ../lock sh -c '(trap "" HUP TERM; sleep 1000) & : >ready; while :; do read x || sleep 1000; done'`, "--grace 50ms --tty", tty)
			p.appears("ready")
			p.write(".env", "A=evil\n")
			p.logs("restored")
			p.tmux("kill-session")
			p.eventually("the report is there", func() bool { _, err := os.Lstat(p.path("../report.json")); return err == nil })
			p.whole(".env", dotenv)
			p.free()
			p.wants("status=violations_reverted", "trapped_signal=SIGHUP")
		})
	}
}

// terminal opens a new one: the side of whoever sits there, and that of the
// programs (pty(7)).
func (f *field) terminal() (screen, line *os.File) {
	f.t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	f.must(err)
	f.must(unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	f.must(err)
	line, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	f.must(err)
	return os.NewFile(uintptr(fd), "terminal"), line
}

// screen runs a cage with stderr on a terminal and returns what that was sent.
func (f *field) screen(env []string, args ...string) string {
	f.t.Helper()
	screen, line := f.terminal()
	defer screen.Close()
	r := f.prepare("cage", args...)
	r.cmd.Env = append(r.cmd.Env, append([]string{"TERM=xterm", "NO_COLOR="}, env...)...)
	r.cmd.Stderr = line
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	printed := make(chan string)
	go func() {
		data, _ := io.ReadAll(screen) // EIO when nobody has the other side
		printed <- string(data)
	}()
	r.begin()
	f.must(line.Close())
	r.exits(3)
	return strings.ReplaceAll(<-printed, "\r\n", "\n")
}

// Promise: between the start line and the summary stderr gets nothing but the
// bell: one for every event where it is wanted, and none where it is not. By
// itself it rings on a terminal only.
func TestBell(t *testing.T) {
	const script = `echo evil >>.env; until grep -q restored "$GANTRY_CAGE_SESSION_LOG"; do sleep 0.02; done`
	between := regexp.MustCompile(`(?s)\Acage: watching [^\n]*\n([^c]*)cage: .*\z`)
	for _, tt := range []struct {
		bell     string
		terminal bool
		rings    bool
	}{
		{"always", false, true}, {"always", true, true},
		{"auto", false, false}, {"auto", true, true},
		{"never", false, false}, {"never", true, false},
	} {
		name := tt.bell + map[bool]string{true: " on a terminal", false: " into a pipe"}[tt.terminal]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newField(t)
			var stderr string
			if tt.terminal {
				stderr = f.screen(nil, f.call(script, "--bell", tt.bell)...)
			} else {
				r := f.cage(script, "--bell", tt.bell)
				r.exits(3)
				stderr = r.stderr.String()
			}
			parts := between.FindStringSubmatch(strings.ReplaceAll(stderr, "\x1b[", "["))
			if parts == nil {
				t.Fatalf("stderr is %q", stderr)
			}
			got := strings.TrimSuffix(parts[1], "[1;33m")
			if strings.Trim(got, "\a") != "" || (got != "") != tt.rings {
				t.Errorf("between start line and summary stands %q\nstderr: %q", got, stderr)
			}
		})
	}
}

// Promise: colours are for a terminal, and not where NO_COLOR or a dumb
// terminal asks for none.
func TestColours(t *testing.T) {
	t.Parallel()
	f := newField(t)
	call := f.call(`echo evil >>.env`, "--bell", "never")
	if got := f.screen(nil, call...); !strings.Contains(got, "\x1b[") {
		t.Errorf("no colours on a terminal: %q", got)
	}
	for _, env := range [][]string{{"NO_COLOR=1"}, {"TERM=dumb"}} {
		if got := f.screen(env, call...); strings.Contains(got, "\x1b") {
			t.Errorf("colours with %v: %q", env, got)
		}
	}
	r := f.cage(`echo evil >>.env`)
	r.exits(3)
	if strings.ContainsAny(r.stderr.String(), "\x1b\a") {
		t.Errorf("control bytes in a pipe: %q", &r.stderr)
	}
}
