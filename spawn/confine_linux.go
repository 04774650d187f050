package spawn

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"cage/internal/proc"
)

// cgroupMount is where version 2 of the control groups is mounted (cgroups(7)).
const cgroupMount = "/sys/fs/cgroup"

// apply finds the confinement true of this process, and sets what is this
// thread's own.
func (c Confinement) apply() error {
	if c.Group != "" {
		if err := c.prove(); err != nil {
			return &unproved{err}
		}
	}
	if c.Niceness == 0 {
		return nil
	}
	// The system call returns 20 less the value (getpriority(2)).
	inverse, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err == nil && 20-inverse < c.Niceness {
		err = unix.Setpriority(unix.PRIO_PROCESS, 0, c.Niceness)
	}
	if err != nil {
		return fmt.Errorf("setting the niceness to %d: %w", c.Niceness, err)
	}
	return nil
}

func (c Confinement) prove() error {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return err
	}
	if !strings.Contains("\n"+string(text), "\n0::"+c.Group+"\n") {
		return fmt.Errorf("the process is not in the group %s", c.Group)
	}
	for file, want := range c.Controls {
		text, err := os.ReadFile(filepath.Join(cgroupMount, c.Group, file))
		if err != nil {
			return err
		}
		if got := strings.TrimSuffix(string(text), "\n"); got != want {
			return fmt.Errorf("%s holds %s, not %s", file, got, want)
		}
	}
	return nil
}

// unproved is ErrUnproved with what is not so.
type unproved struct{ what error }

func (u *unproved) Error() string        { return ErrUnproved.Error() + ": " + u.what.Error() }
func (u *unproved) Is(target error) bool { return target == ErrUnproved }

// confined is what a program answers its keeper who holds a process for it: how
// that is confined, or what it has to go through before.
type confined struct {
	Confinement  Confinement
	Refused      bool
	Through, Env []string
	Patience     time.Duration
}

// confineFrom has the program at the other end confine a process.
func (k *keeper) confineFrom(decoder *gob.Decoder) Confine {
	return func(held Held) (Confinement, error) {
		var came notice // of the way that it was sent
		for {
			came.Event, came.Command = holding, held.Process()
			if err := k.notices.send(came); err != nil {
				return Confinement{}, err
			}
			var v confined
			if err := decoder.Decode(&v); err != nil {
				return Confinement{}, fmt.Errorf("waiting for the confinement: %w", err)
			}
			switch {
			case v.Refused:
				return Confinement{}, errors.New("the program refuses") // it knows why
			case v.Through == nil:
				return v.Confinement, nil
			}
			said, err := held.Through(v.Through, v.Env, v.Patience)
			if came = (notice{}); err != nil {
				came = refusal(err)
			}
			came.Said = said
		}
	}
}

// answer confines a process that the keeper holds, and lets it go.
func (k *kept) answer(decoder *gob.Decoder, id proc.ID, confine Confine) error {
	through := func(prefix, env []string, patience time.Duration) ([]byte, error) {
		if err := k.orders.send(confined{Through: prefix, Env: env, Patience: patience}); err != nil {
			return nil, err
		}
		came, err := hear(decoder)
		if err != nil || came.fine() {
			return nil, err
		}
		return came.Said, came.err(prefix[0])
	}
	c, err := confine(Held{id: id, through: through})
	if sent := k.orders.send(confined{Confinement: c, Refused: err != nil}); err == nil {
		err = sent
	}
	return err
}

// talkError makes the end of the talk with a stage what it means: it was ended
// before it had come to the command.
func talkError(err error) error {
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, unix.EPIPE, unix.ECONNRESET} {
		if errors.Is(err, end) {
			return ErrNeverStarted
		}
	}
	return err
}
