package spawn

import (
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cage/internal/proc"
	"cage/internal/tempdir"
)

// answerPatience is how long a keeper that was given an order may be silent, beyond
// the time that the order itself gives.
const answerPatience = 10 * time.Second

var errKeeperLost = errors.New("the run's keeper is gone")

// kept is a tree that a keeper holds.
type kept struct {
	keeper  *proc.Child
	command proc.ID
	stopped chan syscall.Signal
	exited  chan proc.Exit
	// gone is closed when nothing is left of the run, the keeper included.
	gone chan struct{}
	// lost is closed when the keeper has ended, after gone if it ended by itself.
	lost chan struct{}
	// orphans are what a keeper left that was killed, where they come to this
	// program; nil elsewhere, and before lost is closed.
	orphans *proc.Tree

	// leaving says that the keeper was told to go.
	leaving atomic.Bool

	orders *sender

	mu sync.Mutex
	// heard is when the keeper last said anything.
	heard   time.Time
	number  uint64
	waiting map[uint64]chan<- notice
}

// startKept starts a command by way of a keeper.
func (s Stage) startKept(r *proc.Reaper, c Command, spec proc.Spec, temp *tempdir.Dir) (*Run, error) {
	if !s.entered {
		return nil, fmt.Errorf("a run beside other children or on a new pseudo-terminal needs a keeper: %w", ErrNoStage)
	}
	keeperPlace := proc.Beside
	if c.Terminal == NewPTY {
		// The keeper leads the session. A command that led it would have no parent
		// there, and the kernel does not stop at Ctrl-Z what nobody of its session
		// could continue.
		keeperPlace, spec.Place = proc.TerminalSession, proc.ForegroundGroup
	}
	process, ours, err := startKeeper(r, c, spec.Files, keeperPlace)
	if err != nil {
		return nil, err
	}
	k := newKept(process, ours)
	decoder := gob.NewDecoder(ours)
	// A keeper is of use only while it runs, and its command can stop it, having
	// the same user.
	mayStop := keepAwake(process.Stopped(), process.ID())
	mayRun, err := k.begin(decoder, c.Confine, request{
		Path: spec.Path, Args: spec.Args, Env: spec.Env, Dir: spec.Dir, Place: spec.Place, Descriptors: c.Descriptors, Setup: c.setup(),
		Confined: c.Confine != nil, Outlives: spec.Outlives, Temp: tempOf(temp),
	})
	if err != nil {
		// Without its orders the keeper ends.
		ours.Close()
		exit := <-process.Exited()
		mayStop()
		if !mayRun || exit.Signal == 0 {
			return nil, c.startError(spec, err)
		}
		k.dieWithKeeper()
		go k.settle(r, false)
	} else {
		go k.attend(r, ours, decoder, mayStop)
	}
	return &Run{Tree: k, mechanism: Keeper, lost: k.lost}, nil
}

// startKeeper starts a keeper that has the command's streams and descriptors, and
// returns the way to talk to it.
func startKeeper(r *proc.Reaper, c Command, streams []*os.File, place proc.Place) (process *proc.Child, ours *os.File, err error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, nil, err
	}
	defer theirs.Close()
	orders := freeDescriptor(c.Descriptors)
	more := named(c.Descriptors)
	more[orders] = theirs.Fd()
	process, err = r.Attend(proc.Spec{
		// The kernel's own link to this binary, also when its name is gone.
		Path:  "/proc/self/exe",
		Args:  []string{proc.KeeperName, strconv.Itoa(orders)},
		Env:   os.Environ(),
		Files: streams,
		More:  more,
		Place: place,
	})
	if err == nil {
		return process, ours, nil
	}
	ours.Close()
	switch {
	case place == proc.TerminalSession && errors.Is(err, unix.EPERM):
		err = &StartError{Name: c.Path, Reason: placeRefused, Err: err}
	case errors.Is(err, unix.EBADF):
		err = &StartError{Name: c.Path, Reason: descriptorsTooHigh, Err: err}
	default:
		err = fmt.Errorf("starting the keeper: %w", err)
	}
	return nil, nil, err
}

func newKept(process *proc.Child, ours *os.File) *kept {
	return &kept{
		keeper:  process,
		stopped: make(chan syscall.Signal, 1),
		exited:  make(chan proc.Exit, 1),
		gone:    make(chan struct{}),
		lost:    make(chan struct{}),
		orders:  newSender(ours),
		waiting: make(map[uint64]chan<- notice),
	}
}

// attend hears the keeper to its end, and sees to what one leaves that was killed.
func (k *kept) attend(r *proc.Reaper, ours *os.File, decoder *gob.Decoder, mayStop func()) {
	ended := k.listen(decoder)
	ours.Close()
	<-k.keeper.Exited()
	mayStop()
	k.settle(r, ended)
}

// settle comes when the keeper is gone, and says whether the run was by then.
func (k *kept) settle(r *proc.Reaper, ended bool) {
	if !ended && !k.leaving.Load() {
		k.orphans, _ = r.Orphans() // fails where they have gone elsewhere
	}
	if ended {
		close(k.gone)
	}
	close(k.lost)
	if k.orphans != nil {
		<-k.orphans.Gone()
		close(k.gone)
	}
}

