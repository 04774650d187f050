package spawn

import (
	"fmt"
	"math"
	"runtime"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// refusals are the system calls that fail with EPERM in a command and in
// everything that descends from it.
type refusals struct {
	// Setsid keeps every process in the session of the command.
	Setsid bool
	// Background keeps every process in its process group, and that in the
	// background of its terminal: setpgid, and the ioctls TIOCSPGRP, which makes
	// a group the foreground, and TIOCNOTTY, without which the kernel stops a
	// process that reads. Who ignores SIGTTOU may use both.
	Background bool
	// Injection is the ioctls that type into a terminal for its user: TIOCSTI
	// and TIOCLINUX.
	Injection bool
}

// requests are those of ioctl that are refused.
func (r refusals) requests() []uint32 {
	var requests []uint32
	if r.Background {
		requests = append(requests, unix.TIOCSPGRP, unix.TIOCNOTTY)
	}
	if r.Injection {
		requests = append(requests, unix.TIOCSTI, unix.TIOCLINUX)
	}
	return requests
}

// abi is one way into the kernel, with the numbers that calls have there.
type abi struct {
	arch uint32
	// number is the mask of what counts of a call's number.
	number          uint32
	setsid, setpgid uint32
	ioctl           []uint32
}

// x32Bit marks a call of the x32 ABI, which shares its architecture with amd64:
// without it the numbers are the same, but for those from 512 on.
const x32Bit = 1 << 30

// abis are those of the machines that a filter can be built for, 32-bit programs
// included: on any of them the kernel takes the calls of every ABI of its family
// (arch/*/entry/syscalls/*.tbl, arch/arm/tools/syscall.tbl). All are
// little-endian, and have the same numbers for the ioctls of a terminal.
func abis() []abi {
	return []abi{
		{unix.AUDIT_ARCH_X86_64, math.MaxUint32 &^ x32Bit, 112, 109, []uint32{16, 514}},
		{unix.AUDIT_ARCH_AARCH64, math.MaxUint32, 157, 154, []uint32{29}},
		{unix.AUDIT_ARCH_I386, math.MaxUint32, 66, 57, []uint32{54}},
		{unix.AUDIT_ARCH_ARM, math.MaxUint32, 66, 57, []uint32{54}},
	}
}

// Where seccomp_data has what a filter looks at, in bytes, and the size of a
// word (seccomp(2)).
const (
	numberAt = 0
	archAt   = 4
	// requestAt is the lower half of a call's second argument: the kernel takes
	// no more of an ioctl's request.
	requestAt = 24
	word      = 4
)

// program returns the filter. A call is judged by the ABI that it comes by: a
// number means another call in each.
func (r refusals) program() []bpf.Instruction {
	filter := []bpf.Instruction{bpf.LoadAbsolute{Off: archAt, Size: word}}
	for _, abi := range abis() {
		filter = append(filter, where(abi.arch, r.judge(abi)...)...)
	}
	// No kernel has this ABI today. What its calls do is not known, and with all
	// of them refused a program could not even end.
	return append(filter, bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS})
}

// judge is the filter for the calls of one ABI.
func (r refusals) judge(abi abi) []bpf.Instruction {
	filter := []bpf.Instruction{
		bpf.LoadAbsolute{Off: numberAt, Size: word},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: abi.number},
	}
	refuse := bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)}
	allow := bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	if r.Setsid {
		filter = append(filter, where(abi.setsid, refuse)...)
	}
	if r.Background {
		filter = append(filter, where(abi.setpgid, refuse)...)
	}
	if requests := r.requests(); len(requests) > 0 {
		request := []bpf.Instruction{bpf.LoadAbsolute{Off: requestAt, Size: word}}
		for _, refused := range requests {
			request = append(request, where(refused, refuse)...)
		}
		request = append(request, allow)
		for _, number := range abi.ioctl {
			filter = append(filter, where(number, request...)...)
		}
	}
	return append(filter, allow)
}

// where does something, which ends the judgement, if the word that was loaded
// last has that value.
func where(value uint32, do ...bpf.Instruction) []bpf.Instruction {
	return append([]bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: value, SkipTrue: uint8(len(do))}}, do...)
}

// apply installs the filter for the calling thread and what it becomes. The
// caller holds on to the thread: execve keeps the filter of the thread that
// calls it, and ends all others.
func (r refusals) apply() error {
	if r == (refusals{}) {
		return nil
	}
	err := knownMachine()
	if err == nil {
		err = install(r.program())
	}
	if err != nil {
		return fmt.Errorf("this system cannot filter system calls (seccomp), which is to keep %s: %w; %s", r.what(), err, r.wayRound())
	}
	return nil
}

// knownMachine refuses machines whose ABIs are none of those in abis.
func knownMachine() error {
	switch runtime.GOARCH {
	case "amd64", "386", "arm64", "arm":
		return nil
	default:
		return fmt.Errorf("the numbers of system calls on %s are not known", runtime.GOARCH)
	}
}

// install has the calling thread, and what it becomes, judged by a filter.
func install(program []bpf.Instruction) error {
	raw, err := bpf.Assemble(program)
	if err != nil {
		return err
	}
	filter := make([]unix.SockFilter, len(raw))
	for i, in := range raw {
		filter[i] = unix.SockFilter{Code: in.Op, Jt: in.Jt, Jf: in.Jf, K: in.K}
	}
	// The kernel asks an ordinary user for it; root has it too, so that a command
	// finds the same whoever runs it.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	fprog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	// Before Linux 5.16 a filter without the flag slows its process down as if
	// it ran code that must not guess what others hold in memory.
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP,
		unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW, uintptr(unsafe.Pointer(&fprog)))
	if errno != 0 {
		return errno
	}
	return nil
}

// what says, for an error, what the filter is for.
func (r refusals) what() string {
	if r.Setsid {
		return "the run in one session"
	}
	return "the run from typing into the terminal"
}

// wayRound says how the command can run without the filter.
func (r refusals) wayRound() string {
	if r.Injection || r.Background {
		return "run it with the lifetime tree and the terminal foreground or none"
	}
	return "run it with the lifetime tree"
}
