package journal

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"cage/internal/proc"
)

func thisHost() (host, error) {
	self, err := proc.Self()
	if err != nil {
		return host{}, fmt.Errorf("identify this process: %w", err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return host{}, fmt.Errorf("identify this boot: %w", err)
	}
	namespace, err := os.Stat("/proc/self/ns/pid")
	if err != nil {
		return host{}, fmt.Errorf("identify the pid namespace: %w", err)
	}
	// Containers and minimal systems have no machine id; then they are not told
	// apart.
	machine, err := os.ReadFile("/etc/machine-id")
	if err != nil && !os.IsNotExist(err) {
		return host{}, fmt.Errorf("identify this machine: %w", err)
	}
	return host{
		self: self, machine: strings.TrimSpace(string(machine)), boot: strings.TrimSpace(string(boot)),
		pids: namespace.Sys().(*syscall.Stat_t).Ino,
	}, nil
}
