//go:build netbsd || openbsd || dragonfly

package proc

import "syscall"

func commandAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

func helperAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func deathLimits() []string {
	return []string{"this system has no parent-death signal: a killed cage leaves its command running"}
}
