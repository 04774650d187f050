package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// ending are the signals that end a session where stdin is no terminal, without
// those that the tests were started with ignored: programs inherit that.
func ending() []syscall.Signal {
	signals := []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT}
	return slices.DeleteFunc(signals, func(sig syscall.Signal) bool { return signal.Ignored(sig) })
}

// inherited is the mask of the signals that the tests were started with
// ignored, as far as a program in Go passes that on.
func inherited() uint64 {
	var mask uint64
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(sig) {
			mask |= 1 << (sig - 1)
		}
	}
	return mask
}

// Promise: a signal ends the command with everything that it started, and the
// files are whole: exit 3 where something had to be put back.
func TestSignalEndsARunAndRestores(t *testing.T) {
	for _, sig := range ending() {
		t.Run(unix.SignalName(sig), func(t *testing.T) {
			t.Parallel()
			f := newField(t)
			r := f.cage(`echo evil >>.env; tamper held ../lock sh ../stubborn.sh`, "--grace", "100ms")
			f.appears("ready")
			f.logs("restored")
			r.signal(sig)
			r.exits(3)
			f.whole(".env", dotenv)
			f.free()
			name := unix.SignalName(sig)
			r.says("cage: trapped " + name + ": ")
			f.wants("status=violations_reverted", "trapped_signal="+name, "lifetime.proved=true", "watch.halt=null")
			f.logs("trapped_signal")
		})
	}
}

// free wants nobody to live who inherited the lock.
func (f *field) free() {
	f.t.Helper()
	f.must(free(filepath.Join(f.work, "lock")))
}

// Promise: with nothing to put back it is the command's own end that counts.
func TestSignalWithoutViolationLeavesTheExitCode(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		code         int
		want         string
	}{
		{"its own code", `trap 'exit 7' TERM; : >ready; while :; do sleep 0.02; done`, 7, "command_exit_code=7"},
		{"a death by the signal", `: >ready; exec sleep 1000`, 143, "command_signal=SIGTERM"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newField(t)
			r := f.cage(tt.script)
			f.appears("ready")
			r.signal(syscall.SIGTERM)
			r.exits(tt.code)
			f.wants("status=ok", "trapped_signal=SIGTERM", tt.want)
		})
	}
}

// Promise: a second signal shortens the grace to nothing and never skips the
// restore. The first one does not end what does not listen.
func TestSecondSignalShortensTheGrace(t *testing.T) {
	t.Parallel()
	f := newField(t)
	r := f.cage(`tamper held ../lock sh ../stubborn.sh`, "--grace", "1h")
	f.appears("ready")
	r.signal(syscall.SIGTERM)
	f.logs("trapped_signal")
	// Restoring goes on meanwhile.
	f.write(".env", "A=evil\n")
	f.logs("restored")
	select {
	case err := <-r.exited:
		t.Fatalf("ended within the grace: %v", err)
	default:
	}
	f.must(os.Remove(f.path(".env")))
	r.signal(syscall.SIGTERM)
	r.exits(3)
	f.whole(".env", dotenv)
	f.free()
	f.wants("trapped_signal=SIGTERM")
}

// Promise: what was ignored when the cage started stays ignored, for the cage
// and for its command; nothing else is ignored for the command.
func TestIgnoredSignalStaysIgnored(t *testing.T) {
	t.Parallel()
	f := newField(t)
	r := f.prepare("sh", append([]string{"-c", `trap '' HUP; exec cage "$@"`, "sh"},
		f.call(`grep SigIgn /proc/self/status >ignored; : >ready; while [ ! -e go ]; do sleep 0.02; done; exit 7`)...)...)
	r.begin()
	f.appears("ready")
	r.signal(syscall.SIGHUP)
	r.signal(syscall.SIGHUP)
	f.write("go", "")
	r.exits(7)
	f.wants("status=ok", "trapped_signal=null", "command_exit_code=7")
	if got, want := ignored(t, f.read("ignored")), inherited()|1<<(syscall.SIGHUP-1); got != want {
		t.Errorf("the command ignores %#x, want %#x", got, want)
	}
}

func TestCommandIgnoresNothing(t *testing.T) {
	t.Parallel()
	f := newField(t)
	f.cage(`exec cat /proc/self/status >ignored`).exits(0)
	if got := ignored(t, f.read("ignored")); got != inherited() {
		t.Errorf("the command ignores %#x", got)
	}
}

