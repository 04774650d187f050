//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

// Package console looks after the terminal that a command is given: it
// remembers how that was, stops and continues the program together with the
// command under a shell's job control, and puts the terminal in order after a
// command that was killed and could not do so itself.
//
// It promises to change nothing while another process group that lives has the
// terminal, and to write to it only where the program's own output goes there.
package console

import (
	"errors"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// Console is the terminal of a run. The nil Console is none.
type Console struct {
	terminal *os.File
	state    *term.State
	// screen is the output that goes to the terminal; nil where none does.
	screen *os.File
	// group is the program's process group.
	group int
	// controlling says that the terminal is the one of the program's session,
	// so that it has a foreground process group.
	controlling bool
	// opened says that the terminal was opened here.
	opened bool
	// multiplexed says that the terminal is a window of tmux or of screen.
	multiplexed bool
	// dropped takes the terminal's stop signal while it is held.
	dropped chan os.Signal
}

// Open remembers the state of the terminal that one of the standard streams
// is, or else of the controlling one, which a command can open by its name. It
// returns nil where there is no terminal. The program's environment, env, says
// what kind of terminal it is.
func Open(stdin, stdout, stderr *os.File, env []string) *Console {
	c := &Console{group: unix.Getpgrp(), multiplexed: slices.ContainsFunc(env, tellsOfMultiplexer)}
	for _, f := range []*os.File{stdin, stdout, stderr} {
		if IsTerminal(f) {
			c.terminal = f
			break
		}
	}
	if c.terminal == nil {
		tty, err := os.OpenFile("/dev/tty", os.O_RDWR|syscall.O_NOCTTY, 0)
		if err != nil {
			return nil
		}
		c.terminal, c.opened = tty, true
	}
	var err error
	if c.state, err = term.GetState(int(c.terminal.Fd())); err != nil {
		c.Close()
		return nil
	}
	for _, f := range []*os.File{stderr, stdout} {
		if IsTerminal(f) && (c.opened || sameTerminal(f, c.terminal)) {
			c.screen = f
			break
		}
	}
	_, err = c.foreground()
	c.controlling = err == nil
	return c
}

// Close lets go of the terminal.
func (c *Console) Close() {
	if c != nil && c.opened {
		c.terminal.Close()
	}
}

// IsTerminal reports whether a file, if there is one, is a terminal.
func IsTerminal(f *os.File) bool { return f != nil && term.IsTerminal(int(f.Fd())) }

// tellsOfMultiplexer reports whether a variable says that the terminal is a
// window of tmux, also at the far end of a connection, or of screen.
func tellsOfMultiplexer(variable string) bool {
	for _, prefix := range []string{"TMUX=/", "TERM=tmux", "TERM=screen"} {
		if strings.HasPrefix(variable, prefix) {
			return true
		}
	}
	return false
}

func sameTerminal(a, b *os.File) bool {
	var statA, statB unix.Stat_t
	return unix.Fstat(int(a.Fd()), &statA) == nil && unix.Fstat(int(b.Fd()), &statB) == nil && statA.Rdev == statB.Rdev
}

// foreground returns the process group that has the terminal.
func (c *Console) foreground() (int, error) {
	return unix.IoctlGetInt(int(c.terminal.Fd()), unix.TIOCGPGRP)
}

// Hold keeps Ctrl-Z from stopping the program: that goes to the command, and
// the program stops when the command has (StopsWithCommand, Stop). A command
// that does not stop is not left alone. A handler, unlike an ignored signal, is
// not inherited by the command.
func (c *Console) Hold() {
	if c != nil && c.controlling && !signal.Ignored(unix.SIGTSTP) {
		c.dropped = make(chan os.Signal, 1)
		signal.Notify(c.dropped, unix.SIGTSTP)
	}
}

// Release ends Hold.
func (c *Console) Release() {
	if c != nil && c.dropped != nil {
		signal.Stop(c.dropped)
		c.dropped = nil
	}
}

// StopsWithCommand reports whether a command that was stopped by sig was so by
// the terminal, on which the program has to stop too. What else stops a
// command does not stop its keeper.
func (c *Console) StopsWithCommand(sig syscall.Signal) bool {
	if c == nil || !c.controlling {
		return false
	}
	return sig == unix.SIGTSTP || sig == unix.SIGTTIN || sig == unix.SIGTTOU
}

// Stop stops the program as sig does by default, and returns when it was
// continued: at once where nobody could continue it, because its process group
// is orphaned. Where the command had the foreground for a group of its own, it
// gets it back if the program has it then.
func (c *Console) Stop(sig syscall.Signal) {
	before, err := c.foreground()
	stop(sig)
	if err != nil || before == c.group || !lives(before) {
		return
	}
	if now, err := c.foreground(); err == nil && now == c.group {
		// Fails where that group has just ended, which leaves it to the program.
		_ = c.giveTo(before)
	}
}

// StopGroup is a Stop for a terminal in raw mode, which did not send sig to the
// program's process group: a script that waits for the program stops too, so that
// its shell takes over.
func StopGroup(sig syscall.Signal) {
	_ = unix.Kill(0, sig) // reaches the program at least, which holds it
	stop(sig)
}

// Restore takes the foreground back from a group that has ended. After a
// command that was killed it also puts the settings back that the terminal had
// at first, drops what was typed for the command, and turns off the modes that
// a full-screen program turns on.
func (c *Console) Restore(killed bool) {
	if c == nil || !c.regain() || !killed {
		return
	}
	// A terminal that refuses has gone away.
	_ = dropInput(int(c.terminal.Fd()))
	_ = term.Restore(int(c.terminal.Fd()), c.state)
	if c.screen != nil {
		_, _ = c.screen.WriteString(modesOff + c.normalScreen())
	}
}

// regain reports whether the terminal is the program's to change.
func (c *Console) regain() bool {
	if !c.controlling {
		return true
	}
	holder, err := c.foreground()
	if err != nil {
		return false
	}
	if holder != c.group && !lives(holder) {
		return c.giveTo(c.group) == nil
	}
	return holder == c.group
}

// giveTo makes a process group the foreground one. The kernel stops a program
// of the background that does so, unless it ignores SIGTTOU (tcsetpgrp(3)).
func (c *Console) giveTo(group int) error {
	if !signal.Ignored(unix.SIGTTOU) {
		signal.Ignore(unix.SIGTTOU)
		defer signal.Reset(unix.SIGTTOU)
	}
	return unix.IoctlSetPointerInt(int(c.terminal.Fd()), unix.TIOCSPGRP, group)
}

// lives reports whether a process group has a process.
func lives(group int) bool {
	return group > 0 && !errors.Is(unix.Kill(-group, 0), unix.ESRCH)
}

// modesOff turns off what a full-screen program turns on, as xterm's control
// sequences name it: the keyboard protocols, mouse reports, focus reports,
// bracketed paste, application keys and attributes; and shows the cursor.
const modesOff = "\x1b[<u\x1b[>4;0m" +
	"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?1004l\x1b[?2004l" +
	"\x1b[?1l\x1b>\x1b[0m\x1b[?25h"

// normalScreen leaves the alternate screen. That restores the cursor even on the
// normal screen: by xterm's rules the one that DECSC saved, so it is saved first.
// tmux restores the one of the last change to the alternate screen, however long
// ago, so that is changed to first. It has no effect on the alternate screen
// there, while another terminal may take it for one more.
func (c *Console) normalScreen() string {
	const save, enter, leave = "\x1b7", "\x1b[?1049h", "\x1b[?1049l"
	if c.multiplexed {
		return enter + leave
	}
	return save + leave
}
