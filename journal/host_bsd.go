//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package journal

import (
	"fmt"
	"strconv"

	"cage/internal/proc"

	"golang.org/x/sys/unix"
)

// thisHost takes the time of the boot for its name, since these systems give it
// none. They have no pid namespaces that a program could tell apart.
func thisHost() (host, error) {
	self, err := proc.Self()
	if err != nil {
		return host{}, fmt.Errorf("identify this process: %w", err)
	}
	boot, err := unix.SysctlTimeval("kern.boottime")
	if err != nil {
		return host{}, fmt.Errorf("identify this boot: %w", err)
	}
	machine, _ := unix.Sysctl("kern.hostuuid") // not on every system
	return host{self: self, machine: machine, boot: strconv.FormatInt(boot.Nano(), 10)}, nil
}
