package spawn

import (
	"encoding/gob"
	"io"
	"sync"
	"syscall"
	"time"

	"cage/internal/proc"
)

// The talk between a program and its keeper: first the program sends a
// request, and the keeper says started or refused. From then on the program
// sends orders, each of which is answered under its number, and the keeper
// says, unasked, stopped whenever the command was, and at last exited and gone.
// Both sides are the same binary, so the encoding needs no version.

// request is what to start.
type request struct {
	Path      string
	Args, Env []string
	Dir       string
	Place     proc.Place
	// Descriptors are those that it gets beside the standard streams.
	Descriptors []int
	Setup       setup
	// Outlives says that the run is left alone when the program dies.
	Outlives bool
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
)

// notice is what a keeper says; Event tells which other fields it fills.
type notice struct {
	Event event

	Command proc.ID        // started
	Errno   syscall.Errno  // refused: what the system answered, or 0
	Error   string         // refused without Errno; answered list or leave, where it failed
	Signal  syscall.Signal // stopped
	Exit    proc.Exit      // exited

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
