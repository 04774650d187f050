package proc

import "syscall"

// dieWithParent has a process killed when this one ends.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

func deathLimits() []string { return nil }