// ignored reads the mask of ignored signals (proc_pid_status(5)).
func ignored(t *testing.T, status string) uint64 {
	t.Helper()
	for line := range strings.Lines(status) {
		if hex, ok := strings.CutPrefix(line, "SigIgn:"); ok {
			mask, err := strconv.ParseUint(strings.TrimSpace(hex), 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			return mask
		}
	}
	t.Fatalf("no SigIgn in %q", status)
	return 0
}

// Promise: a reader who goes away cannot end the cage before the restore, nor
// keep it from reporting: not when the bell rings, not when the summary is
// written.
func TestReaderMayGoAway(t *testing.T) {
	for _, bell := range []string{"never", "always"} {
		t.Run("bell "+bell, func(t *testing.T) {
			t.Parallel()
			f := newField(t)
			read, write, err := os.Pipe()
			f.must(err)
			r := f.prepare("cage", f.call(`while [ ! -e go ]; do sleep 0.01; done; echo evil >>.env; exit 7`, "--json", "--bell", bell)...)
			r.cmd.Stdout, r.cmd.Stderr = write, write
			r.begin()
			f.must(write.Close())
			line := make([]byte, 1)
			_, err = io.ReadFull(read, line)
			f.must(err)
			f.must(read.Close())
			f.write("go", "")
			r.exits(3)
			f.whole(".env", dotenv)
			f.wants("status=violations_reverted", "command_exit_code=7")
		})
	}
}

// Promise: that nobody reads the start line keeps no command from running.
func TestReaderMayBeGoneFromTheStart(t *testing.T) {
	t.Parallel()
	f := newField(t)
	read, write, err := os.Pipe()
	f.must(err)
	f.must(read.Close())
	r := f.prepare("cage", f.call(`: >ran`)...)
	r.cmd.Stdout, r.cmd.Stderr = write, write
	r.begin()
	f.must(write.Close())
	r.exits(0)
	f.whole("ran", "")
}

// Promise: a terminal that takes nothing more keeps only itself waiting: the
// fight goes on to be halted and the files are put back.
func TestReaderMayStandStill(t *testing.T) {
	t.Parallel()
	f := newField(t)
	read, write, err := os.Pipe()
	f.must(err)
	t.Cleanup(func() { read.Close() })
	r := f.prepare("cage", f.call(`while :; do echo evil >>.env; sleep 0.05; done`, "--bell", "always", "--contest-limit", "1")...)
	r.cmd.Stderr = write
	r.begin()
	// From the start line on every byte has its place in the pipe taken.
	line := make([]byte, 1)
	_, err = io.ReadFull(read, line)
	f.must(err)
	fill(t, write)
	f.must(write.Close())
	f.logs("halt")
	f.eventually("the command is gone", func() bool { return strings.Contains(f.events(), `"event":"session_end"`) || stuck(r) })
	go io.Copy(io.Discard, read)
	r.exits(4)
	f.whole(".env", dotenv)
	f.wants("status=halted")
}

// stuck reports whether the cage waits for the reader, with its command gone.
func stuck(r *run) bool {
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", r.cmd.Process.Pid))
	return err == nil && len(strings.TrimSpace(string(children))) == 0
}

// fill writes into a pipe until it takes no more.
func fill(t *testing.T, pipe *os.File) {
	t.Helper()
	fd, err := unix.Dup(int(pipe.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	// A pipe's own flags belong to the open file, which the cage shares: it is
	// opened anew for writing without waiting.
	own, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(own)
	for size := 4096; size > 0; {
		if _, err := unix.Write(own, make([]byte, size)); err != nil {
			size /= 2
		}
	}
}

// Promise: a signal that comes before the command is started ends the start:
// nothing runs, nothing is left, and a second one need not be sent.
func TestSignalBeforeTheCommand(t *testing.T) {
	for _, sig := range ending() {
		t.Run(unix.SignalName(sig), func(t *testing.T) {
			t.Parallel()
			f := newField(t)
			// A file that somebody is writing is waited for, three seconds.
			writer, err := os.OpenFile(f.path(".env"), os.O_WRONLY, 0)
			f.must(err)
			defer writer.Close()
			r := f.cage(`: >ran`)
			f.eventually("the session log is there", func() bool {
				logs, _ := filepath.Glob(filepath.Join(f.work, "tmp", "gantry-cage-*.log"))
				return len(logs) > 0
			})
			r.signal(sig)
			r.exits(2)
			if strings.Contains(r.stderr.String(), "GXT_CAGE_BASELINE_UNREADABLE") {
				t.Skip("the wait was over before the signal came")
			}
			r.says("cage: [GXT_CAGE_INTERRUPTED] " + unix.SignalName(sig) + " came before the command was started\nfix: ")
			f.wants("status=failed", "error_code=GXT_CAGE_INTERRUPTED", "exit_code=2")
			f.leavesNothing()
		})
	}
}

// leavesNothing wants no trace of a session whose command never ran.
func (f *field) leavesNothing() {
	f.t.Helper()
	for _, pattern := range []string{"repo/ran", "tmp/*", "repo/.git/gantry-cage-*/*", "state/cage/sessions/*"} {
		found, err := filepath.Glob(filepath.Join(f.work, pattern))
		f.must(err)
		for _, name := range found {
			if filepath.Base(name) != "lock" {
				f.t.Errorf("%s is there", name)
			}
		}
	}
}

// Promise: signals during the last check end nothing half way.
func TestSignalDuringTheLastCheck(t *testing.T) {
	t.Parallel()
	f := newField(t)
	const files = 600
	name := func(i int) string { return fmt.Sprintf(".github/workflows/%04d.yml", i) }
	for i := range files {
		f.write(name(i), "on: push\n")
	}
	// Without live restore all of them are left to the last check.
	r := f.cage(`rm -r .github; : >ready`, "--no-watch")
	f.appears("ready")
	f.appears(name(0))
	r.signal(syscall.SIGSTOP)
	if _, err := os.Lstat(f.path(name(files - 1))); err == nil {
		r.signal(syscall.SIGCONT)
		t.Skip("the check was over before it could be stopped")
	}
	for _, sig := range ending() {
		r.signal(sig)
	}
	r.signal(syscall.SIGCONT)
	r.exits(3)
	for i := range files {
		f.whole(name(i), "on: push\n")
	}
	f.wants("status=violations_reverted", "command_exit_code=0")
	if !strings.Contains(f.events(), `"event":"trapped_signal"`) {
		t.Error("no signal was noticed")
	}
}
