//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package proc

import "syscall"

// Place says where among sessions and process groups a process starts, and so
// which terminal is its own.
type Place uint8

const (
	// Beside is in the session and process group of this program.
	Beside Place = iota
	// OwnGroup is in a process group of its own, in the background of this
	// program's terminal.
	OwnGroup
	// ForegroundGroup is in a process group of its own, to which this program's
	// controlling terminal is given, its own first file.
	ForegroundGroup
	// OwnSession is in a session of its own without a terminal.
	OwnSession
	// TerminalSession is in a session of its own whose controlling terminal is
	// its first file.
	TerminalSession
)

// set makes a process start there that gets stdin, an open descriptor of this
// program, as its first file.
func (p Place) set(attr *syscall.SysProcAttr, stdin uintptr) {
	switch p {
	case OwnGroup:
		attr.Setpgid = true
	case ForegroundGroup:
		attr.Foreground, attr.Ctty = true, int(stdin)
	case OwnSession:
		attr.Setsid = true
	case TerminalSession:
		attr.Setsid, attr.Setctty = true, true // Ctty 0 is a number of its own
	}
}
