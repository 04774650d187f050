package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// likeAPerson is a line of script that runs another as an interactive shell does.
// tmux has its programs ignore SIGTTIN and SIGTTOU, which such a shell takes back.
func (f *field) likeAPerson(line string) string {
	f.t.Helper()
	f.write("../line", line)
	return "exec bash --norc --noprofile -i ../line"
}

// stops waits until the process whose number a file holds was stopped by the
// terminal.
func (p *pane) stops(file string) {
	p.t.Helper()
	p.appears(file)
	p.eventually("the command is stopped", func() bool { return stateOf(strings.TrimSpace(p.read(file))) == "T" })
}

// Promise: with its own pseudo-terminal a command sees the user's size, all
// changes of it, and the keys, the keyboard's signals included; afterwards the
// user's terminal is as it was, with whatever it is ended.
func TestOwnTerminal(t *testing.T) {
	t.Run("size", func(t *testing.T) {
		t.Parallel()
		p := newPane(t, `sh -c 'trap "stty size" WINCH; stty size; until [ -e go ]; do sleep 0.02; done'`, "--tty pty")
		p.shows("30 100")
		if out, err := p.tmux("resize-window", "-x", "90", "-y", "20"); err != nil {
			t.Skipf("tmux cannot resize: %s", out)
		}
		p.shows("20 90")
		p.write("go", "")
		p.exited("0")
		p.wants("hygiene.terminal=pty", "lifetime.mechanism=keeper", "status=ok")
	})
	t.Run("settings", func(t *testing.T) {
		t.Parallel()
		p := newShell(t)
		p.enter(`stty intr ^K; stty -a >../before; ` + caged + `--tty pty -- sh -c 'stty -a >../inner; stty raw -echo; echo raw-$((40+2)); read line'; stty -a >../after; echo ended-$((40+2))`)
		p.shows("raw-42")
		p.keys("C-j")
		p.shows("ended-42")
		if was, is := p.read("../before"), p.read("../after"); was != is || !strings.Contains(was, "intr = ^K;") {
			t.Errorf("the settings were\n%sare\n%s", was, is)
		}
		if inner := p.read("../inner"); !strings.Contains(inner, "intr = ^K;") || !strings.Contains(inner, " icanon") {
			t.Errorf("the settings inside are\n%s", inner)
		}
	})
	t.Run("ended from outside", func(t *testing.T) {
		t.Parallel()
		p := newShell(t)
		p.enter(`stty -a >../before; ` + caged + `--tty pty --grace 50ms -- sh -c 'trap "" HUP TERM INT; echo ready-$((40+2)); while :; do sleep 0.1; done'; stty -a >../after; echo ended-$((40+2))`)
		p.shows("ready-42")
		p.keys("C-c")
		p.shows("^C") // is the command's, which does not listen
		p.must(syscall.Kill(mustNumber(t, p.pid()), syscall.SIGTERM))
		p.shows("ended-42")
		if was, is := p.read("../before"), p.read("../after"); was != is {
			t.Errorf("the settings were\n%sare\n%s", was, is)
		}
		p.wants("trapped_signal=SIGTERM", "command_signal=SIGKILL")
	})
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		p := newShell(t)
		p.enter(caged + `--tty pty -- sh -c 'trap "" HUP TERM; echo $$ >pid; while :; do sleep 0.1; done'`)
		command := p.number("pid")
		p.must(syscall.Kill(mustNumber(t, p.pid()), syscall.SIGKILL))
		p.eventually("the command is gone", func() bool { return !alive(command) })
		p.enter(`cage -- true; echo again-$((40+2))`)
		p.shows("again-42")
	})
	t.Run("stopped in a script", func(t *testing.T) {
		t.Parallel()
		p := newShell(t)
		p.enter(`sh -c '` + caged + `--tty pty -- sh -c "echo its-\$((40+2)); read a; echo \"read \$a\" >read"; echo script-$((40+2))'`)
		p.shows("its-42")
		p.until("the command has the keyboard", func(string) bool { return p.rawTerminal() })
		p.suspended()
		p.enter("echo the-shell-reads-$((40+2))")
		p.shows("the-shell-reads-42")
		p.enter("fg; echo back-$((40+2))")
		p.until("the job is in the foreground", func(string) bool { return p.rawTerminal() })
		p.enter("one")
		p.shows("script-42")
		p.shows("back-42")
		p.whole("read", "read one\n")
	})
	t.Run("in the background", func(t *testing.T) {
		t.Parallel()
		p := newShell(t)
		p.enter(caged + `--tty pty -- sh -c 'echo its-$((40+2)); read a; read b; echo "read $a $b" >read'`)
		p.shows("its-42")
		p.suspended()
		p.enter("bg")
		p.shows("&")
		p.enter("echo the-shell-reads-$((40+2))")
		p.shows("the-shell-reads-42")
		p.write(".env", "evil\n")
		p.logs("restored")
		p.enter("fg; echo back-$((40+2))")
		p.until("the job is in the foreground", func(screen string) bool {
			return strings.Contains(screen, "--tty pty") && p.rawTerminal()
		})
		p.enter("one")
		p.enter("two")
		p.shows("back-42")
		p.whole("read", "read one two\n")
	})
	t.Run("started in the background", func(t *testing.T) {
		t.Parallel()
		p := newShell(t)
		p.enter(caged + `--tty pty -- sh -c 'stty size >size; read a; echo "read $a" >read' &`)
		p.appears("size")
		p.enter("echo the-shell-reads-$((40+2))")
		p.shows("the-shell-reads-42")
		p.enter("fg; echo back-$((40+2))")
		p.until("the job is in the foreground", func(string) bool { return p.rawTerminal() })
		p.enter("one")
		p.shows("back-42")
		p.whole("read", "read one\n")
		p.whole("size", "30 100\n")
	})
}

