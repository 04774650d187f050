//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package proc

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrForeign is returned by Start where the program has children that are not
// its Reaper's: an end that waits for every child would wait for those too.
var ErrForeign = errors.New("the process has children that are not of the run")

var (
	errClosed = errors.New("the reaper is closed")
	errBusy   = errors.New("the reaper has a tree already")
)

// Reaper is the one place of a program that starts and waits for processes.
// There may be one at a time, and nothing beside it may wait for a child:
// neither os.Process.Wait nor os/exec. On Linux it makes the program a child
// subreaper, unless the program had children before.
//
// Only one made by NewBystander leaves room for others, of both kinds.
type Reaper struct {
	self ID
	// owns says that every child there is belongs to the Reaper, so that
	// wait4(-1) is its to call and ECHILD speaks of its tree alone.
	owns bool

	// mu makes forking and registering one step, and reaping and dispatching
	// another. While it is held no child's number can be given away, since only
	// waiting for a child frees it.
	mu       sync.Mutex
	children map[int]*Child
	tree     *Tree

	forks   chan forking
	died    chan os.Signal
	stop    chan struct{}
	closing sync.Once
	running sync.WaitGroup
}

// Spec says what to start.
type Spec struct {
	// Path is the file to execute, as it stands: no search is made.
	Path string
	// Args are the arguments, the program's own name first.
	Args []string
	// Env is the whole environment.
	Env []string
	// Dir is the directory to start in; the current one where it is empty.
	Dir string
	// Files become the descriptors 0, 1, 2 and so on; nil is the null device.
	Files []*os.File
	// More are open descriptors of this program by the numbers, above those of
	// Files, under which it gets them.
	More map[int]uintptr
	// Outlives says that it is to live on when this program dies. Without it the
	// command of a tree is killed then, where the system has a parent-death
	// signal.
	Outlives bool
	// Place is where it starts.
	Place Place
}

// Child is a process that a Reaper started.
type Child struct {
	id      ID
	reaper  *Reaper
	exited  chan Exit
	stopped chan syscall.Signal
}

// ID returns the identity of the process.
func (c *Child) ID() ID { return c.id }

// Exited delivers, once, how the process ended. Of one that somebody else has
// waited for nobody can tell: it counts as killed.
func (c *Child) Exited() <-chan Exit { return c.exited }

// Stopped delivers the signal that stopped the process, the last one where
// several have. The process may run again by then.
func (c *Child) Stopped() <-chan syscall.Signal { return c.stopped }

// Kill sends SIGKILL to the process if it has not been waited for yet.
func (c *Child) Kill() error {
	c.reaper.mu.Lock()
	defer c.reaper.mu.Unlock()
	if c.reaper.children[c.id.PID] != c {
		return ErrGone
	}
	return unix.Kill(c.id.PID, unix.SIGKILL)
}

// NewReaper takes over the children of this program. It must come before
// anything else of the program starts a process: children that it finds are
// foreign and are neither waited for nor signalled, ever.
func NewReaper() (*Reaper, error) {
	self, err := Self()
	if err != nil {
		return nil, err
	}
	foreign, err := hasForeignChildren(self)
	if err != nil {
		return nil, err
	}
	return openReaper(self, hasSubreaper && !foreign)
}

// NewBystander returns a Reaper for a program whose other children somebody
// else waits for: it leaves them alone, and the program's orphans too. Where the
// system has subreapers it starts no tree.
func NewBystander() (*Reaper, error) {
	self, err := Self()
	if err != nil {
		return nil, err
	}
	return openReaper(self, false)
}

func openReaper(self ID, owns bool) (*Reaper, error) {
	r := &Reaper{
		self:     self,
		owns:     owns,
		children: make(map[int]*Child),
		forks:    make(chan forking),
		died:     make(chan os.Signal, 1),
		stop:     make(chan struct{}),
	}
	if r.owns {
		if err := adoptOrphans(true); err != nil {
			return nil, err
		}
	}
	signal.Notify(r.died, unix.SIGCHLD)
	r.running.Go(r.fork)
	r.running.Go(r.wait)
	return r, nil
}

// Shared reports whether a tree needs a process of its own to hold it: an end
// that waits for every child of the program would wait for others too.
func (r *Reaper) Shared() bool { return hasSubreaper && !r.owns }

// Close stops forking and waiting. Of the processes that still run, the command
// and helpers die with it where the system has a parent-death signal.
func (r *Reaper) Close() error {
	r.closing.Do(func() { close(r.stop) })
	r.running.Wait()
	signal.Stop(r.died)
	if r.owns {
		return adoptOrphans(false)
	}
	return nil
}

// Start starts the command whose descendants are the tree. It is refused with
// ErrForeign where the Reaper is Shared. A Reaper has one tree at a time.
//
// The command starts with the signals ignored that were ignored for this
// program. The Go runtime keeps to that for SIGHUP, SIGINT and the terminal's
// stop signals; it has replaced any other ignored disposition before main. A
// program that wants to ignore a signal itself must receive it and drop it,
// since signal.Ignore would be inherited.
func (r *Reaper) Start(spec Spec) (*Tree, error) {
	if r.Shared() {
		return nil, ErrForeign
	}
	tree := &Tree{reaper: r, gone: make(chan struct{})}
	attr := &syscall.SysProcAttr{}
	if !spec.Outlives {
		dieWithParent(attr)
	}
	if _, err := r.start(spec, attr, tree); err != nil {
		return nil, err
	}
	return tree, nil
}

