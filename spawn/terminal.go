package spawn

import (
	"slices"

	"cage/internal/proc"
)

// Terminal says which terminal a command gets.
type Terminal uint8

const (
	// NoTerminal starts it in a session of its own without a controlling
	// terminal: /dev/tty does not open. It is the zero value. A standard stream
	// that is a terminal stays one, without job control.
	NoTerminal Terminal = iota
	// Foreground leaves it in the caller's session and process group, in charge
	// of the caller's terminal. What it types there the caller's shell may read
	// (TIOCSTI, TIOCLINUX), where the kernel allows that.
	Foreground
	// Background leaves it in the caller's session, in a process group of its
	// own: like a shell's background job it may write to the terminal and is
	// stopped by SIGTTIN when it reads. What leads out of the background is
	// refused, but a session of its own only by LifetimeRun.
	Background
	// NewPTY gives it a pseudo-terminal of its own for standard streams and
	// controlling terminal, in a session of its own.
	NewPTY
)

// String returns the name by which a user asks for the terminal.
func (t Terminal) String() string { return terminalNames[t] }

// terminalNames are by terminal.
var terminalNames = []string{"none", "foreground", "inherit", "pty"}

// ParseTerminal returns the terminal of a name.
func ParseTerminal(name string) (Terminal, bool) {
	i := slices.Index(terminalNames, name)
	return Terminal(max(i, 0)), i >= 0
}

// place is where a command with the terminal starts that has no keeper.
func (t Terminal) place() proc.Place {
	switch t {
	case Foreground:
		return proc.Beside
	case Background:
		return proc.OwnGroup
	case NewPTY:
		return proc.TerminalSession
	default:
		return proc.OwnSession
	}
}
