package journal

import "cage/internal/proc"

// host is this process on this machine: what a recorded pid means.
type host struct {
	self    proc.ID
	machine string
	boot    string
	pids    uint64
}

func (h host) record() hostRecord { return hostRecord{Machine: h.machine, Boot: h.boot, PIDs: h.pids} }
