//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package proc

import (
	"errors"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// endTree notes that nothing is left of the tree. The caller holds mu.
func (r *Reaper) endTree() {
	if r.tree != nil && !r.tree.ended {
		r.tree.ended = true
		close(r.tree.gone)
	}
}

// Command returns the identity of the process that the tree grew from.
func (t *Tree) Command() ID { return t.command.id }

// Exited delivers, once, how the command ended. Other processes of the tree
// may live on.
func (t *Tree) Exited() <-chan Exit { return t.command.exited }

// Stopped delivers the signal that stopped the command, the last one where
// several have. The command may run again by then.
func (t *Tree) Stopped() <-chan syscall.Signal { return t.command.stopped }

// Gone is closed when nothing is left of the tree. A process that Attend or
// Run started delays it for as long as that runs.
func (t *Tree) Gone() <-chan struct{} { return t.gone }

func (t *Tree) isGone() bool {
	select {
	case <-t.gone:
		return true
	default:
		return false
	}
}

// Terminate sends SIGTERM to every process of the tree, parents first, wakes
// those that are stopped so that they can act on it, and returns how many
// processes took it.
func (t *Tree) Terminate() int {
	// Where the command was the last of its tree, its exit is heard a moment
	// before the end is.
	t.reaper.reap()
	processes, err := t.Processes()
	if err != nil {
		// Kill lists again, and proves the end.
		return 0
	}
	return t.told.terminate(processes)
}

// told has the IDs of those that took SIGTERM.
type told struct{ ids sync.Map }

// terminate sends it and wakes those that are stopped. It returns how many took
// it.
func (t *told) terminate(processes []Process) (count int) {
	for _, p := range processes {
		if p.Signal(unix.SIGTERM) == nil {
			count++
			t.ids.Store(p.ID, true)
		}
	}
	for _, p := range processes {
		// A process that ended meanwhile, or that cannot be signalled, was
		// not counted above either.
		_ = p.Continue()
	}
	return count
}

// missing counts those that are not among them.
func (t *told) missing(ids []ID) (count int) {
	for _, id := range ids {
		if _, told := t.ids.Load(id); !told {
			count++
		}
	}
	return count
}

// Leave lists what is left of a tree whose command has ended, and ends nothing.
// The list is empty where nothing is left, which closes Gone, and where it
// cannot be seen.
func (t *Tree) Leave() ([]Process, error) {
	for pause := shortPause; ; pause *= 2 {
		t.reaper.reap()
		if t.isGone() {
			return nil, nil
		}
		left, err := t.Processes()
		if len(left) > 0 || err != nil || pause > longPause {
			return left, err
		}
		// What was born after the listing is in the next, and so is what was
		// about to end.
		time.Sleep(pause)
	}
}

// Killed says what became of a tree that was killed.
type Killed struct {
	// Count is the number of processes that took SIGKILL.
	Count int
	// Untold are those of them that had not taken SIGTERM from Terminate.
	Untold int
	// Survivors are the processes that were still there at the end.
	Survivors []Process
	// Proved says that nothing is left, by the kernel's word where the system
	// has one. Without it something survived, even where Survivors is empty: a
	// process that cannot be listed is one that lives.
	Proved bool
}

// The pause between two rounds of Kill: the first after a round that found
// somebody new, doubling up to the second.
const (
	shortPause = 500 * time.Microsecond
	longPause  = 50 * time.Millisecond
)

// few is how many processes are killed at once. More of them are stopped before:
// they may be a fork bomb, in which the dead make room for others where a limit
// holds them back, and the stopped do not.
const few = 32

// Kill sends SIGKILL to every process of the tree, over and over until nothing
// is left. What refuses to die, because it belongs to another user or sleeps
// uninterruptibly, is given up when nothing else has been found for as long as
// patience.
func (t *Tree) Kill(patience time.Duration) Killed {
	var result Killed
	hit := make(map[ID]bool)
	pause, progress := shortPause, time.Now()
	for {
		t.reaper.reap()
		if t.isGone() {
			result.Proved = true
			return result
		}
		processes, err := t.Processes()
		if len(processes) > few {
			processes, err = freeze(processes, t.Processes)
		}
		taken, fresh := killEach(processes, hit)
		result.Count += len(taken)
		result.Untold += t.told.missing(taken)
		switch {
		case fresh:
			pause, progress = shortPause, time.Now()
		case time.Since(progress) >= patience:
			result.Survivors = processes
			return result
		default:
			pause = min(2*pause, longPause)
		}
		if err != nil {
			pause = longPause
		}
		select {
		case <-t.gone:
		case <-time.After(pause):
		}
	}
}

// freezeRounds bounds how often a tree is listed to stop who is new in it.
const freezeRounds = 100

// freeze stops processes, and whom a listing shows beside them, until one shows
// nobody new. It returns the last listing that there was. One that is stopped makes
// no children, and those that it has keep their parent.
func freeze(processes []Process, list func() ([]Process, error)) ([]Process, error) {
	stopped := make(map[ID]bool)
	for range freezeRounds {
		news := false
		for _, one := range processes {
			if !stopped[one.ID] && one.Signal(unix.SIGSTOP) == nil {
				stopped[one.ID], news = true, true
			}
		}
		if !news {
			break
		}
		now, err := list()
		if err != nil {
			return processes, err
		}
		processes = now
	}
	return processes, nil
}

// Continue continues a process that is stopped, so that it can act on what it
// was sent.
func (id ID) Continue() error {
	if !id.MayBeStopped() {
		return nil
	}
	return id.Signal(unix.SIGCONT)
}

// killEach kills processes. hit holds those that an earlier round found, and
// then those of this one. It returns which took the signal for the first time,
// and whether any was new.
func killEach(processes []Process, hit map[ID]bool) (taken []ID, fresh bool) {
	listed := make(map[ID]bool, len(processes))
	for _, p := range processes {
		took, known := hit[p.ID]
		err := p.Signal(unix.SIGKILL)
		if err == nil && !took {
			took = true
			taken = append(taken, p.ID)
		}
		if !known && !errors.Is(err, ErrGone) {
			fresh = true
		}
		listed[p.ID] = took
	}
	clear(hit)
	for id, took := range listed {
		hit[id] = took
	}
	return taken, fresh
}
