//go:build freebsd || netbsd || openbsd || dragonfly

package spawn

// iutf8 is no setting of these terminals.
const iutf8 = 0
