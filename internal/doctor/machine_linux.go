package doctor

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"cage/report"
	"cage/spawn"
)

// onMachine says what the kernel lets a session enforce.
func onMachine(stage spawn.Stage) []report.Finding {
	found := []report.Finding{onProcesses(), onFilters(stage), onTyping()}
	found = append(found, onTerminals(stage)...)
	found = append(found, onNamespaces())
	if os.Geteuid() == 0 && try(stage, spawn.Command{Terminal: spawn.Foreground, Lifetime: spawn.LifetimeTree, Limits: ownProcessLimit()}) != nil {
		found = append(found, note("limits", "--rlimit nproc binds nobody: this is root"))
	}
	return found
}

// try starts a command that does nothing as a session would, and returns why it
// does not run.
func try(stage spawn.Stage, c spawn.Command) error {
	run, err := stage.Open(idle(c))
	var refused *spawn.StartError
	if errors.As(err, &refused) {
		return errors.New(refused.Reason)
	}
	if err != nil {
		return err
	}
	if pty := run.PTY(); pty != nil {
		defer pty.Close()
	}
	return run.Close()
}

// ownProcessLimit is a limit that anybody may set.
func ownProcessLimit() spawn.Limits {
	var own unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NPROC, &own) != nil {
		return spawn.Limits{}
	}
	return spawn.Limits{Processes: &own.Cur}
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

func onFilters(stage spawn.Stage) report.Finding {
	if err := try(stage, spawn.Command{Terminal: spawn.Foreground, Lifetime: spawn.LifetimeRun}); err != nil {
		return note("limits", "--lifetime run refuses to start: "+err.Error())
	}
	return ok("limits", "system calls can be refused to a command (seccomp filters), which --lifetime run, --tty inherit and --tty pty do; sudo and other setuid programs get no rights there")
}

// onTerminals says which terminals a command can have other than its caller's.
func onTerminals(stage spawn.Stage) []report.Finding {
	var found []report.Finding
	for _, terminal := range []spawn.Terminal{spawn.Background, spawn.NoTerminal, spawn.NewPTY} {
		if err := try(stage, spawn.Command{Terminal: terminal, Lifetime: spawn.LifetimeTree}); err != nil {
			found = append(found, note("terminal", fmt.Sprintf("--tty %s refuses to start: %v", terminal, err)))
		}
	}
	if len(found) == 0 {
		found = append(found, ok("terminal", "a command can have another than yours (--tty inherit, none and pty)"))
	}
	return found
}

// onTyping says whether a command can type for the user.
func onTyping() report.Finding {
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
	for _, first := range []string{firstPIDNamespace, firstUserNamespace} {
		name, _, _ := strings.Cut(first, ":")
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
