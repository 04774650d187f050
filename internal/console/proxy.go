//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package console

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// Remote is the controller's side of a pseudo-terminal.
type Remote interface {
	io.WriteCloser
	syscall.Conn
	SetReadDeadline(time.Time) error
	// Follow gives it the size of a terminal.
	Follow(terminal *os.File) error
	// EndInput ends what is read there, for one read.
	EndInput() error
}

// Proxy passes a pseudo-terminal on to the streams of the program. While these
// are a terminal, and the program has its foreground, that is in raw mode: every
// key goes to the pseudo-terminal, which does with it what a terminal does.
type Proxy struct {
	console       *Console // nil where there is no terminal
	remote        Remote
	stdin, stdout *os.File
	// keyboard says that stdin is the console's terminal.
	keyboard bool

	// passing is held from a read of output until it is written.
	passing sync.Mutex
	// drained is closed when there is no output to come. Lost is set before: why
	// nobody takes it.
	drained chan struct{}
	lost    error
	resized chan os.Signal

	// modes guards raw, which says that the terminal is in raw mode.
	modes sync.Mutex
	raw   bool

	finish, release sync.Once
	// over is closed when no more input is to be passed on, and done when no more
	// output is.
	over, done chan struct{}
}

// How often a program in the background looks whether it is in the foreground,
// and one whose input has ended whether that was read: nothing tells of either.
// One that waits for input looks less often whether it is over, and whose the
// input is.
const (
	lookAgain = 100 * time.Millisecond
	lookUp    = time.Second
)

// patience is how long output is waited for that nobody may ever take.
const patience = time.Second

// Pass passes a pseudo-terminal on to the streams until Finish.
func (c *Console) Pass(remote Remote, stdin, stdout *os.File) *Proxy {
	p := &Proxy{
		console: c, remote: remote, stdin: stdin, stdout: stdout,
		keyboard: IsTerminal(stdin),
		drained:  make(chan struct{}), resized: make(chan os.Signal, 1),
		over: make(chan struct{}), done: make(chan struct{}),
	}
	// In the background reads and changes fail then, and do not stop the program.
	// The command has started: it does not inherit that.
	signal.Ignore(unix.SIGTTIN, unix.SIGTTOU)
	signal.Notify(p.resized, unix.SIGWINCH)
	p.takeKeyboard()
	go p.passInput()
	go p.passOutput()
	go p.passSize()
	return p
}

// Screen returns the terminal that a new one is to be like; nil where there is
// none.
func (c *Console) Screen() *os.File {
	if c == nil {
		return nil
	}
	return c.terminal
}

// passInput passes on what is typed, or read from elsewhere, to its end.
func (p *Proxy) passInput() {
	if p.stdin == nil {
		p.endInput()
		return
	}
	var keys [4096]byte
	for p.awaitKeyboard() && p.awaitInput() {
		if !p.takeKeyboard() {
			continue // it was put into the background meanwhile
		}
		n, err := unix.Read(int(p.stdin.Fd()), keys[:])
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
		case err != nil && !p.ours():
		case err != nil || n == 0:
			p.endInput()
			return
		default:
			if _, err := p.remote.Write(keys[:n]); err != nil {
				return
			}
		}
	}
}

// awaitKeyboard waits until input is the program's to read.
func (p *Proxy) awaitKeyboard() bool {
	for !p.takeKeyboard() {
		if p.endsWithin(lookAgain) {
			return false
		}
	}
	return true
}

// awaitInput waits until a read of the input would not, or is not the program's
// to make. A shell can take all that is typed there and give the terminal back
// before anybody has looked: without another look the terminal would stay as the
// shell has it until a line is typed.
func (p *Proxy) awaitInput() bool {
	ready := []unix.PollFd{{Fd: int32(p.stdin.Fd()), Events: unix.POLLIN}}
	for !p.isOver() {
		n, err := unix.Poll(ready, int(lookUp/time.Millisecond))
		if n > 0 || err != nil && !errors.Is(err, unix.EINTR) || !p.takeKeyboard() {
			return true // if it cannot be polled, the read tells
		}
	}
	return false
}

// endsWithin waits, and reports whether no more input is to be passed on.
func (p *Proxy) endsWithin(d time.Duration) bool {
	wait := time.NewTimer(d)
	defer wait.Stop()
	select {
	case <-p.over:
		return true
	case <-wait.C:
		return false
	}
}

func (p *Proxy) isOver() bool {
	select {
	case <-p.over:
		return true
	default:
		return false
	}
}

// endInput makes every read from now on return the end.
func (p *Proxy) endInput() {
	for p.remote.EndInput() == nil && !p.endsWithin(lookAgain) {
	}
}

// passOutput passes on what is printed. Where nobody takes it the pseudo-terminal
// hangs up.
func (p *Proxy) passOutput() {
	defer close(p.drained)
	var text [32 << 10]byte
	for {
		n, err := p.holdOutput(text[:])
		if err != nil {
			return
		}
		_, err = p.stdout.Write(text[:n])
		p.passing.Unlock()
		if err != nil {
			p.lost = err
			p.remote.Close()
			return
		}
	}
}

