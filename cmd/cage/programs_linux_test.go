package main

import (
	"cmp"
	"crypto/sha1"
	"fmt"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// program is what people run in a terminal.
type program struct {
	name string
	// command is what the cage runs, and needs names what that takes.
	command string
	needs   []string
	// prepare comes before the cage, and is nil where nothing does.
	prepare func(f *field)
	// use does what a person would, to the end of the program, and wants of it
	// what the page promises for that mode.
	use func(p *pane, mode string)
	// outcome is what the page says, by mode; "works" where nothing is said.
	outcome map[string]string
}

// mode is a column of the page's table, with its flags.
type mode struct{ column, flags string }

func modes() []mode {
	return []mode{
		{treeMode, "--lifetime tree"},
		{runMode, "--lifetime run"},
		{leaveMode, "--lifetime leave"},
		{ptyMode, "--tty pty"},
		{noTTYMode, "--tty none"},
		{inheritMode, "--tty inherit --grace 100ms"},
	}
}

// The columns.
const (
	treeMode  = "`tree`"
	runMode   = "`run`"
	leaveMode = "`leave`"
	// With the lifetime `tree`.
	ptyMode     = "`--tty pty`"
	noTTYMode   = "`--tty none`"
	inheritMode = "`--tty inherit`"
)

// programs are the rows of the page's table.
func programs() []program {
	return []program{
		{
			name: "`bash -i`", command: "bash --norc --noprofile -i", needs: []string{"bash"},
			use: func(p *pane, mode string) {
				if mode == inheritMode {
					p.stopsReading()
					return
				}
				p.keys("PS1='ready> '", "Enter")
				p.shows("\nready>")
				p.keys("sleep 1000 >/dev/null 2>&1 & echo $! >../child", "Enter")
				if mode == noTTYMode {
					p.keys("fg", "Enter")
					p.shows("fg: no job control")
					p.keys("exit 5", "Enter")
					p.exited("5")
					p.outlives("../child", false)
					return
				}
				p.keys(`sh -c 'trap "echo again-$((40+2))" CONT; echo began-$((40+2)); while :; do read line; done'`, "Enter")
				p.shows("began-42")
				prompts := func(screen string) bool { return strings.HasSuffix(strings.TrimSpace(screen), "ready>") }
				p.keys("C-z")
				p.until("it stops", func(screen string) bool { return strings.Contains(screen, "Stopped") && prompts(screen) })
				p.keys("fg %2", "Enter")
				p.shows("again-42")
				p.interrupt(prompts)
				p.keys("jobs; echo still-$((40+2))", "Enter")
				p.shows("still-42")
				p.shows("Running")
				p.keys("exit 5", "Enter")
				p.exited("5")
				p.outlives("../child", mode == leaveMode)
			},
			outcome: map[string]string{
				leaveMode:   "works; jobs in the background live on",
				noTTYMode:   "works, without job control",
				inheritMode: "stops when it reads",
			},
		},
		{
			name: "vi", command: `vi -u NONE -i NONE -n note`, needs: []string{"vi"},
			outcome: map[string]string{inheritMode: "stops when it reads"},
			use: func(p *pane, mode string) {
				if mode == inheritMode {
					p.stopsReading()
					return
				}
				p.shows("note")
				p.keys("i", "one", "Escape")
				p.shows("one")
				p.keys(":wq", "Enter")
				p.exited("0")
				p.whole("note", "one\n")
			},
		},
		{
			name: "`python3 -i`", command: "python3 -i -q", needs: []string{"python3"},
			outcome: map[string]string{
				runMode:     "works; `start_new_session` is refused",
				leaveMode:   "works; child processes live on",
				inheritMode: "stops when it reads",
			},
			use: func(p *pane, mode string) {
				if mode == inheritMode {
					p.stopsReading()
					return
				}
				p.shows(">>>")
				p.keys("import subprocess as s; print('began', 40+2)", "Enter")
				p.shows("began 42")
				p.keys("c = s.Popen(['sleep', '1000'], start_new_session=True, stdout=s.DEVNULL, stderr=s.DEVNULL)", "Enter")
				if mode == runMode {
					p.shows("PermissionError")
					p.keys("c = s.Popen(['sleep', '1000'], stdout=s.DEVNULL, stderr=s.DEVNULL)", "Enter")
				}
				p.keys("n = open('../child', 'w').write(f'{c.pid}\\n'); print('wrote', n > 0)", "Enter")
				p.shows("wrote True")
				p.keys("raise SystemExit(5)", "Enter")
				p.exited("5")
				p.outlives("../child", mode == leaveMode)
			},
		},
		{
			name: "tmux", command: `env -u TMUX tmux -S ../inner -f /dev/null new-session "echo in-\$((40+2)); exec sleep 1000"`, needs: []string{"tmux"},
			outcome: map[string]string{
				treeMode:    "works; the server ends with the command",
				runMode:     "fails: its server is a daemon",
				leaveMode:   "works; the server lives on",
				ptyMode:     "works; the server ends with the command",
				noTTYMode:   "works; the server ends with the command",
				inheritMode: "works; the server ends with the command",
			},
			use: func(p *pane, mode string) {
				if mode == runMode {
					p.exited("1")
					return
				}
				p.shows("in-42")
				inner := func(args ...string) string {
					c := exec.Command("tmux", append([]string{"-S", p.path("../inner")}, args...)...)
					c.Env = append(p.env(), "TMUX=")
					out, _ := c.Output()
					return strings.TrimSpace(string(out))
				}
				p.write("../child", inner("display-message", "-p", "#{pid}")+"\n")
				inner("detach-client")
				p.exited("0")
				p.outlives("../child", mode == leaveMode)
			},
		},
		{
			name: "node with a detached child", needs: []string{"node"},
			command: `node -e "const c = require('child_process').spawn('sleep', ['1000'], {detached: true, stdio: 'ignore'});
				c.on('spawn', () => { require('fs').writeFileSync('../child', c.pid + '\\n'); c.unref() })"`,
			outcome: map[string]string{
				treeMode:    "works; the child ends with the command",
				runMode:     "works; the child ends with the command",
				leaveMode:   "works; the child lives on",
				ptyMode:     "works; the child ends with the command",
				noTTYMode:   "works; the child ends with the command",
				inheritMode: "works; the child ends with the command",
			},
			use: func(p *pane, mode string) {
				p.exited("0")
				p.outlives("../child", mode == leaveMode)
			},
		},
		{
			name: "git that tidies up", command: `sh -c "git -c gc.auto=1 gc --auto 2>../said"`, needs: []string{"git"},
			outcome: map[string]string{
				treeMode:    "works, in the background",
				runMode:     "works, in the foreground",
				leaveMode:   "works, in the background",
				ptyMode:     "works, in the background",
				noTTYMode:   "works, in the background",
				inheritMode: "works, in the background",
			},
			prepare: looseObjects,
			use: func(p *pane, mode string) {
				p.exited("0")
				p.wants("status=ok")
				background := strings.Contains(p.read("../said"), "in background")
				if background != (mode != runMode) {
					p.t.Errorf("it said %q", p.read("../said"))
				}
				if mode == leaveMode {
					p.leftEnds()
				}
			},
		},
	}
}

// looseObjects makes as many of them as have git tidy up: it counts those whose
// names begin with 17.
func looseObjects(f *field) {
	for n, made := 0, 0; made < 3; n++ {
		content := fmt.Sprintf("%d\n", n)
		if sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(content), content))[0] != 0x17 {
			continue
		}
		made++
		c := exec.Command("git", "hash-object", "-w", "--stdin")
		c.Dir, c.Env, c.Stdin = f.repo, f.env(), strings.NewReader(content)
		if out, err := c.CombinedOutput(); err != nil {
			f.t.Fatalf("git hash-object: %v %s", err, out)
		}
	}
}

