package spawn

import (
	"encoding/gob"
	"errors"
	"io"
	"io/fs"
	"sync"
	"syscall"
	"time"

	"cage/internal/proc"
)

// The talk between a program and its keeper: first the program sends a
// request, and the keeper says started or refused. Before that, where the command
// is to be confined, it says holding, and the program says how, or first sends
// the held process through another program and is told holding again. From then
// on the program sends orders, each of which is answered under its number, and
// the keeper says, unasked, working as long as it is at an order, stopped whenever
// the command was, and at last exited and gone. Both sides are the same binary, so
// the encoding needs no version.

// request is what to start.
type request struct {
	Path      string
	Args, Env []string
	Dir       string
	Place     proc.Place
	// Descriptors are those that it gets beside the standard streams.
	Descriptors []int
	Setup       setup
	// Confined says that the program confines the command.
	Confined bool
	// Outlives says that the run is left alone when the program dies.
	Outlives bool
	Temp     ownTemp
}

type verb uint8

const (
	list verb = iota + 1
	terminate
	kill
	// leave is the last order: the keeper answers with a list, and ends.
	leave
)

type order struct {
	Number   uint64
	Verb     verb
	Patience time.Duration
}

type event uint8

const (
	started event = iota + 1
	refused
	stopped
	exited
	gone
	answered
	holding
	becoming
	working
)

// notice is what a keeper says; Event tells which other fields it fills.
type notice struct {
	Event event

	Command proc.ID       // started, holding
	Errno   syscall.Errno // refused: what the system answered, or 0
	Error   string        // refused without Errno; answered list or leave, where it failed
	// refused: that it is one of these. Holding says by the same fields why the
	// process did not come back from where it was sent.
	Unproved, NeverStarted bool
	Said                   []byte // holding: what the other program said then

	Signal syscall.Signal // stopped
	Exit   proc.Exit      // exited

	Number    uint64         // answered
	Processes []proc.Process // answered list or leave
	Count     int            // answered terminate
	Killed    proc.Killed    // answered kill
}

// sender lets several goroutines say whole things.
type sender struct {
	mu      sync.Mutex
	encoder *gob.Encoder
}

func newSender(w io.Writer) *sender { return &sender{encoder: gob.NewEncoder(w)} }

func (s *sender) send(message any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.encoder.Encode(message)
}

// err is why a command did not come to run, as a refusal tells it.
func (n notice) err(path string) error {
	switch {
	case n.Errno != 0:
		return &fs.PathError{Op: "exec", Path: path, Err: n.Errno}
	case n.NeverStarted:
		return ErrNeverStarted
	case n.Unproved:
		return &told{n.Error, ErrUnproved}
	default:
		return errors.New(n.Error)
	}
}

// fine reports whether nothing was refused.
func (n notice) fine() bool { return n.Errno == 0 && n.Error == "" }

// told is an error that another process has put into words.
type told struct {
	text string
	kind error
}

func (t *told) Error() string { return t.text }
func (t *told) Unwrap() error { return t.kind }
