package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// newShell opens a window with an interactive shell, where a person types.
func newShell(t *testing.T, needed ...string) *pane {
	t.Helper()
	p := newWindow(t, `PS1='ready> ' HISTFILE= exec bash --norc --noprofile -i`, append(needed, "bash")...)
	p.shows("ready>")
	return p
}

// enter types a line.
func (p *pane) enter(line string) {
	p.t.Helper()
	p.keys("-l", line)
	p.keys("Enter")
}

// suspended presses Ctrl-Z and waits until the outer shell says so.
func (p *pane) suspended() {
	p.t.Helper()
	p.keys("C-z")
	p.until("the shell says that it is stopped", func(screen string) bool { return strings.Contains(screen, "Stopped") })
}

// pid returns the number of the cage: the shell's child.
func (p *pane) pid() string {
	p.t.Helper()
	shell, err := p.tmux("display-message", "-p", "#{pane_pid}")
	p.must(err)
	shell = strings.TrimSpace(shell)
	children, err := os.ReadFile(filepath.Join("/proc", shell, "task", shell, "children"))
	p.must(err)
	for pid := range strings.FieldsSeq(string(children)) {
		if name, err := os.ReadFile(filepath.Join("/proc", pid, "comm")); err == nil && string(name) == "cage\n" {
			return pid
		}
	}
	return ""
}

// job returns the number of a process of that name in the window, or "".
func (p *pane) job(name string) string {
	p.t.Helper()
	tty, err := p.tmux("display-message", "-p", "#{pane_tty}")
	p.must(err)
	out, _ := exec.Command("ps", "-t", strings.TrimSpace(tty), "-o", "pid=,comm=").Output()
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[1] == name {
			return fields[0]
		}
	}
	return ""
}

// signalled sends a signal to the process whose number a file holds.
func (p *pane) signalled(file string, sig syscall.Signal) {
	p.t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(p.read(file)))
	p.must(err)
	p.must(syscall.Kill(pid, sig))
}

// stateOf is the letter by which the kernel names the state of a process.
func stateOf(pid string) string {
	status, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return ""
	}
	_, behind, _ := strings.Cut(string(status), ") ")
	state, _, _ := strings.Cut(behind, " ")
	return state
}

// ends waits for the report.
func (p *pane) ends() {
	p.t.Helper()
	p.eventually("the report is there", func() bool { _, err := os.Lstat(p.path("../report.json")); return err == nil })
}

const caged = "cage --report-file ../report.json "

// Promise: Ctrl-Z stops the command and the cage, so that the shell has the
// terminal; fg continues both, and what was changed meanwhile is put back.
func TestCtrlZStopsBoth(t *testing.T) {
	programs := []struct {
		name, line, shows string
		leave             []string
	}{
		{"vim", caged + `-- vim -N -u NONE -i NONE -n --cmd "set showmode" note`, `"note"`, []string{":q!", "Enter"}},
		{"python3", caged + `-- python3 -i -q`, ">>>", []string{"exit()", "Enter"}},
		{"sh", caged + `-- sh -c 'echo its-$((40+2)); read line'`, "its-42", []string{"Enter"}},
		{"vim", caged + `--tty pty -- vim -N -u NONE -i NONE -n --cmd "set showmode" note`, `"note"`, []string{":q!", "Enter"}},
		{"python3", caged + `--tty pty --lifetime run -- python3 -i -q`, ">>>", []string{"exit()", "Enter"}},
		{"sh", `sh -c 'sleep 1000 & other=$! exec ` + caged + `--tty pty -- sh -c "echo its-\$((40+2)); read line; kill \$other"'`, "its-42", []string{"Enter"}},
		{"sh", `sh -c 'sleep 1000 & other=$! exec ` + caged + `-- sh -c "echo its-\$((40+2)); read line; kill \$other"'`, "its-42", []string{"Enter"}},
	}
	for _, tt := range programs {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newShell(t, tt.name)
			p.enter(tt.line)
			p.shows(tt.shows)
			p.suspended()
			p.eventually("the cage is stopped", func() bool { return stateOf(p.pid()) == "T" })
			p.enter(`echo evil >.env; echo the-shell-has-$((40+2))`)
			p.shows("the-shell-has-42")
			p.whole(".env", "evil\n")
			p.enter("fg")
			p.logs("restored")
			p.whole(".env", dotenv)
			p.keys(tt.leave...)
			p.ends()
		})
	}
}

