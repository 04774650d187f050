//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package spawn

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Screen says how a NewPTY starts.
type Screen struct {
	// Like is a terminal whose size, control characters and character set it
	// takes over; nil leaves it at 80 columns and 24 rows, and the rest to the
	// system.
	Like *os.File
	// Silent does not echo what is written to it, for input that nobody types.
	Silent bool
}

const (
	standardRows = 24
	standardCols = 80
)

// PTY is the controller's side of a run's pseudo-terminal: where its keyboard
// and its screen would be. What is read from it is the command's output as the
// command wrote it, control sequences included.
//
// The command waits when its output is not read. What it has written stays
// there to be read when it has ended, on Linux.
type PTY struct {
	controller *os.File
	// line is the command's side. It is held open for as long as the run lives,
	// because the kernel ends the controller's reads (EIO) whenever nobody has
	// it open, though a process may open it again by its name.
	line *os.File
	// closed is closed with the controller.
	closed  chan struct{}
	closing sync.Once
}

// openPTY returns a new pseudo-terminal.
func openPTY(screen Screen) (*PTY, error) {
	controller, line, err := pty.Open()
	if err != nil {
		return nil, fmt.Errorf("opening a pseudo-terminal: %w; take another terminal than pty", err)
	}
	p := &PTY{line: line, closed: make(chan struct{})}
	p.controller, err = pollable(controller)
	if err == nil {
		err = p.dress(screen)
	}
	if err != nil {
		p.letGo()
		p.Close()
		return nil, fmt.Errorf("setting up a pseudo-terminal: %w", err)
	}
	return p, nil
}

// pollable returns the file in a form whose reads have deadlines and end when
// it is closed. The package that opened it has made it a blocking one.
func pollable(f *os.File) (*os.File, error) {
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

func (p *PTY) dress(screen Screen) error {
	settings, err := unix.IoctlGetTermios(int(p.line.Fd()), getTermios)
	if err != nil {
		return err
	}
	if err := p.SetSize(standardRows, standardCols); err != nil {
		return err
	}
	if screen.Like != nil {
		like, err := unix.IoctlGetTermios(int(screen.Like.Fd()), getTermios)
		if err != nil {
			return err
		}
		settings.Cc = like.Cc
		settings.Iflag = settings.Iflag&^iutf8 | like.Iflag&iutf8
		if err := p.Follow(screen.Like); err != nil {
			return err
		}
	}
	if screen.Silent {
		settings.Lflag &^= unix.ECHO
	}
	return unix.IoctlSetTermios(int(p.line.Fd()), setTermios, settings)
}

// Read reads what the run has written. It returns io.EOF when all of it was
// read and the run is gone.
func (p *PTY) Read(b []byte) (int, error) {
	n, err := p.controller.Read(b)
	if errors.Is(err, unix.EIO) { // nobody has the other side (Linux)
		err = io.EOF
	}
	return n, err
}

// Write types. It waits while the command reads nothing and the terminal's
// queue is full.
func (p *PTY) Write(b []byte) (int, error) { return p.controller.Write(b) }

// SetReadDeadline makes reads fail with os.ErrDeadlineExceeded from t on; the
// zero time lifts that.
func (p *PTY) SetReadDeadline(t time.Time) error { return p.controller.SetReadDeadline(t) }

// SyscallConn gives access to the descriptor.
func (p *PTY) SyscallConn() (syscall.RawConn, error) { return p.controller.SyscallConn() }

// SetSize tells the foreground process group, by SIGWINCH, that the terminal
// has another size, in characters.
func (p *PTY) SetSize(rows, cols uint16) error {
	return p.resize(&unix.Winsize{Row: rows, Col: cols})
}

// Follow is SetSize to the size of another terminal, in pixels too. One that has
// none changes nothing.
func (p *PTY) Follow(terminal *os.File) error {
	size, err := unix.IoctlGetWinsize(int(terminal.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Row == 0 || size.Col == 0 {
		return err
	}
	return p.resize(size)
}

func (p *PTY) resize(size *unix.Winsize) error {
	conn, err := p.controller.SyscallConn()
	if err != nil {
		return err
	}
	closed := conn.Control(func(fd uintptr) { err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, size) })
	return errors.Join(closed, err)
}

// EndInput makes one read of the command return the end of its input, unless
// there is input that it has not read yet. The end of a terminal's input does
// not last, so whoever has no more to write asks for it again from time to time.
func (p *PTY) EndInput() error {
	conn, err := p.line.SyscallConn()
	if err != nil {
		return err
	}
	var settings *unix.Termios
	var unread bool
	closed := conn.Control(func(fd uintptr) {
		unread = readable(int(fd))
		settings, err = unix.IoctlGetTermios(int(fd), getTermios)
	})
	if err = errors.Join(closed, err); err != nil || unread {
		return err
	}
	_, err = p.Write([]byte{settings.Cc[unix.VEOF]})
	return err
}

// readable reports whether a read would not wait. Asking the kernel so counts
// an end of input that was not read yet, unlike FIONREAD.
func readable(fd int) bool {
	ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(ready, 0)
	return err == nil && n > 0
}

// Close hangs the terminal up: its foreground processes get SIGHUP, and all
// others an error when they use it.
func (p *PTY) Close() error {
	p.closing.Do(func() { close(p.closed) })
	return p.controller.Close()
}

// hold lets the command's side go when the run is gone, or the controller's side
// is closed.
func (p *PTY) hold(gone <-chan struct{}) {
	select {
	case <-gone:
	case <-p.closed:
	}
	p.letGo()
}

func (p *PTY) letGo() { p.line.Close() }
