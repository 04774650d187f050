package proc

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

type program struct {
	process Process
	pidfd   *os.File
	exited  chan struct{}
	gone    chan struct{}
	once    sync.Once
	// ending is closed by Close.
	ending  chan struct{}
	running sync.WaitGroup

	told told

	mu sync.Mutex
	// seen are those that the last listing showed.
	seen map[ID]bool
}

// Attach finds the process that has this number now and holds on to it, so that
// no other one is ever taken for it. It returns ErrGone, ErrAncestor, ErrThread
// or ErrNoAttach, and EPERM, wrapped, for a process that may not be signalled.
func Attach(pid int) (Program, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	switch {
	case errors.Is(err, unix.ESRCH):
		return nil, ErrGone
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT):
		return nil, ErrThread
	case err != nil:
		return nil, fmt.Errorf("%w (%w)", ErrNoAttach, err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // so that waiting for it takes no thread
		unix.Close(fd)
		return nil, fmt.Errorf("holding on to process %d: %w", pid, err)
	}
	p := &program{
		pidfd: os.NewFile(uintptr(fd), "pidfd"), exited: make(chan struct{}), gone: make(chan struct{}), ending: make(chan struct{}),
		seen: make(map[ID]bool),
	}
	if err := p.identify(pid, fd); err != nil {
		p.pidfd.Close()
		return nil, err
	}
	p.running.Go(p.wait)
	return p, nil
}

// identify fills in who the process is. It was the one that the descriptor names
// all the time if that takes a signal afterwards.
func (p *program) identify(pid, fd int) error {
	s, err := readStat(pid)
	if err != nil {
		return err
	}
	all, err := readTable()
	if err != nil {
		return err
	}
	if ancestors(all)[pid] {
		return ErrAncestor
	}
	err = unix.PidfdSendSignal(fd, 0, nil, 0)
	if errors.Is(err, unix.ESRCH) || err == nil && !s.live() {
		return ErrGone
	}
	if err != nil {
		return fmt.Errorf("signalling process %d: %w", pid, err)
	}
	p.process = s.process()
	p.seen[p.process.ID] = true
	return nil
}

// wait waits for the end of the process, which makes its descriptor readable
// (pidfd_open(2)).
func (p *program) wait() {
	conn, err := p.pidfd.SyscallConn()
	if err != nil {
		return // closed
	}
	ended := false
	err = conn.Read(func(fd uintptr) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		ended = n > 0
		return ended || err != nil && !errors.Is(err, unix.EINTR)
	})
	if err == nil && ended {
		close(p.exited)
	}
}

func (p *program) Process() Process        { return p.process }
func (p *program) Exited() <-chan struct{} { return p.exited }
func (p *program) Gone() <-chan struct{}   { return p.gone }

func (p *program) Close() error {
	close(p.ending)
	err := p.pidfd.Close()
	p.running.Wait()
	return err
}

func (p *program) Processes() ([]Process, error) {
	all, err := readTable()
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var roots []stat
	for _, s := range all {
		switch id := s.process().ID; {
		case id == p.process.ID:
			roots = slices.Insert(roots, 0, s)
		case p.seen[id]:
			roots = append(roots, s)
		}
	}
	processes := living(all.descend(roots, ancestors(all)))
	p.seen = make(map[ID]bool)
	for _, one := range processes {
		p.seen[one.ID] = true
	}
	return processes, nil
}

func (p *program) Terminate() int {
	processes, err := p.Processes()
	if err != nil {
		return 0 // Kill lists again
	}
	count := p.told.terminate(processes)
	p.running.Go(func() { p.lookOut(processes) })
	return count
}

// lookOut looks whether those who were asked to end have, and whether they left
// others, until nobody is left.
func (p *program) lookOut(processes []Process) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		if !anyAlive(processes) {
			var err error
			if processes, err = p.Processes(); err == nil && len(processes) == 0 {
				p.setGone()
				return
			}
		}
		select {
		case <-tick.C:
		case <-p.gone:
			return
		case <-p.ending:
			return
		}
	}
}

func anyAlive(processes []Process) bool {
	for _, one := range processes {
		if one.Alive() {
			return true
		}
	}
	return false
}

func (p *program) setGone() { p.once.Do(func() { close(p.gone) }) }

func (p *program) Kill(patience time.Duration) Killed {
	var result Killed
	hit := make(map[ID]bool)
	for progress := time.Now(); ; {
		processes, err := p.Processes()
		if err == nil {
			processes, err = freeze(processes, p.Processes)
		}
		if err == nil && len(processes) == 0 {
			p.setGone()
			result.Proved = true
			return result
		}
		taken, fresh := killEach(processes, hit)
		result.Count += len(taken)
		result.Untold += p.told.missing(taken)
		switch {
		case fresh:
			progress = time.Now()
		case time.Since(progress) >= patience:
			result.Survivors = processes
			return result
		case err != nil:
			time.Sleep(longPause)
		}
		waitGone(idsOf(processes), longPause)
	}
}

func idsOf(processes []Process) []ID {
	ids := make([]ID, len(processes))
	for i, one := range processes {
		ids[i] = one.ID
	}
	return ids
}