// rawTerminal reports whether the window's terminal passes every key on at once.
func (p *pane) rawTerminal() bool {
	tty, err := p.tmux("display-message", "-p", "#{pane_tty}")
	p.must(err)
	out, err := exec.Command("stty", "-F", strings.TrimSpace(tty), "-a").Output()
	p.must(err)
	return strings.Contains(string(out), "-icanon") && strings.Contains(string(out), "-isig")
}

func mustNumber(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Promise: streams that are no terminals work with a pseudo-terminal too:
// nothing of the input is echoed, its end is heard, no output is lost, and where
// nobody takes the output the command hears that its terminal is gone.
func TestOwnTerminalAndPipes(t *testing.T) {
	for _, tt := range []struct{ name, stdin, script, stdout string }{
		{"a line", "one\n", "cat", "one\r\n"},
		{"half a line", "half", `cat; echo " end"`, "half end\r\n"},
		{"nothing", "", "cat; tty >/dev/null && echo end", "end\r\n"},
		{"a shell", "echo its-$((40+2))\n", "TERM=dumb PS1= bash --norc --noprofile -i 2>/dev/null | grep -a its-42", "its-42\r\n"},
		{"both streams", "", "echo out; sleep 0; echo err >&2", "out\r\nerr\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newField(t)
			r := f.prepare("cage", f.call(tt.script, "--tty", "pty")...)
			r.cmd.Stdin = strings.NewReader(tt.stdin)
			r.begin()
			r.exits(0)
			if got := r.stdout.String(); got != tt.stdout {
				t.Errorf("it printed %q, want %q", got, tt.stdout)
			}
		})
	}
	t.Run("much output", func(t *testing.T) {
		t.Parallel()
		f := newField(t)
		r := f.cage("seq 1 50000", "--tty", "pty")
		r.exits(0)
		var want strings.Builder
		for n := range 50000 {
			fmt.Fprintf(&want, "%d\r\n", n+1)
		}
		if got := r.stdout.String(); got != want.String() {
			t.Errorf("it printed %d bytes, want %d", len(got), want.Len())
		}
	})
	t.Run("nobody reads", func(t *testing.T) {
		t.Parallel()
		f := newField(t)
		reads, writes, err := os.Pipe()
		f.must(err)
		r := f.prepare("cage", f.call("while :; do echo x; sleep 0.02; done", "--tty", "pty")...)
		r.cmd.Stdout = writes
		r.begin()
		f.must(writes.Close())
		_, err = reads.Read(make([]byte, 1))
		f.must(err)
		f.must(reads.Close())
		r.exits(128 + int(unix.SIGHUP))
	})
	t.Run("no room", func(t *testing.T) {
		t.Parallel()
		f := newField(t)
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		f.must(err)
		defer full.Close()
		r := f.prepare("cage", f.call("trap '' HUP; echo lost", "--tty", "pty")...)
		r.cmd.Stdout = full
		r.begin()
		r.exits(0)
		r.says("what the command printed is not complete: ")
		r.says("no space left on device")
	})
	t.Run("nobody reads on", func(t *testing.T) {
		t.Parallel()
		f := newField(t)
		reads, writes, err := os.Pipe()
		f.must(err)
		defer reads.Close()
		r := f.prepare("cage", f.call("echo evil >.env; yes", "--tty", "pty", "--grace", "50ms")...)
		r.cmd.Stdout = writes
		r.begin()
		f.must(writes.Close())
		f.logs("restored")
		r.signal(syscall.SIGTERM)
		f.logs("session_end") // what is printed does not keep the files waiting
		f.whole(".env", dotenv)
		r.signal(syscall.SIGTERM)
		r.exits(3)
	})
}

