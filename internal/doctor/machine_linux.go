package doctor

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"cage/report"
)

// onMachine says what the kernel lets a session enforce.
func onMachine() []report.Finding {
	found := []report.Finding{onProcesses(), onFilters(), onTerminal(), onPseudoTerminals(), onNamespaces()}
	if os.Geteuid() == 0 {
		found = append(found, note("limits", "--rlimit nproc binds nobody: this is root"))
	}
	return found
}

func onProcesses() report.Finding {
	const kernel = "use Linux 5.6 or later, or a container that allows this system call"
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return degraded("processes", "no pidfds ("+err.Error()+"): a process number that was given away again could be hit", kernel)
	}
	unix.Close(fd)
	return ok("processes", "what a command starts is found and ended, wherever it goes (child subreaper, pidfds)")
}

// onFilters asks for a filter at an address that is none: a kernel that has
// filters complains of the address (prctl(2), PR_SET_SECCOMP).
func onFilters() report.Finding {
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, 0, 0, 0)
	if errors.Is(err, unix.EFAULT) || errors.Is(err, unix.EACCES) {
		return ok("limits", "system calls can be refused to a command (seccomp filters), which "+filtered+" do; sudo and other setuid programs get no rights there")
	}
	return note("limits", fmt.Sprintf("system calls cannot be refused to a command (seccomp filters: %v): %s refuse to start", err, filtered))
}

// filtered are the modes of a session that take a filter of system calls.
const filtered = "--lifetime run, --tty inherit and --tty pty"

func onPseudoTerminals() report.Finding {
	controller, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return note("terminal", "no pseudo-terminals ("+err.Error()+"): --tty pty refuses to start")
	}
	controller.Close()
	return ok("terminal", "pseudo-terminals can be had, for --tty pty")
}

func onTerminal() report.Finding {
	switch setting("/proc/sys/dev/tty/legacy_tiocsti") {
	case "0":
		return ok("terminal", "a command cannot type into your terminal (dev.tty.legacy_tiocsti is 0)")
	case "1":
		f := note("terminal", "a command can type into your terminal (dev.tty.legacy_tiocsti is 1)")
		f.Fix = "sysctl -w dev.tty.legacy_tiocsti=0, or run with --tty pty"
		return f
	default:
		return note("terminal", "a command can type into your terminal: this kernel (before Linux 6.2) has no setting against it; not with --tty pty or inherit")
	}
}

// The inodes of the namespaces that the kernel starts with (proc_ns.h in
// Linux); they are part of its interface.
const (
	firstPIDNamespace  = "pid:[4026531836]"
	firstUserNamespace = "user:[4026531837]"
)

func onNamespaces() report.Finding {
	var own []string
	for name, first := range map[string]string{"pid": firstPIDNamespace, "user": firstUserNamespace} {
		if link, err := os.Readlink("/proc/self/ns/" + name); err == nil && link != first {
			own = append(own, name)
		}
	}
	if len(own) == 0 {
		return ok("namespaces", "the machine's own")
	}
	return note("namespaces", "a container's ("+strings.Join(own, " and ")+"): an interrupted session is recovered only from inside the same one")
}

// setting reads one of the kernel's settings; empty where there is none.
func setting(name string) string {
	text, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
