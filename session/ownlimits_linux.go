package session

import (
	"slices"
	"sync"
	"unsafe"

	"cage/watch"

	"golang.org/x/sys/unix"
)

// ownLimits are the cage's own resource limits, as it had them before the
// command could change them: prlimit(2) lets every program of the user do so.
type ownLimits struct {
	limits []ownLimit

	mu    sync.Mutex
	lacks []watch.Lack
}

type ownLimit struct {
	resource int
	name     string
	had      unix.Rlimit
}

// noteOwnLimits notes the limits that a cage cannot do its work below.
func noteOwnLimits() *ownLimits {
	var own ownLimits
	for _, l := range []ownLimit{
		{resource: unix.RLIMIT_NOFILE, name: "open files"},
		{resource: unix.RLIMIT_FSIZE, name: "the size of files"},
		{resource: unix.RLIMIT_DATA, name: "data in memory"},
		{resource: unix.RLIMIT_AS, name: "address space"},
		{resource: unix.RLIMIT_STACK, name: "stacks"},
		{resource: unix.RLIMIT_NPROC, name: "processes"},
		{resource: unix.RLIMIT_CPU, name: "processor time"},
	} {
		if unix.Getrlimit(l.resource, &l.had) == nil {
			own.limits = append(own.limits, l)
		}
	}
	return &own
}

// putBack gives the cage the limits again that somebody lowered, and says what
// was lowered so far. It may be called from several goroutines.
func (own *ownLimits) putBack() []watch.Lack {
	own.mu.Lock()
	defer own.mu.Unlock()
	for _, l := range own.limits {
		var now unix.Rlimit
		if unix.Getrlimit(l.resource, &now) != nil || now.Cur >= l.least() && now.Max >= l.had.Max {
			continue
		}
		lack := l.putBack(now)
		if !slices.Contains(own.lacks, lack) {
			own.lacks = append(own.lacks, lack)
		}
	}
	return slices.Clone(own.lacks)
}

// putBack raises one limit to what it was, as far as that goes: a hard limit
// that was lowered only a privileged program can raise (setrlimit(2)).
func (l ownLimit) putBack(now unix.Rlimit) watch.Lack {
	if setOwnLimit(l.resource, l.had) == nil {
		return watch.Lack{Reason: "somebody lowered the cage's own limit of " + l.name + ", which was put back"}
	}
	if soft := min(l.had.Cur, now.Max); now.Cur < soft {
		_ = setOwnLimit(l.resource, unix.Rlimit{Cur: soft, Max: now.Max}) // what is lacking is said in any case
	}
	// Without the number: whoever lowers it again and again would be told of each time.
	return watch.Lack{Reason: "somebody lowered the cage's own hard limit of " + l.name + " for good"}
}

// least is what no soft limit of the cage is below. Whoever starts a command
// lowers that of processes for a moment, by a quarter at most.
func (l ownLimit) least() uint64 {
	if l.resource == unix.RLIMIT_NPROC {
		return l.had.Cur - l.had.Cur/4
	}
	return l.had.Cur
}

// setOwnLimit is setrlimit(2) without what package syscall does besides: it
// would no longer start programs with the soft limit of open files that the
// cage itself was started with, and that Go raises for the cage.
func setOwnLimit(resource int, limit unix.Rlimit) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_PRLIMIT64, 0, uintptr(resource), uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
