package sessionlog

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/rs/zerolog"
)

// mostWaiting is how many lines wait for a reader that takes none.
const mostWaiting = 1024

// follower hands lines on beside whoever writes the log.
type follower struct {
	out   io.Writer
	lines chan []byte
	// lost counts the lines that it had no room for since the last it took. The
	// lock of the log guards it until lines is closed.
	lost int
	// done is closed when out has what it takes; err says that it takes no more.
	done chan struct{}
	err  error
}

// Follow has every later event written to out as well, a line at a time, by a
// goroutine of its own: a terminal that was stopped or a pipe that nobody reads
// keeps nobody waiting. What is too much for it is counted, and told with
// `lines_lost` once it takes lines again.
//
// Release ends it: it returns when out has every line, or when patience is over.
// An error says that it has not.
func (l *Log) Follow(out io.Writer) (release func(patience time.Duration) error) {
	f := &follower{out: out, lines: make(chan []byte, mostWaiting), done: make(chan struct{})}
	go f.run()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.followers = append(l.followers, f)
	return func(patience time.Duration) error { return l.release(f, patience) }
}

func (f *follower) run() {
	defer close(f.done)
	for line := range f.lines {
		f.write(line)
	}
	if f.lost > 0 {
		f.write(lostLine(f.lost))
	}
}

func (f *follower) write(line []byte) {
	if f.err == nil {
		_, f.err = f.out.Write(line)
	}
}

// tell hands the line that was just rendered to a follower. The caller holds mu.
func (l *Log) tell(f *follower) {
	if f.lost > 0 && !f.take(lostLine(f.lost)) {
		f.lost++
		return
	}
	if f.lost = 0; !f.take(bytes.Clone(l.line.Bytes())) {
		f.lost = 1
	}
}

func (f *follower) take(line []byte) bool {
	select {
	case f.lines <- line:
		return true
	default:
		return false
	}
}

func lostLine(count int) []byte {
	var l Log
	l.logger = zerolog.New(&l.line)
	l.render("lines_lost", func(e *zerolog.Event) { e.Int("lines", count) })
	return l.line.Bytes()
}

func (l *Log) release(f *follower, patience time.Duration) error {
	l.mu.Lock()
	l.followers = slices.DeleteFunc(l.followers, func(other *follower) bool { return other == f })
	l.mu.Unlock()
	close(f.lines)
	select {
	case <-f.done:
		return f.err
	case <-time.After(patience):
		return errNotTaken
	}
}

var errNotTaken = errors.New("nobody takes more of them")
