package proc

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Killed reports whether the process has taken SIGKILL and is on its way out.
// One that was waited for is not found any more.
func (id ID) Killed() bool {
	folder := "/proc/" + strconv.Itoa(id.PID)
	status, err := os.ReadFile(folder + "/status")
	if err != nil {
		return false
	}
	stat, err := os.ReadFile(folder + "/stat")
	if err != nil {
		return false
	}
	// Read last, the number is still this process's.
	if s, err := readStat(id.PID); err != nil || s.start != id.Start {
		return false
	}
	return pending(string(status), unix.SIGKILL) || exitSignal(stat) == unix.SIGKILL
}

// pending reports whether a signal waits to be taken.
func pending(status string, sig unix.Signal) bool {
	for line := range strings.Lines(status) {
		name, mask, _ := strings.Cut(line, ":")
		if name != "SigPnd" && name != "ShdPnd" {
			continue
		}
		if set, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64); err == nil && set&(1<<(sig-1)) != 0 {
			return true
		}
	}
	return false
}

// exitSignal returns what ended a process that has begun to end; 0 where nothing
// did or it is not ours to know.
func exitSignal(line []byte) unix.Signal {
	fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	// proc_pid_stat(5) counts exit_code as its 52nd; these begin with the third.
	const exitCode = 49
	if len(fields) <= exitCode {
		return 0
	}
	code, err := strconv.Atoi(string(fields[exitCode]))
	if err != nil {
		return 0
	}
	const signals = 0x7f
	return unix.Signal(code & signals)
}
