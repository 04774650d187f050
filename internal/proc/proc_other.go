//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package proc

// The package refuses to be built here: it knows the processes of Linux, macOS
// and the BSDs only.
var _ = the_cage_runs_on_Linux_macOS_and_the_BSDs_only
