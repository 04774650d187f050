package spawn

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cage/internal/proc"
)

// keeper is the hidden stage: it starts the command, is the parent of every
// orphan of the run, and ends when nothing is left of it.
type keeper struct {
	tree    *proc.Tree
	notices *sender
	working sync.WaitGroup
	// outlived says that the run is left alone when the orders have ended.
	outlived bool
	// hungUp tells that the terminal is gone of whose session the keeper is the
	// leader.
	hungUp chan os.Signal
}

// lastPatience is how long a keeper without orders tries to end what refuses to
// die.
const lastPatience = 10 * time.Second

// keep is the whole life of a keeper process. It returns when nothing is left
// of the run, or it is to leave the rest. Where its orders have ended, because
// whoever gave them is gone, it ends the run first and removes what that had for
// itself, unless the run is to outlive its program.
func keep(orders string) error {
	fd, err := strconv.Atoi(orders)
	if err != nil {
		return fmt.Errorf("this is a stage that the program starts by itself: %w", err)
	}
	// The command must not be able to give orders.
	unix.CloseOnExec(fd)
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("shielding the keeper from its command: %w", err)
	}
	if err := shrugOffSignals(); err != nil {
		return err
	}
	socket := os.NewFile(uintptr(fd), "orders")
	decoder := gob.NewDecoder(socket)
	var what request
	if err := decoder.Decode(&what); err != nil {
		return fmt.Errorf("this is a stage that the program starts by itself: %w", err)
	}
	if err := closeInherited(append(what.Descriptors, fd)); err != nil {
		return err
	}
	k := keeper{notices: newSender(socket), outlived: what.Outlives, hungUp: make(chan os.Signal, 1)}
	if what.Place == proc.ForegroundGroup && !signal.Ignored(unix.SIGHUP) {
		signal.Notify(k.hungUp, unix.SIGHUP)
	}
	if err := k.start(what, decoder); err != nil {
		// Fails where its program is gone, or refused itself and does not listen.
		_ = k.notices.send(refusal(err))
		return what.Temp.remove()
	}
	err = letGo(what.Descriptors)
	if err == nil {
		err = k.hold(decoder)
	}
	if err != nil && !k.outlived {
		k.tree.Kill(lastPatience)
		err = errors.Join(err, what.Temp.remove())
	}
	return err
}

// letGo gives up the open files of the command, which has its own by now. Held
// here, a pipe that all its users have closed would not end before the run does.
func letGo(descriptors []int) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	for stream := range firstNamed {
		if err := unix.Dup3(int(null.Fd()), stream, 0); err != nil {
			return fmt.Errorf("letting the standard streams go: %w", err)
		}
	}
	for _, fd := range descriptors {
		unix.Close(fd)
	}
	return nil
}

// hold tells of the run and takes orders until nothing is left of it.
func (k *keeper) hold(decoder *gob.Decoder) error {
	if err := k.notices.send(notice{Event: started, Command: k.tree.Command()}); err != nil {
		return err
	}
	orders := make(chan order)
	go func() {
		defer close(orders)
		for {
			var o order
			if decoder.Decode(&o) != nil {
				return
			}
			orders <- o
		}
	}()
	return k.serve(orders)
}

func (k *keeper) start(what request, decoder *gob.Decoder) error {
	reaper, err := proc.NewReaper()
	if err != nil {
		return err
	}
	var confine Confine
	if what.Confined {
		confine = k.confineFrom(decoder)
	}
	k.tree, err = startTree(reaper, proc.Spec{
		Path: what.Path, Args: what.Args, Env: what.Env, Dir: what.Dir,
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		More:  named(what.Descriptors),

		Place: what.Place, Outlives: what.Outlives,
	}, what.Setup, confine)
	return err
}

// refusal keeps what startError needs to explain an error.
func refusal(err error) notice {
	var errno syscall.Errno
	var path *fs.PathError
	if errors.As(err, &path) && errors.As(err, &errno) {
		return notice{Event: refused, Errno: errno}
	}
	return notice{
		Event: refused, Error: err.Error(),
		Unproved: errors.Is(err, ErrUnproved), NeverStarted: errors.Is(err, ErrNeverStarted),
	}
}

