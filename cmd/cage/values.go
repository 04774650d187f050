package main

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"cage/spawn"

	"github.com/spf13/pflag"
)

// value is a flag's value that can say what it takes, since a person reads it
// when a call is refused. What Set returns is the same, or something narrower.
type value interface {
	pflag.Value
	takes() string
}

// digits reads a whole number, 0 or more, written with digits alone.
func digits(text string, bits int) (int64, error) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, errors.New(wholeNumber)
	}
	n, err := strconv.ParseInt(text, 10, bits)
	if err != nil {
		return 0, errors.New("a smaller number")
	}
	return n, nil
}

const wholeNumber = "a whole number, 0 or more"

// count is a whole number.
type count int64

func (c *count) String() string { return strconv.FormatInt(int64(*c), 10) }
func (c *count) Type() string   { return "n" }
func (c *count) takes() string  { return wholeNumber }
func (c *count) Set(text string) error {
	n, err := digits(text, 63)
	if err == nil {
		*c = count(n)
	}
	return err
}

// byteCount is a whole number of bytes.
type byteCount int64

func (c *byteCount) String() string { return (*count)(c).String() }
func (c *byteCount) Type() string   { return "n" }
func (c *byteCount) takes() string  { return "a whole number of bytes, 0 or more" }
func (c *byteCount) Set(text string) error {
	var n count
	err := n.Set(text)
	if err != nil && err.Error() == wholeNumber {
		return errors.New(c.takes())
	}
	*c = byteCount(n)
	return err
}

// optionalCount is a whole number that may not be given.
type optionalCount struct{ value *int }

func (c *optionalCount) String() string { return "" }
func (c *optionalCount) Type() string   { return "n" }
func (c *optionalCount) takes() string  { return wholeNumber }
func (c *optionalCount) Set(text string) error {
	n, err := digits(text, 31)
	if err == nil {
		value := int(n)
		c.value = &value
	}
	return err
}

// processNumber is the number of a process; 0 for none.
type processNumber int

func (p *processNumber) String() string { return "" }
func (p *processNumber) Type() string   { return "n" }
func (p *processNumber) takes() string  { return "the number of a process, 1 or more" }
func (p *processNumber) Set(text string) error {
	n, err := digits(text, 31)
	if err != nil || n < 1 {
		return errors.New(p.takes())
	}
	*p = processNumber(n)
	return nil
}

// longest bounds every duration: what waits longer waits for ever.
const longest = 24 * time.Hour

// interval is a duration that something happens in again and again.
type interval time.Duration

func (d *interval) String() string { return time.Duration(*d).String() }
func (d *interval) Type() string   { return "duration" }
func (d *interval) takes() string  { return "a duration from 1ms to 24h, such as 500ms or 2s" }
func (d *interval) Set(text string) error {
	value, err := time.ParseDuration(text)
	if err != nil || value < time.Millisecond || value > longest {
		return errors.New(d.takes())
	}
	*d = interval(value)
	return nil
}

// milliseconds sets an interval in milliseconds.
type milliseconds interval

func (m *milliseconds) String() string {
	return strconv.FormatInt(time.Duration(*m).Milliseconds(), 10)
}
func (m *milliseconds) Type() string  { return "n" }
func (m *milliseconds) takes() string { return "a whole number of milliseconds from 1 to 86400000" }
func (m *milliseconds) Set(text string) error {
	n, err := digits(text, 32)
	if err != nil || n < 1 || n > longest.Milliseconds() {
		return errors.New(m.takes())
	}
	*m = milliseconds(time.Duration(n) * time.Millisecond)
	return nil
}

// delay is a duration that somebody waits for once.
type delay time.Duration

func (d *delay) String() string { return time.Duration(*d).String() }
func (d *delay) Type() string   { return "duration" }
func (d *delay) takes() string  { return "a duration from 0 to 24h, such as 500ms or 2s" }
func (d *delay) Set(text string) error {
	value, err := time.ParseDuration(text)
	if err != nil || value < 0 || value > longest {
		return errors.New(d.takes())
	}
	*d = delay(value)
	return nil
}