// Promise: in the background of the terminal a command that reads is stopped, as
// a shell's job is; Ctrl-C, which does not reach it, ends the run.
func TestBackgroundOfTheTerminal(t *testing.T) {
	t.Parallel()
	needs(t, "bash", "tmux")
	f := newField(t)
	p := openWindow(f, f.likeAPerson(underCage(`sh -c 'echo $$ >pid; echo its-$((40+2)); read line; echo "read $line"'`, "--tty inherit")))
	p.shows("its-42")
	p.stops("pid")
	p.keys("C-z") // is nobody's
	p.write(".env", "evil\n")
	p.logs("restored")
	p.keys("C-c")
	p.exited("3")
	p.wants("trapped_signal=SIGINT", "hygiene.terminal=inherit", "command_signal=SIGTERM")
}

// Promise: a command that the terminal's signals do not stop cannot get out of the
// background, neither by taking the foreground nor by letting the terminal go,
// and cannot read.
func TestBackgroundIsNotLeft(t *testing.T) {
	const program = `import errno, fcntl, os, signal, struct
for sig in (signal.SIGTTIN, signal.SIGTTOU):
    signal.signal(sig, signal.SIG_IGN)
tty = os.open("/dev/tty", os.O_RDWR)
for request, argument in ((0x5410, struct.pack("i", os.getpgrp())), (0x5422, 0)):
    try:
        fcntl.ioctl(tty, request, argument)
        print("left", hex(request))
    except OSError as e:
        print("refused" if e.errno == errno.EPERM else e, hex(request))
try:
    print("read", os.read(0, 1))
except OSError as e:
    print("no reading:", e)
`
	t.Parallel()
	needs(t, "python3", "tmux")
	f := newField(t)
	f.write("../program.py", program)
	p := openWindow(f, underCage("python3 ../program.py", "--tty inherit")+"; sleep 1000")
	p.exited("0")
	p.until("both are refused, and the read", func(screen string) bool {
		return strings.Contains(screen, "refused 0x5410") && strings.Contains(screen, "refused 0x5422") && strings.Contains(screen, "no reading:")
	})
}

// Promise: without a terminal there is none to open, what stands as a stream can
// be read all the same, and Ctrl-C ends the run.
func TestWithoutTerminal(t *testing.T) {
	t.Parallel()
	p := newPane(t, `sh -c '(: </dev/tty) 2>/dev/null || echo none-$((40+2)); read line; echo "read $line"; sleep 1000'`, "--tty none")
	p.shows("none-42")
	p.enter("a line")
	p.shows("read a line")
	p.keys("C-c")
	p.exited("143")
	p.wants("trapped_signal=SIGINT", "hygiene.terminal=none")
}

// Promise: nothing in the command can type for the user.
func TestTypingForTheUserIsRefused(t *testing.T) {
	const program = `import errno, fcntl, os
tty = os.open("/dev/tty", os.O_RDWR)
for request in (0x5412, 0x541C):
    try:
        fcntl.ioctl(tty, request, b"x")
        print("typed", hex(request))
    except OSError as e:
        print("refused" if e.errno == errno.EPERM else e, hex(request))
print("asked", 40 + 2)
`
	for _, tty := range []string{"pty", "inherit"} {
		t.Run(tty, func(t *testing.T) {
			t.Parallel()
			needs(t, "python3", "tmux")
			f := newField(t)
			f.write("../program.py", program)
			p := openWindow(f, underCage("python3 ../program.py", "--tty", tty)+"; sleep 1000")
			p.exited("0")
			p.until("both are refused", func(screen string) bool {
				return strings.Contains(screen, "asked 42") && strings.Contains(screen, "refused 0x5412") && strings.Contains(screen, "refused 0x541c")
			})
		})
	}
}