// Promise: the cage goes on guarding where Ctrl-Z does not stop the command: it
// listens not to it, or is a shell with jobs of its own, or was stopped by
// something else than the terminal.
func TestCtrlZIsTheCommands(t *testing.T) {
	undisturbed := func(p *pane) {
		p.t.Helper()
		p.write(".env", "evil\n")
		p.logs("restored")
		p.whole(".env", dotenv)
	}
	t.Run("ignored", func(t *testing.T) {
		t.Parallel()
		p := newShell(t)
		p.enter(caged + `-- sh -c 'trap "" TSTP; echo its-$((40+2)); read line'`)
		p.shows("its-42")
		p.keys("C-z")
		p.shows("^Z")
		undisturbed(p)
		p.keys("Enter")
		p.ends()
	})
	t.Run("a shell with jobs", func(t *testing.T) {
		t.Parallel()
		p := newShell(t)
		p.enter(caged + `-- bash --norc --noprofile -i`)
		p.enter(`PS1='inner> '; sleep 1000`)
		p.until("the job runs", func(string) bool { return p.job("sleep") != "" })
		p.suspended()
		undisturbed(p)
		p.enter("fg")
		p.until("the job runs again", func(string) bool { return stateOf(p.job("sleep")) == "S" })
		p.interrupt(func(string) bool { return p.job("sleep") == "" })
		p.enter("echo still-$((40+2)); exit")
		p.shows("still-42")
		p.ends()
	})
	t.Run("stopped by another", func(t *testing.T) {
		t.Parallel()
		p := newShell(t)
		p.enter(caged + `-- sh -c 'echo $$ >pid; kill -STOP $$; echo its-$((40+2))'`)
		p.appears("pid")
		p.eventually("the command is stopped", func() bool { return stateOf(strings.TrimSpace(p.read("pid"))) == "T" })
		undisturbed(p)
		p.signalled("pid", syscall.SIGCONT)
		p.shows("its-42")
		p.ends()
	})
}

// Promise: a command with a process group of its own has the foreground again
// after fg.
func TestForegroundIsGivenBack(t *testing.T) {
	t.Parallel()
	const program = `import os, signal
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
os.setpgid(0, 0)
os.tcsetpgrp(0, os.getpgrp())
print("its", 40+2)
signal.signal(signal.SIGTTOU, signal.SIG_DFL)
os.kill(0, signal.SIGTSTP)
input()
print("still", 40+2)
`
	p := newShell(t, "python3")
	p.write("program.py", program)
	p.enter(caged + "-- python3 program.py")
	p.shows("its 42")
	p.shows("Stopped")
	p.enter("fg")
	p.until("the shell continues it", func(screen string) bool { return strings.Count(screen, "python3 program.py") == 3 })
	p.keys("Enter")
	p.shows("still 42")
	p.ends()
}

// Promise: after a command that was killed the terminal is as it was, whatever
// it had made of it; the shell has it and reads what is typed from then on.
func TestKilledCommandLeavesATerminal(t *testing.T) {
	const fullScreen = `
stty raw -echo
printf '\033[?1049h\033[?1003h\033[?1006h\033[?2004h\033[?25l\033[?1h\033=mess'
while :; do echo evil >.env; sleep 0.3; done
`
	for name, call := range map[string]string{
		"its own group":    `-- bash --norc --noprofile -i ../full.sh`,
		"our group":        `-- sh ../full.sh`,
		"its own terminal": `--tty pty -- sh ../full.sh`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newShell(t)
			p.write("../full.sh", fullScreen)
			before := p.modes()
			p.enter("stty -a >../before; echo was-$((40+2))")
			p.shows("was-42")
			p.enter(caged + "--contest-limit 1 --grace 100ms " + call)
			p.ends()
			p.until("the shell has the terminal", func(screen string) bool {
				return strings.Contains(screen, "HALTED") && strings.Contains(screen, "was-42")
			})
			p.enter("stty -a >../after; echo still-$((40+2))")
			p.shows("still-42")
			if after := p.modes(); after != before {
				t.Errorf("the modes were %s, are %s", before, after)
			}
			if was, is := p.read("../before"), p.read("../after"); was != is {
				t.Errorf("the settings were\n%sare\n%s", was, is)
			}
			p.wants("status=halted", "exit_code=4")
		})
	}
}