// choice is one word of a few.
type choice struct {
	value   string
	allowed []string
}

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return strings.Join(c.allowed, "|") }
func (c *choice) takes() string  { return strings.Join(c.allowed, " or ") }
func (c *choice) Set(text string) error {
	if !slices.Contains(c.allowed, text) {
		return errors.New(c.takes())
	}
	c.value = text
	return nil
}

// file is the name of a file.
type file string

func (f *file) String() string { return string(*f) }
func (f *file) Type() string   { return "file" }
func (f *file) takes() string  { return "the name of a file" }
func (f *file) Set(text string) error {
	if text == "" {
		return errors.New(f.takes())
	}
	*f = file(text)
	return nil
}

// paths are what a flag that may be repeated was given. What a path has to be
// is said by whoever reads it.
type paths []string

func (p *paths) String() string { return "" }
func (p *paths) Type() string   { return "path" }
func (p *paths) takes() string  { return "a path, relative to the root" }
func (p *paths) Set(text string) error {
	*p = append(*p, text)
	return nil
}

// revisions is a range of commits.
type revisions string

func (r *revisions) String() string { return "" }
func (r *revisions) Type() string   { return "A..B" }
func (r *revisions) takes() string  { return "a range of commits, A..B or A...B" }
func (r *revisions) Set(text string) error {
	if !strings.Contains(text, "..") {
		return errors.New(r.takes())
	}
	*r = revisions(text)
	return nil
}

// names are what a flag that may be repeated was given: names of variables.
type names []string

func (n *names) String() string { return "" }
func (n *names) Type() string   { return "NAME" }
func (n *names) takes() string  { return "the name of an environment variable" }
func (n *names) Set(text string) error {
	if text == "" || strings.ContainsAny(text, "=\x00") {
		return errors.New(n.takes())
	}
	*n = append(*n, text)
	return nil
}

// settings are what a flag that may be repeated was given: variables with
// their values.
type settings []string

func (s *settings) String() string { return "" }
func (s *settings) Type() string   { return "NAME=value" }
func (s *settings) takes() string  { return "an environment variable as NAME=value" }
func (s *settings) Set(text string) error {
	if name, _, ok := strings.Cut(text, "="); !ok || name == "" {
		return errors.New(s.takes())
	}
	*s = append(*s, text)
	return nil
}

// has reports whether a variable was given.
func (s settings) has(name string) bool {
	return slices.ContainsFunc(s, func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
}

// descriptors are what a flag that may be repeated was given: numbers of open
// files.
type descriptors []int

func (d *descriptors) String() string { return "" }
func (d *descriptors) Type() string   { return "N" }
func (d *descriptors) takes() string  { return "the number, 3 or more, of a file that is open" }
func (d *descriptors) Set(text string) error {
	n, err := digits(text, 31)
	if err != nil || n < 3 || !spawn.Inherited(int(n)) {
		return errors.New(d.takes())
	}
	*d = append(*d, int(n))
	return nil
}

// rlimits are the limits of a command as one flag takes them.
type rlimits struct{ spawn.Limits }

func (l *rlimits) String() string { return "" }
func (l *rlimits) Type() string   { return "name=N,..." }
func (l *rlimits) takes() string {
	return "limits such as nproc=100,cpu=60,fsize=1000000,nofile=256,core=0"
}
func (l *rlimits) Set(text string) error {
	limits := l.Limits
	for entry := range strings.SplitSeq(text, ",") {
		name, number, _ := strings.Cut(entry, "=")
		to, known := map[string]**uint64{
			"nproc": &limits.Processes, "cpu": &limits.CPU, "fsize": &limits.FileSize, "nofile": &limits.OpenFiles, "core": &limits.Core,
		}[name]
		n, err := digits(number, 63)
		if !known || err != nil {
			return errors.New(l.takes())
		}
		value := uint64(n)
		*to = &value
	}
	l.Limits = limits
	return nil
}