// Attend starts a process that is not of the tree: it and its descendants are
// neither listed nor ended with it. When this program dies it is continued, so
// that it can put things in order also where somebody has stopped it.
func (r *Reaper) Attend(spec Spec) (*Child, error) {
	attr := &syscall.SysProcAttr{}
	wakeWithoutParent(attr)
	return r.start(spec, attr, nil)
}

// forking asks the forking thread for a process.
type forking struct {
	spec  Spec
	attr  *syscall.SysProcAttr
	tree  *Tree
	reply chan<- forked
}

type forked struct {
	child *Child
	err   error
}

func (r *Reaper) start(spec Spec, attr *syscall.SysProcAttr, tree *Tree) (*Child, error) {
	reply := make(chan forked, 1)
	select {
	case r.forks <- forking{spec, attr, tree, reply}:
		f := <-reply
		return f.child, f.err
	case <-r.stop:
		return nil, fmt.Errorf("starting %q: %w", spec.Path, errClosed)
	}
}

// fork serves requests for processes on one thread that lives as long as the
// Reaper: the kernel sends the parent-death signal when the thread that forked
// ends, not when the program does (PR_SET_PDEATHSIG(2const)).
func (r *Reaper) fork() {
	runtime.LockOSThread()
	for {
		select {
		case f := <-r.forks:
			child, err := r.forkOne(f)
			f.reply <- forked{child, err}
		case <-r.stop:
			return
		}
	}
}

func (r *Reaper) forkOne(f forking) (*Child, error) {
	files, done, err := descriptors(f.spec)
	if err != nil {
		return nil, err
	}
	defer done()
	if len(files) > 0 {
		f.spec.Place.set(f.attr, files[0])
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.tree != nil && r.tree != nil && !r.tree.ended {
		return nil, fmt.Errorf("starting %q: %w", f.spec.Path, errBusy)
	}
	fork := func() (int, error) {
		return syscall.ForkExec(f.spec.Path, f.spec.Args, &syscall.ProcAttr{
			Dir: f.spec.Dir, Env: f.spec.Env, Files: files, Sys: f.attr,
		})
	}
	var pid int
	if f.tree != nil {
		pid, err = leavingRoom(fork)
	} else {
		pid, err = fork()
	}
	if err != nil {
		return nil, &os.PathError{Op: "exec", Path: f.spec.Path, Err: err}
	}
	id, err := identifyChild(pid)
	if err != nil {
		// Left for the reaper: with mu held the number is still the child's.
		return nil, errors.Join(fmt.Errorf("identifying %q: %w", f.spec.Path, err), unix.Kill(pid, unix.SIGKILL))
	}
	child := &Child{id: id, reaper: r, exited: make(chan Exit, 1), stopped: make(chan syscall.Signal, 1)}
	r.children[pid] = child
	if f.tree != nil {
		f.tree.command = child
		r.tree = f.tree
	}
	return child, nil
}

// descriptors returns what is to stand at each number, to be used until done is
// called.
func descriptors(spec Spec) (numbers []uintptr, done func(), err error) {
	const closed = ^uintptr(0)
	files := spec.Files
	var null *os.File
	for _, f := range files {
		if f == nil {
			if null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
				return nil, nil, err
			}
			break
		}
	}
	for _, f := range files {
		if f == nil {
			f = null
		}
		numbers = append(numbers, f.Fd())
	}
	for at, fd := range spec.More {
		for len(numbers) <= at {
			numbers = append(numbers, closed)
		}
		numbers[at] = fd
	}
	return numbers, func() {
		runtime.KeepAlive(files)
		if null != nil {
			null.Close()
		}
	}, nil
}

// waitFlags ask, without blocking, for children that have ended or stopped.
const waitFlags = syscall.WNOHANG | syscall.WUNTRACED

// wait reaps whenever a child has died or stopped. SIGCHLD says only that there is
// something to do: signals merge, so every one is answered by a full round.
func (r *Reaper) wait() {
	for {
		select {
		case <-r.died:
			r.reap()
		case <-r.stop:
			return
		}
	}
}

// reapRegistered waits, without blocking, for those of the Reaper's own
// children that have ended, and leaves any other to whoever it belongs to. Who
// waits for those may do so for every child, and take the Reaper's with them.
func (r *Reaper) reapRegistered() {
	for pid := range r.children {
		var status syscall.WaitStatus
		got, err := syscall.Wait4(pid, &status, waitFlags, nil)
		switch {
		case errors.Is(err, unix.ECHILD):
			r.dispatch(pid, syscall.WaitStatus(unix.SIGKILL))
		case err == nil && got == pid:
			r.dispatch(pid, status)
		}
	}
}

func (r *Reaper) dispatch(pid int, status syscall.WaitStatus) {
	child, ours := r.children[pid]
	if !ours {
		return
	}
	if status.Stopped() {
		child.tellStopped(status.StopSignal())
		return
	}
	delete(r.children, pid)
	child.exited <- exitOf(status)
}

// tellStopped replaces what nobody has taken yet. Only the holder of the
// reaper's mu sends.
func (c *Child) tellStopped(sig syscall.Signal) {
	select {
	case <-c.stopped:
	default:
	}
	c.stopped <- sig
}