// begin asks for the command, confines it and waits until it runs. Where it fails,
// mayRun says that the keeper said nothing more when the command may have run.
func (k *kept) begin(decoder *gob.Decoder, confine Confine, what request) (mayRun bool, err error) {
	if err := k.orders.send(what); err != nil {
		return false, fmt.Errorf("asking the keeper for the command: %w", err)
	}
	first, err := hear(decoder)
	if err == nil && first.Event == holding {
		k.command = first.Command
		if err := k.answer(decoder, first.Command, confine); err != nil {
			return false, err
		}
		first, err = hear(decoder)
	}
	if err != nil {
		return true, err
	}
	if first.Event == started {
		k.command = first.Command
		return true, nil
	}
	if err = first.err(what.Path); first.Errno == 0 && !first.NeverStarted {
		err = fmt.Errorf("the keeper refuses: %w", err)
	}
	return false, err
}

func hear(decoder *gob.Decoder) (notice, error) {
	var n notice
	if err := decoder.Decode(&n); err != nil {
		return n, fmt.Errorf("waiting for the keeper: %w", err)
	}
	return n, nil
}

// listen takes what the keeper says until it says nothing more, and reports
// whether the run was gone by then.
func (k *kept) listen(decoder *gob.Decoder) (ended bool) {
	running := true
	for {
		var n notice
		if decoder.Decode(&n) != nil {
			break
		}
		k.mu.Lock()
		k.heard = time.Now()
		k.mu.Unlock()
		switch n.Event {
		case stopped:
			k.tellStopped(n.Signal)
		case exited:
			running = false
			k.exited <- n.Exit
		case gone:
			ended = true
		case answered:
			k.deliver(n)
		}
	}
	if running && !k.leaving.Load() {
		k.dieWithKeeper()
	}
	return ended
}

// dieWithKeeper ends a command that nobody holds any more. Most die with their
// keeper by themselves.
func (k *kept) dieWithKeeper() {
	_ = k.command.Signal(unix.SIGKILL)
	k.exited <- proc.Exit{Signal: unix.SIGKILL}
}

// tellStopped replaces what nobody has taken yet.
func (k *kept) tellStopped(sig syscall.Signal) {
	select {
	case <-k.stopped:
	default:
	}
	k.stopped <- sig
}

func (k *kept) deliver(n notice) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if reply, asked := k.waiting[n.Number]; asked {
		delete(k.waiting, n.Number)
		reply <- n
	}
}

// ask gives an order and waits for the answer.
func (k *kept) ask(o order) (notice, error) {
	reply := make(chan notice, 1)
	k.mu.Lock()
	k.number++
	o.Number = k.number
	k.waiting[o.Number] = reply
	k.mu.Unlock()
	if k.orders.send(o) != nil {
		// Nobody reads it any more. What was said before is still heard.
		<-k.lost
		return notice{}, errKeeperLost
	}
	silence := o.Patience + answerPatience
	stuck := time.NewTimer(silence)
	defer stuck.Stop()
	for {
		select {
		case n := <-reply:
			return n, nil
		case <-stuck.C:
			if left := silence - k.silentFor(); left > 0 {
				stuck.Reset(left)
			} else {
				// Somebody keeps it from its work. Without it the command dies.
				_ = k.keeper.Kill()
			}
		case <-k.lost:
			// The answer may have been its last word.
			select {
			case n := <-reply:
				return n, nil
			default:
				return notice{}, errKeeperLost
			}
		}
	}
}

// silentFor returns how long the keeper has said nothing.
func (k *kept) silentFor() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Since(k.heard)
}

func (k *kept) Command() proc.ID { return k.command }

func (k *kept) Exited() <-chan proc.Exit { return k.exited }

func (k *kept) Stopped() <-chan syscall.Signal { return k.stopped }

func (k *kept) Gone() <-chan struct{} { return k.gone }

func (k *kept) isGone() bool {
	select {
	case <-k.gone:
		return true
	default:
		return false
	}
}

func (k *kept) Processes() ([]proc.Process, error) {
	if k.isGone() {
		return nil, nil
	}
	return k.askList(list)
}

// askList gives an order that is answered with a list.
func (k *kept) askList(verb verb) ([]proc.Process, error) {
	answer, err := k.ask(order{Verb: verb})
	if err != nil && k.orphans != nil {
		return k.orphans.Processes()
	}
	switch {
	case k.isGone():
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("listing the run: %w", err)
	case answer.Error != "":
		return nil, fmt.Errorf("listing the run: %s", answer.Error)
	default:
		return answer.Processes, nil
	}
}

func (k *kept) Leave() ([]proc.Process, error) {
	k.leaving.Store(true)
	left, err := k.askList(leave)
	<-k.lost
	return left, err
}

func (k *kept) Terminate() int {
	answer, err := k.ask(order{Verb: terminate})
	if err != nil && k.orphans != nil {
		return k.orphans.Terminate()
	}
	return answer.Count // without an answer nobody was told
}

func (k *kept) Kill(patience time.Duration) proc.Killed {
	answer, err := k.ask(order{Verb: kill, Patience: patience})
	if err != nil && k.orphans != nil {
		return k.killOrphans(patience)
	}
	if err != nil {
		// The keeper ends by itself only when nothing is left.
		return proc.Killed{Proved: k.isGone()}
	}
	if answer.Killed.Proved {
		// The keeper may say so before it says exited and gone, and ends.
		<-k.lost
	}
	return answer.Killed
}

func (k *kept) killOrphans(patience time.Duration) proc.Killed {
	killed := k.orphans.Kill(patience)
	if killed.Proved {
		<-k.gone
	}
	return killed
}
