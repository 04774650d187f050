// Package sessionlog writes the log of one session: a file of its own in a
// directory that the caller names, one JSON object per line with `at`, `event`
// and what the event is about. It holds paths, rules and outcomes, never
// contents, environment or arguments: no method takes them.
//
// A log never fails a session. That something could not be written is told by
// [Log.Close]. The file stops growing at 16 MiB, and its last line then
// says so. Who follows the log has every line, or is told how many are missing.
package sessionlog

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"cage/report"
)

const (
	maxBytes = 16 << 20
	// lastLine is more than the line that says that the log is full takes.
	lastLine = 128
	// attempts bounds the search for a free name: with 32 random bits a second
	// one is already rare.
	attempts = 8
)

// Log is an open session log. Its methods may be called from any goroutine.
type Log struct {
	path  string
	limit int64

	mu     sync.Mutex
	file   *os.File // nil once closed
	line   bytes.Buffer
	logger zerolog.Logger // writes to line
	full   bool
	err    error

	followers []*follower
}

// Create makes a new log in dir, readable and writable by its owner only, and
// never opens a file that somebody else put there.
func Create(dir string) (*Log, error) {
	return create(dir, maxBytes)
}

func create(dir string, limit int64) (*Log, error) {
	file, err := createFile(dir)
	if err != nil {
		return nil, fmt.Errorf("create session log in %s: %w", dir, err)
	}
	l := &Log{path: file.Name(), limit: limit, file: file}
	l.logger = zerolog.New(&l.line)
	return l, nil
}

func createFile(dir string) (*os.File, error) {
	for range attempts {
		file, err := os.OpenFile(filepath.Join(dir, newName()), openFlags, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		// The umask may have taken the owner's own bits away.
		if err := file.Chmod(0o600); err != nil {
			return nil, errors.Join(err, file.Close(), os.Remove(file.Name()))
		}
		return file, nil
	}
	return nil, fmt.Errorf("no free name in %d attempts: %w", attempts, fs.ErrExist)
}

func newName() string {
	var random [4]byte
	// Never fails: the runtime ends the program where the system has no
	// randomness.
	rand.Read(random[:])
	return fmt.Sprintf("gantry-cage-%d-%s.log", os.Getpid(), hex.EncodeToString(random[:]))
}

// Path returns the absolute or relative name that dir made it.
func (l *Log) Path() string { return l.path }

// Close closes the file; events after it are dropped. The file stays. The error
// is the first one of a write, if there was one. Closing again is nothing.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	l.remember(l.file.Close())
	l.file = nil
	return l.err
}

// Discard closes the log and removes its file: there was no session.
func (l *Log) Discard() error { return errors.Join(l.Close(), os.Remove(l.path)) }

// emit writes one event; fields adds what it is about.
func (l *Log) emit(event string, fields func(*zerolog.Event)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return
	}
	l.render(event, fields)
	for _, f := range l.followers {
		l.tell(f)
	}
	l.append()
}

// append adds the line to the file, or says there that it is full.
func (l *Log) append() {
	if l.full {
		return
	}
	size, err := l.size()
	if err != nil {
		l.remember(err)
		return
	}
	if size+int64(l.line.Len())+lastLine > l.limit {
		l.full = true
		l.render("log_full", func(e *zerolog.Event) { e.Int64("limit_bytes", l.limit) })
	}
	l.write(size)
}

func (l *Log) render(event string, fields func(*zerolog.Event)) {
	l.line.Reset()
	e := l.logger.Log().Str("at", report.Timestamp(time.Now())).Str("event", event)
	fields(e)
	e.Send()
}

// size asks the file, not a counter: the command knows its name, and runs as the
// same user.
func (l *Log) size() (int64, error) {
	info, err := l.file.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// write appends the line. Half a line, as a full disk leaves it, is taken off
// again, unless somebody has appended to it meanwhile.
func (l *Log) write(before int64) {
	n, err := l.file.Write(l.line.Bytes())
	if err == nil {
		return
	}
	l.remember(err)
	if size, err := l.size(); n > 0 && err == nil && size == before+int64(n) {
		l.remember(l.file.Truncate(before))
	}
}

func (l *Log) remember(err error) {
	if l.err == nil && err != nil {
		l.err = fmt.Errorf("write session log %s: %w", l.path, err)
	}
}
