package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func lookPath(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// run runs a command to its end. What go builds is built as README.md has it,
// without the C library, which alone takes milliseconds to start.
func run(ctx context.Context, dir string, argv ...string) error {
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Dir, c.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// readyWord is the line by which a peer says that it is at work.
const readyWord = "ready"

// process is a contender that works until it is told to stop.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	// started is how long it took until it was at work.
	started time.Duration
	stderr  bytes.Buffer
}

// start starts a contender and waits until it is at work.
func (st *stage) start(dir string, argv ...string) (*process, error) {
	p := &process{cmd: exec.Command(argv[0], argv[1:]...)}
	p.cmd.Dir, p.cmd.Env, p.cmd.Stderr = dir, st.environment(), &p.stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.stdin = stdin
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	p.started = time.Since(began)
	if strings.TrimSpace(line) != readyWord {
		return nil, errors.Join(fmt.Errorf("%s did not start: it says %q", argv[0], line), err, p.stop())
	}
	return p, nil
}

// stop ends the contender and waits for it.
func (p *process) stop() error {
	p.stdin.Close()
	err := p.cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == exitReverted {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %s", p.cmd.Path, err, bytes.TrimSpace(p.stderr.Bytes()))
	}
	return nil
}

// exitReverted is the cage's exit code where it restored something.
const exitReverted = 3

// environment keeps everything away from the user's configuration and state.
func (st *stage) environment() []string {
	return append(os.Environ(),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"XDG_STATE_HOME="+filepath.Join(st.top, "state"), "TMPDIR="+st.top)
}

// guarded is the command line of a cage that guards the current directory
// until it is told to stop.
func (st *stage) guarded() []string { return st.guarding(peerHold) }

// guarding is the command line of a cage around a peer, however often it
// restores.
func (st *stage) guarding(peer ...string) []string {
	argv := []string{st.cage, "--contest-limit", "1000000000", "--rule-contest-limit", "0", "--bell", "never"}
	return append(append(argv, "--", st.self, peerWord), peer...)
}

// once runs a program to its end, without waiting for a Go runtime to notice:
// it returns the time from before the fork to the return of wait4.
func once(dir string, env []string, argv ...string) (time.Duration, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	attr := &syscall.ProcAttr{Dir: dir, Env: env, Files: []uintptr{null.Fd(), null.Fd(), null.Fd()}}
	began := time.Now()
	pid, err := syscall.ForkExec(argv[0], argv, attr)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", argv[0], err)
	}
	var status syscall.WaitStatus
	for {
		_, err = syscall.Wait4(pid, &status, 0, nil)
		if err != syscall.EINTR {
			break
		}
	}
	took := time.Since(began)
	if err == nil && status != 0 {
		err = fmt.Errorf("%s ended with status %#x", argv[0], int(status))
	}
	return took, err
}

// resident returns the resident memory of a process now and at its highest, in
// bytes (proc_pid_status(5)).
func resident(pid int) (now, highest float64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(status)) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[2] != "kB" {
			continue
		}
		kilobytes, err := strconv.ParseFloat(fields[1], 64)
		if err != nil {
			return 0, 0, err
		}
		switch fields[0] {
		case "VmRSS:":
			now = kilobytes * 1024
		case "VmHWM:":
			highest = kilobytes * 1024
		}
	}
	return now, highest, nil
}

// processorTime returns the time that a process has spent in user and kernel
// mode, counted in hundredths of a second (proc_pid_stat(5)).
func processorTime(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name may hold anything; after its parenthesis come numbers, utime
	// and stime as the twelfth and thirteenth.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const utime, stime, tick = 11, 12, 10 * time.Millisecond
	if len(fields) <= stime {
		return 0, errors.New("/proc/<pid>/stat is too short")
	}
	user, errU := strconv.Atoi(fields[utime])
	system, errS := strconv.Atoi(fields[stime])
	return time.Duration(user+system) * tick, errors.Join(errU, errS)
}
