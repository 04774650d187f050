//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

// Package proc refuses to be built here: it knows the processes of Linux, macOS
// and the BSDs only.
package proc

var _ = the_cage_runs_on_Linux_macOS_and_the_BSDs_only
