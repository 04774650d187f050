//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// errOutput is returned by Run where a helper wrote more than it may.
var errOutput = errors.New("more output than allowed")

// Helper is a short-lived process that the program runs for itself.
type Helper struct {
	Path string
	Args []string
	Env  []string
	Dir  string
	// Input is what it reads from its standard input.
	Input []byte
	// MaxOutput bounds, in bytes, what is kept of each of its two output
	// streams. The rest is read and dropped.
	MaxOutput int
}

// Output is what a helper left.
type Output struct {
	Stdout, Stderr []byte
	Exit           Exit
}

// Run runs a helper in a session of its own, without a terminal, where that is
// allowed, and returns when it has ended; an exit code other than 0 is no error.
// When ctx is done first the helper is killed and the context's cause returned.
// What a helper leaves running behind it counts as the tree's, and does not
// delay Run.
func (r *Reaper) Run(ctx context.Context, h Helper) (Output, error) {
	pipes, err := newPipes(h)
	if err != nil {
		return Output{}, fmt.Errorf("running %q: %w", h.Path, err)
	}
	child, err := r.startAside(Spec{Path: h.Path, Args: h.Args, Env: h.Env, Dir: h.Dir, Files: pipes.theirs()})
	if err != nil {
		pipes.close()
		return Output{}, err
	}
	pipes.serve(h.Input)
	select {
	case exit := <-child.Exited():
		stdout, stderr, err := pipes.collect()
		if err != nil {
			err = fmt.Errorf("running %q: %w", h.Path, err)
		}
		return Output{Stdout: stdout, Stderr: stderr, Exit: exit}, err
	case <-ctx.Done():
		killErr := child.Kill()
		pipes.close()
		err := fmt.Errorf("running %q: %w", h.Path, context.Cause(ctx))
		if killErr != nil && !errors.Is(killErr, ErrGone) {
			err = errors.Join(err, killErr)
		}
		return Output{}, err
	}
}

// startAside starts a process out of the reach of the terminal's keys, as far as
// this program may: what a filter of system calls refuses it fails with EPERM.
func (r *Reaper) startAside(spec Spec) (child *Child, err error) {
	for _, spec.Place = range []Place{OwnSession, OwnGroup, Beside} {
		attr := &syscall.SysProcAttr{}
		dieWithParent(attr)
		if child, err = r.start(spec, attr, nil); !errors.Is(err, unix.EPERM) {
			break
		}
	}
	return child, err
}

// pipes are the three streams of a helper, and what is kept of two of them.
type pipes struct {
	stdin, stdout, stderr pipe
	output, complaints    capture
	copying               sync.WaitGroup
}

// pipe is one stream: our end and the helper's. The zero pipe is none.
type pipe struct{ ours, theirs *os.File }

func (p pipe) close() {
	p.ours.Close()
	p.theirs.Close()
}

func newPipes(h Helper) (*pipes, error) {
	p := &pipes{output: capture{limit: h.MaxOutput}, complaints: capture{limit: h.MaxOutput}}
	var errs [3]error
	if len(h.Input) > 0 { // else its input is the null device
		p.stdin.theirs, p.stdin.ours, errs[0] = os.Pipe()
	}
	p.stdout.ours, p.stdout.theirs, errs[1] = os.Pipe()
	p.stderr.ours, p.stderr.theirs, errs[2] = os.Pipe()
	if err := errors.Join(errs[:]...); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *pipes) theirs() []*os.File {
	return []*os.File{p.stdin.theirs, p.stdout.theirs, p.stderr.theirs}
}

// serve writes input and reads both outputs until our ends are closed.
func (p *pipes) serve(input []byte) {
	for _, f := range p.theirs() {
		f.Close()
	}
	if len(input) > 0 {
		p.copying.Go(func() {
			// The helper may end without reading all of it.
			_, _ = p.stdin.ours.Write(input)
			p.stdin.ours.Close()
		})
	}
	p.copying.Go(func() { p.output.read(p.stdout.ours) })
	p.copying.Go(func() { p.complaints.read(p.stderr.ours) })
}

// collect returns the output of a helper that has ended. Whatever it wrote is
// in the pipes by now; a process that it left behind may hold them open, so
// the reading is interrupted and what is there taken without waiting.
func (p *pipes) collect() (stdout, stderr []byte, err error) {
	for _, f := range []*os.File{p.stdin.ours, p.stdout.ours, p.stderr.ours} {
		// Fails only for a file that is closed, which needs no interruption.
		_ = f.SetDeadline(time.Unix(1, 0))
	}
	p.copying.Wait()
	p.output.drain(p.stdout.ours)
	p.complaints.drain(p.stderr.ours)
	p.close()
	if p.output.over {
		err = fmt.Errorf("standard output: %w (%d bytes)", errOutput, p.output.limit)
	}
	return p.output.kept.Bytes(), p.complaints.kept.Bytes(), err
}

// close closes every end and returns when nothing uses them any more.
func (p *pipes) close() {
	p.stdin.close()
	p.stdout.close()
	p.stderr.close()
	p.copying.Wait()
}

// capture keeps the beginning of a stream.
type capture struct {
	limit int
	kept  bytes.Buffer
	over  bool
}

func (c *capture) Write(data []byte) (int, error) {
	room := c.limit - c.kept.Len()
	c.over = c.over || len(data) > room
	c.kept.Write(data[:min(len(data), room)])
	return len(data), nil
}

func (c *capture) read(from *os.File) {
	// Ends with the stream, with the deadline or with the closed file; the
	// helper's exit says whether it did its work.
	_, _ = io.Copy(c, from)
}

// maxPipe is the most that a pipe holds: /proc/sys/fs/pipe-max-size as the
// kernel sets it, sixteen times what a pipe starts with.
const maxPipe = 1 << 20

// drain takes what is in a pipe now. A read that respects the deadline would
// refuse to look.
func (c *capture) drain(from *os.File) {
	conn, err := from.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) {
		var chunk [4096]byte
		for taken := 0; taken < maxPipe; {
			n, err := unix.Read(int(fd), chunk[:])
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil || n <= 0 {
				return
			}
			_, _ = c.Write(chunk[:n])
			taken += n
		}
	})
}