// Lost returns why some of what was printed could not be passed on. That somebody
// has closed the other end is no loss: he wants no more.
func (p *Proxy) Lost() error {
	select {
	case <-p.drained:
		if !errors.Is(p.lost, unix.EPIPE) {
			return p.lost
		}
	default:
	}
	return nil
}

// holdOutput reads. Without an error it leaves passing locked: what was read is
// not passed on yet.
func (p *Proxy) holdOutput(text []byte) (n int, err error) {
	conn, err := p.remote.SyscallConn()
	if err != nil {
		return 0, err
	}
	ended := conn.Read(func(fd uintptr) bool {
		p.passing.Lock()
		n, err = unix.Read(int(fd), text)
		if err == nil && n == 0 {
			err = io.EOF
		}
		if err != nil {
			p.passing.Unlock()
		}
		return !errors.Is(err, unix.EAGAIN)
	})
	if ended != nil {
		return 0, ended
	}
	if errors.Is(err, unix.EINTR) {
		return p.holdOutput(text)
	}
	return n, err
}

// flush waits until what has been printed is passed on.
func (p *Proxy) flush() {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if p.passing.TryLock() {
			more := p.hasOutput()
			p.passing.Unlock()
			if !more {
				return
			}
		}
	}
}

func (p *Proxy) hasOutput() (more bool) {
	conn, err := p.remote.SyscallConn()
	if err != nil {
		return false
	}
	_ = conn.Control(func(fd uintptr) {
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(ready, 0)
		more = err == nil && n > 0 && ready[0].Revents&unix.POLLIN != 0
	}) // closed: there is none
	return more
}

// passSize passes on every change of the size.
func (p *Proxy) passSize() {
	for {
		select {
		case <-p.resized:
			p.resize()
		case <-p.over:
			return
		}
	}
}

func (p *Proxy) resize() {
	if p.console != nil {
		_ = p.remote.Follow(p.console.terminal) // fails where one of them is gone
	}
}

// ours reports whether the input is the program's to read.
func (p *Proxy) ours() bool {
	if !p.keyboard || p.console == nil || !p.console.controlling {
		return true
	}
	holder, err := p.console.foreground()
	return err == nil && holder == p.console.group
}

// takeKeyboard puts the terminal into raw mode. It reports whether input is the
// program's to read.
func (p *Proxy) takeKeyboard() bool {
	p.modes.Lock()
	defer p.modes.Unlock()
	switch {
	case p.isOver() || !p.ours():
		return false
	case p.keyboard && p.console != nil && !p.raw:
		state, err := term.MakeRaw(int(p.console.terminal.Fd()))
		if err != nil {
			return false // it has gone away, which its input tells soon
		}
		p.console.state, p.raw = state, true
		p.resize()
	}
	return true
}

// leaveKeyboard puts the terminal back as it was, if it is the program's to
// change.
func (p *Proxy) leaveKeyboard() {
	p.modes.Lock()
	defer p.modes.Unlock()
	if p.raw && p.ours() {
		_ = term.Restore(int(p.console.terminal.Fd()), p.console.state) // fails for one that has gone away
	}
	p.raw = false
}

// Pause comes before the program stops: what has been printed is passed on, and
// the terminal is as it was.
func (p *Proxy) Pause() {
	if p != nil {
		p.flush()
		p.leaveKeyboard()
	}
}

// Resume comes after the program was stopped, by itself or by somebody else: a
// shell may have changed the terminal meanwhile, and its size.
func (p *Proxy) Resume() {
	if p == nil {
		return
	}
	p.modes.Lock()
	if p.raw {
		if p.ours() {
			_, _ = term.MakeRaw(int(p.console.terminal.Fd()))
		} else {
			p.raw = false
		}
	}
	p.modes.Unlock()
	p.takeKeyboard()
	p.resize()
}

// Finish comes when the run has ended. Gone says that nothing of it is left;
// else what is left loses its terminal. The keyboard is the user's again. What has
// been printed is passed on, which Done tells.
func (p *Proxy) Finish(gone bool) {
	if p == nil {
		return
	}
	p.finish.Do(func() {
		close(p.over)
		signal.Stop(p.resized)
		p.leaveKeyboard()
		go func() {
			if !gone {
				p.flush()
				_ = p.remote.SetReadDeadline(time.Unix(1, 0)) // fails for one that is closed
			}
			<-p.drained
			p.Release()
			close(p.done)
		}()
	})
}

// Done is closed when everything has been passed on. Whoever it goes to may keep
// it waiting.
func (p *Proxy) Done() <-chan struct{} { return p.done }

// Release puts the terminal back as it was and hangs up.
func (p *Proxy) Release() {
	p.release.Do(func() {
		p.leaveKeyboard()
		signal.Reset(unix.SIGTTIN, unix.SIGTTOU)
		go p.remote.Close() // waits for a read that nobody takes
	})
}