// outlives wants the process whose number a file holds to have ended, or to live
// on. It is ended.
func (f *field) outlives(name string, wanted bool) {
	f.t.Helper()
	pid := f.number(name)
	if alive(pid) != wanted {
		f.t.Errorf("%s, %d, is alive: %v", name, pid, !wanted)
	}
	unix.Kill(pid, unix.SIGKILL)
}

// stopsReading waits until the terminal stops the command, and ends it by Ctrl-C.
func (p *pane) stopsReading() {
	p.t.Helper()
	tty, err := p.tmux("display-message", "-p", "#{pane_tty}")
	p.must(err)
	p.eventually("the command is stopped", func() bool {
		states, _ := exec.Command("ps", "-t", strings.TrimSpace(tty), "-o", "stat=").Output()
		return strings.Contains(string(states), "T")
	})
	p.keys("C-c")
	p.appears("../exit")
	p.wants("trapped_signal=SIGINT")
}

// Promise: the page says of each of these programs, in each mode, what works in
// a terminal and what does not.
func TestPrograms(t *testing.T) {
	for _, program := range programs() {
		for _, mode := range modes() {
			t.Run(program.name+" "+mode.column, func(t *testing.T) {
				t.Parallel()
				needs(t, append(program.needs, "tmux")...)
				f := newField(t)
				if program.prepare != nil {
					program.prepare(f)
				}
				program.use(openWindow(f, f.likeAPerson(underCage(program.command, mode.flags))), mode.column)
			})
		}
	}
}

// Promise: the page says no more and no less than what is tried.
func TestProgramsAreListed(t *testing.T) {
	var want [][]string
	for _, program := range programs() {
		row := []string{program.name}
		for _, mode := range modes() {
			row = append(row, cmp.Or(program.outcome[mode.column], "works"))
		}
		want = append(want, row)
	}
	if got := table(t, "docs/lifetime.md", "program"); !reflect.DeepEqual(got, want) {
		t.Errorf("docs/lifetime.md has\n%q, tried is\n%q", got, want)
	}
}
