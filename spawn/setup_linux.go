package spawn

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cage/internal/proc"
)

// setup is what has to be done between fork and exec, in the stage.
type setup struct {
	Limits      []limit
	Refusals    refusals
	Confinement Confinement
}

func (c Command) setup() setup { return setup{Limits: c.Limits.list(), Refusals: c.refusals()} }

// refusals are the system calls that the command's modes refuse it.
func (c Command) refusals() refusals {
	return refusals{
		Setsid:     c.Lifetime == LifetimeRun,
		Background: c.Terminal == Background,
		Injection:  c.Terminal == Background || c.Terminal == NewPTY,
	}
}

// startOwn starts a command that this program holds itself.
func (s Stage) startOwn(r *proc.Reaper, c Command, spec proc.Spec) (*proc.Tree, error) {
	set := c.setup()
	if !s.entered && (c.Confine != nil || !set.none()) {
		return nil, fmt.Errorf("the command is to be set up: %w", ErrNoStage)
	}
	return startTree(r, spec, set, c.Confine)
}

func (s setup) none() bool { return len(s.Limits) == 0 && s.Refusals == (refusals{}) }

// assignment is what the stage is told: how to set itself up, and what to
// become then; or which program it goes through before.
type assignment struct {
	Setup     setup
	Path      string
	Args, Env []string
	Through   []string
	// Parent is the process with which the command dies; 0 for none.
	Parent int
}

// startTree starts a command, by way of the stage where something has to be set
// up for it. The stage becomes the command: it is the same process.
func startTree(r *proc.Reaper, spec proc.Spec, set setup, confine Confine) (*proc.Tree, error) {
	if set.none() && confine == nil {
		return r.Start(spec)
	}
	tree, ours, err := startStage(r, spec)
	if err != nil {
		return nil, err
	}
	defer func() { ours.Close() }() // of the one that it is by then
	parent := 0
	if !spec.Outlives {
		parent = os.Getpid()
	}
	mayStop := keepAwake(tree.Stopped(), tree.Command())
	if confine != nil {
		set.Confinement, err = confine(Held{id: tree.Command(), through: func(prefix, env []string, patience time.Duration) ([]byte, error) {
			back, said, err := sendThrough(ours, assignment{Through: prefix, Env: env, Parent: parent}, patience)
			if back != nil {
				ours.Close()
				ours = back
			}
			return said, err
		}})
	}
	if err == nil {
		err = assign(ours, assignment{Setup: set, Path: spec.Path, Args: spec.Args, Env: spec.Env, Parent: parent})
	}
	mayStop()
	if err != nil {
		// A program that it went through may have left others.
		if killed := tree.Kill(patienceToDie); !killed.Proved {
			err = errors.Join(err, &SurvivorsError{Survivors: killed.Survivors})
		}
		return nil, err
	}
	return tree, nil
}

// startStage starts the stage as the command would be, and returns the way to talk
// to it.
func startStage(r *proc.Reaper, spec proc.Spec) (tree *proc.Tree, ours *os.File, err error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, nil, err
	}
	defer theirs.Close()
	staged := spec
	// The kernel's own link to this binary, also when its name is gone.
	staged.Path, staged.Env = "/proc/self/exe", []string{}
	staged.More = make(map[int]uintptr, len(spec.More)+1)
	talk := firstNamed
	for at, fd := range spec.More {
		staged.More[at] = fd
		talk = max(talk, at+1)
	}
	staged.More[talk] = theirs.Fd()
	staged.Args = []string{stageName, strconv.Itoa(talk)}
	if tree, err = r.Start(staged); err != nil {
		ours.Close()
		return nil, nil, ofCommand(err, spec.Path)
	}
	return tree, ours, nil
}

// keepAwake continues a process of ours whenever it is stopped, until the function
// that it returns was called: Ctrl-Z can hit a stage before it is the command,
// and whoever waits for it would wait for ever.
func keepAwake(stopped <-chan syscall.Signal, id proc.ID) (mayStop func()) {
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stopped:
				_ = id.Signal(unix.SIGCONT) // one that has ended needs none
			case <-over:
				return
			}
		}
	}()
	return func() {
		close(over)
		<-done
	}
}

// ofCommand makes the system's answer about the stage one about the command:
// the directory to start in is no other.
func ofCommand(err error, path string) error {
	var refused *fs.PathError
	if errors.As(err, &refused) {
		return &fs.PathError{Op: refused.Op, Path: path, Err: refused.Err}
	}
	return err
}