// Promise: after a command that was killed what is printed next follows what is
// there, also in a window where a full-screen program ran long before.
func TestSummaryFollowsWhatIsThere(t *testing.T) {
	t.Parallel()
	p := newShell(t)
	p.enter(`printf '\033[?1049hfull\033[?1049l'; seq -f line-%g 9`)
	p.shows("line-9")
	p.enter(caged + `-- sh -c 'echo before; kill -9 $$'`)
	p.ends()
	p.until("the summary below all that", func(screen string) bool {
		for _, line := range []string{"line-1\n", "line-9\n", "\nbefore\n", "exit 137"} {
			_, below, found := strings.Cut(screen, line)
			if !found {
				return false
			}
			screen = below
		}
		return true
	})
}

// Promise: where the shell is no interactive one, and so does not care for the
// terminal itself, it has the foreground again after a command that took it for
// a group of its own and was killed.
func TestForegroundIsTakenBack(t *testing.T) {
	t.Parallel()
	p := newWindow(t, caged+`-- bash --norc --noprofile -ic 'kill -9 $$'; read line; echo got-$line; sleep 1000`)
	p.shows("exit 137") // what is typed before that was for the command
	p.enter("forty-two")
	p.shows("got-forty-two")
}

// Promise: what a command sets and leaves when it ends by itself stays, and the
// terminal of somebody else is not touched by a cage in the background.
func TestTerminalIsLeftAlone(t *testing.T) {
	t.Run("set on purpose", func(t *testing.T) {
		t.Parallel()
		p := newWindow(t, caged+`-- stty intr ^K; stty -a >../after; sleep 1000`)
		p.ends()
		p.appears("../after")
		p.eventually("the settings are written", func() bool { return strings.Contains(p.read("../after"), "intr = ^K") })
	})
	t.Run("in the background", func(t *testing.T) {
		t.Parallel()
		p := newShell(t)
		p.enter(caged + `-- sh -c 'until [ -e go ]; do sleep 0.02; done; kill -9 $$' &`)
		p.logs("session_start")
		p.enter("stty intr ^K; printf '\\033[?1003h'; : >go; wait; stty -a >../after; echo its-$((40+2))")
		p.ends()
		p.shows("its-42")
		if settings := p.read("../after"); !strings.Contains(settings, "intr = ^K") {
			t.Errorf("the settings are\n%s", settings)
		}
		if modes := p.modes(); !strings.Contains(modes, "mouse 1") {
			t.Errorf("the modes are %s", modes)
		}
	})
}

// Promise: a cage that was stopped and continued compares everything at once.
func TestContinuedCageComparesAll(t *testing.T) {
	t.Parallel()
	f := newField(t)
	r := f.cage(`: >ready; until [ -e go ]; do sleep 0.02; done; tamper map .env B; : >mapped; until [ -e stop ]; do sleep 0.02; done`,
		"--watch-interval", "1h")
	f.appears("ready")
	r.signal(syscall.SIGSTOP)
	f.write("go", "")
	f.appears("mapped")
	if f.read(".env") == dotenv {
		t.Error("nothing was changed while the cage was stopped")
	}
	r.signal(syscall.SIGCONT)
	f.logs("restored")
	f.whole(".env", dotenv)
	f.write("stop", "")
	r.exits(3)
}

// Promise: the modes that tmux does not tell of are turned off too, after a
// command that was killed and after no other.
func TestModesAreTurnedOff(t *testing.T) {
	const bracketedPaste = "\x1b[?2004l"
	for end, want := range map[string]bool{"kill -9 $$": true, "exit 1": false} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			f := newField(t)
			printed := f.screen([]string{"NO_COLOR=1"}, f.call("rm .env; "+end)...)
			if got := strings.Count(printed, bracketedPaste) == 1; got != want {
				t.Errorf("turned off: %v, in %q", got, printed)
			}
			if !want && strings.Contains(printed, "\x1b") {
				t.Errorf("control sequences after a command that ended by itself: %q", printed)
			}
		})
	}
}

// Promise: a check that reads what a hook is told does not wait for a person to
// type it.
func TestCheckWaitsForNobodyToType(t *testing.T) {
	for _, flags := range [][]string{{"--pre-push"}, {"--hook", "claude"}} {
		t.Run(flags[0], func(t *testing.T) {
			t.Parallel()
			f := newField(t)
			screen, line := f.terminal()
			defer screen.Close()
			r := f.prepare("cage", append([]string{"check"}, flags...)...)
			r.cmd.Stdin = line
			r.begin()
			f.must(line.Close())
			r.exits(2)
			r.says("check " + flags[0] + " reads what ")
			r.says(": cage check")
		})
	}
}