func (k *keeper) serve(orders <-chan order) error {
	died := k.tree.Exited()
	for {
		select {
		case o, open := <-orders:
			if !open {
				return errors.New("its orders have ended before its command")
			}
			if o.Verb == leave {
				return k.leave(o, died)
			}
			k.working.Go(func() { k.obey(o) })
		case sig := <-k.tree.Stopped():
			if err := k.notices.send(notice{Event: stopped, Signal: sig}); err != nil {
				return err
			}
		case <-k.hungUp:
			k.hangUp()
		case exit := <-died:
			if err := k.notices.send(notice{Event: exited, Exit: exit}); err != nil {
				return err
			}
			died = nil
		case <-k.tree.Gone():
			return k.finish(died)
		}
	}
}

// leave tells what is left and ends: only what is gone can be proved to be.
func (k *keeper) leave(o order, died <-chan proc.Exit) error {
	k.obey(o)
	select {
	case <-k.tree.Gone():
		return k.finish(died)
	default:
		k.working.Wait()
		return nil
	}
}

// hangUp tells the processes of its session that the terminal is gone: of a
// terminal that hangs up the kernel tells the leader alone.
func (k *keeper) hangUp() {
	processes, err := k.tree.Processes()
	own, sidErr := unix.Getsid(0)
	if err != nil || sidErr != nil {
		return // they see that it is gone when they use it
	}
	for _, p := range processes {
		if of, err := unix.Getsid(p.PID); err == nil && of == own {
			_ = p.Signal(unix.SIGHUP) // one that has ended needs none
			_ = p.Continue()
		}
	}
}

// finish says the last things. The exit was delivered before the end of the
// tree, though maybe not taken.
func (k *keeper) finish(died <-chan proc.Exit) error {
	if died != nil {
		if err := k.notices.send(notice{Event: exited, Exit: <-died}); err != nil {
			return err
		}
	}
	if err := k.notices.send(notice{Event: gone}); err != nil {
		return err
	}
	k.working.Wait()
	return nil
}

// workingPeriod is how often a keeper says that it is at work.
const workingPeriod = time.Second

// obey does what was ordered, and says so at the end and from time to time.
func (k *keeper) obey(o order) {
	done := make(chan struct{})
	defer close(done)
	go k.sayWorking(done)
	answer := notice{Event: answered, Number: o.Number}
	switch o.Verb {
	case list:
		answer.list(k.tree.Processes())
	case leave:
		answer.list(k.tree.Leave())
	case terminate:
		answer.Count = k.tree.Terminate()
	case kill:
		answer.Killed = k.tree.Kill(o.Patience)
	}
	// Fails when whoever gave the order is gone, which ends serve as well.
	_ = k.notices.send(answer)
}

func (k *keeper) sayWorking(done <-chan struct{}) {
	tick := time.NewTicker(workingPeriod)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = k.notices.send(notice{Event: working}) // fails as the answer will
		case <-done:
			return
		}
	}
}

// list fills in what was listed.
func (n *notice) list(processes []proc.Process, err error) {
	n.Processes = processes
	if err != nil {
		n.Error = err.Error()
	}
}

// shrugOffSignals lets the signals pass by that a terminal or a person sends
// to the whole process group: they are for the command and for whoever gives
// the orders. They are received and dropped, not ignored, because the command
// would inherit that. Those that were ignored from the start stay so: to
// receive them would end it for the command too.
func shrugOffSignals() error {
	ignored, err := ignoredSignals()
	if err != nil {
		return err
	}
	dropped := make(chan os.Signal, 1)
	for _, sig := range []unix.Signal{
		unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGPIPE, unix.SIGALRM, unix.SIGUSR1, unix.SIGUSR2,
		unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU,
	} {
		if ignored&(1<<(sig-1)) == 0 {
			signal.Notify(dropped, sig)
		}
	}
	return nil
}

// ignoredSignals returns the mask of the signals that this process ignores.
func ignoredSignals() (uint64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("reading the ignored signals: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		if hex, found := strings.CutPrefix(line, "SigIgn:"); found {
			return strconv.ParseUint(strings.TrimSpace(hex), 16, 64)
		}
	}
	return 0, errors.New("reading the ignored signals: /proc/self/status does not tell")
}
