//go:build netbsd || openbsd || dragonfly

package proc

import "syscall"

// dieWithParent has nothing to set.
func dieWithParent(*syscall.SysProcAttr) {}

func deathLimits() []string {
	return []string{"this system has no parent-death signal: a killed cage leaves its command running"}
}
