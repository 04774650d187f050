package proc

import (
	"bytes"
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// zombie is SZOMB of <sys/proc.h>.
const zombie = 5

// Identify returns the identity of the process that has this number now, which
// may be a zombie. It returns ErrGone where there is none.
func Identify(pid int) (ID, error) {
	info, err := lookUp(pid)
	if err != nil {
		return ID{}, err
	}
	return processOf(info).ID, nil
}

func identifyChild(pid int) (ID, error) { return Identify(pid) }

// Alive reports whether the process still runs; a zombie does not.
func (id ID) Alive() bool {
	info, err := lookUp(id.PID)
	return err == nil && info.Proc.P_stat != zombie && processOf(info).ID == id
}

func lookUp(pid int) (*unix.KinfoProc, error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	// An unknown number is answered with nothing at all, which is EIO here.
	if errors.Is(err, unix.EIO) || errors.Is(err, unix.ESRCH) {
		return nil, ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("looking up process %d: %w", pid, err)
	}
	return info, nil
}

func processOf(info *unix.KinfoProc) Process {
	start := info.Proc.P_starttime
	name, _, _ := bytes.Cut(info.Proc.P_comm[:], []byte{0})
	return Process{
		ID:     ID{PID: int(info.Proc.P_pid), Start: uint64(start.Sec)*1e6 + uint64(start.Usec)},
		Parent: int(info.Eproc.Ppid),
		Name:   string(name),
	}
}

// childrenByParent lists the processes of the system by their parents. It is
// empty where they cannot be listed.
func childrenByParent() map[int][]Process {
	all, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil
	}
	children := make(map[int][]Process)
	for i := range all {
		if all[i].Proc.P_stat != zombie {
			p := processOf(&all[i])
			children[p.Parent] = append(children[p.Parent], p)
		}
	}
	return children
}

// dieWithParent has nothing to set.
func dieWithParent(*syscall.SysProcAttr) {}

// Limits names, a sentence each, what this machine cannot hold of the
// package's promises.
func Limits() []string {
	return []string{
		"macOS has no child subreaper: a process that detached before it was listed is not found, and nothing proves that a tree is gone",
		"macOS has no pidfds: processes are signalled by number, right after their start time was compared",
		"macOS has no parent-death signal: a killed cage leaves its command running",
	}
}
