// Package demo holds the three POSIX shell scripts that `cage demo` plays: one
// makes a throw-away repository, two are agents that tamper with it. They run
// with sh, coreutils and git alone, refuse to run anywhere else than in that
// repository, and end on their own whether a cage is there or not. What they
// expect and say is described at the top of each. The package runs nothing.
package demo

import _ "embed"

// Setup fills the empty current directory with the throw-away repository.
//
//go:embed setup.sh
var Setup string

// Rogue tampers with everything once. It exits 0 if all of it was undone and
// its honest work was left alone, else 1.
//
//go:embed rogue.sh
var Rogue string

// Fighter tampers with one file until it is halted; left alone, it exits 1.
//
//go:embed fighter.sh
var Fighter string