// assign tells the stage what to do and returns when it has become the command:
// its end of the talk is closed by that.
func assign(talk *os.File, a assignment) error {
	if err := gob.NewEncoder(talk).Encode(a); err != nil {
		return fmt.Errorf("telling the stage what to start: %w", talkError(err))
	}
	decoder := gob.NewDecoder(talk)
	var answer notice
	if err := decoder.Decode(&answer); err != nil {
		return fmt.Errorf("waiting for the stage: %w", talkError(err))
	}
	if answer.Event == becoming {
		answer = notice{}
		if err := decoder.Decode(&answer); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("waiting for the command: %w", err)
		}
	}
	return answer.err(a.Path)
}

// become is the whole life of the stage. It returns only where the command
// cannot run.
func become(talk string) error {
	fd, err := strconv.Atoi(talk)
	if err != nil {
		return fmt.Errorf("this is a stage that the program starts by itself: %w", err)
	}
	unix.CloseOnExec(fd)
	socket := os.NewFile(uintptr(fd), "assignment")
	var what assignment
	if err := gob.NewDecoder(socket).Decode(&what); err != nil {
		return fmt.Errorf("this is a stage that the program starts by itself: %w", err)
	}
	// What is set for a thread holds for the command if that thread becomes it.
	runtime.LockOSThread()
	if what.Through != nil {
		return goThrough(socket, what)
	}
	answers := newSender(socket)
	err = dieWith(what.Parent)
	if err == nil {
		err = what.Setup.apply()
	}
	if err != nil {
		return answers.send(refusal(err))
	}
	// That the talk ends means nothing by itself: the stage may have been killed.
	if err := answers.send(notice{Event: becoming}); err != nil {
		return err
	}
	err = syscall.Exec(what.Path, what.Args, what.Env)
	return answers.send(refusal(&fs.PathError{Op: "exec", Path: what.Path, Err: err}))
}

// dieWith has the command die with its parent. The stage was started so, but the
// kernel keeps that for each thread, and the one that becomes the command may be
// another by now (PR_SET_PDEATHSIG(2const)).
func dieWith(parent int) error {
	if parent == 0 {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("having the command die with its parent: %w", err)
	}
	if os.Getppid() != parent {
		return ErrNeverStarted // it has died before
	}
	return nil
}

func (s setup) apply() error {
	if err := s.Confinement.apply(); err != nil {
		return err
	}
	for _, l := range s.Limits {
		if err := l.apply(); err != nil {
			return err
		}
	}
	return s.Refusals.apply()
}

// limit is one of the limits of a process.
type limit struct {
	Name       string
	Resource   int
	Soft, Hard uint64
}

// list returns the limits that are to be set.
func (l Limits) list() []limit {
	var list []limit
	add := func(name string, resource int, value *uint64, graceful uint64) {
		if value != nil {
			list = append(list, limit{name, resource, *value, max(*value, *value+graceful)}) // the sum may be too large
		}
	}
	add("core", unix.RLIMIT_CORE, l.core(), 0)
	add("fsize", unix.RLIMIT_FSIZE, l.FileSize, 0)
	add("cpu", unix.RLIMIT_CPU, l.CPU, 1)
	add("nproc", unix.RLIMIT_NPROC, l.Processes, 0)
	add("nofile", unix.RLIMIT_NOFILE, l.OpenFiles, 0)
	return list
}

// core is the limit of core dumps. None is set where nothing is asked for and
// the program makes none itself, as the command will not.
func (l Limits) core() *uint64 {
	var own unix.Rlimit
	if l.Core == nil && (unix.Getrlimit(unix.RLIMIT_CORE, &own) != nil || own.Cur > 0) {
		return new(uint64)
	}
	return l.Core
}

// apply sets the limit for this process. Doing so by package syscall ends the Go
// runtime's own care of the number of open files, which it would put back at
// exec.
func (l limit) apply() error {
	if l.Resource == unix.RLIMIT_NPROC && isRoot() {
		return errors.New("the limit nproc does not bind root: run as another user")
	}
	if err := syscall.Setrlimit(l.Resource, &syscall.Rlimit{Cur: l.Soft, Max: l.Hard}); err != nil {
		return fmt.Errorf("setting the limit %s to %d: %w", l.Name, l.Soft, err)
	}
	return nil
}

// isRoot reports whether the process belongs to root, as far as it can see:
// root of a user namespace may be anybody outside it (user_namespaces(7)).
func isRoot() bool {
	if os.Getuid() != 0 {
		return false
	}
	users, err := os.ReadFile("/proc/self/uid_map")
	return err != nil || mapsRoot(string(users))
}

// mapsRoot reports whether the users of a namespace have its root be root outside.
func mapsRoot(users string) bool {
	for line := range strings.Lines(users) {
		if numbers := strings.Fields(line); len(numbers) == 3 && numbers[0] == "0" {
			return numbers[1] == "0"
		}
	}
	return true
}
