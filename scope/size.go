package scope

import (
	"errors"
	"math/bits"
	"strconv"
	"strings"
)

const (
	kibibyte = 1 << 10
	mebibyte = 1 << 20
	gibibyte = 1 << 30
	tebibyte = 1 << 40
)

// Memory is a bound of memory: none where it is zero.
type Memory struct {
	auto    bool
	bytes   uint64
	percent uint64
}

// Auto is the bound that suits the machine.
func Auto() Memory { return Memory{auto: true} }

// Bytes is a bound in bytes.
func Bytes(n uint64) Memory { return Memory{bytes: n} }

// IsSet reports whether there is a bound.
func (m Memory) IsSet() bool { return m != Memory{} }

// ErrSize is returned for what is no size.
var ErrSize = errors.New("a size such as 512M or 2G, a share of the machine's memory such as 25%, or auto")

// byLetter are the units by the letters that systemd.resource-control(5) has.
var byLetter = map[byte]uint64{'K': kibibyte, 'M': mebibyte, 'G': gibibyte, 'T': tebibyte}

// ParseMemory reads a bound as systemd writes it: bytes, with K, M, G or T for
// powers of 1024 and a fraction before them, or a whole percentage of the
// machine's memory; or the word auto. Anything else is ErrSize.
func ParseMemory(text string) (Memory, error) {
	if text == "auto" {
		return Auto(), nil
	}
	if number, ok := strings.CutSuffix(text, "%"); ok {
		n, err := number64(number)
		if err != nil || n == 0 || n > 100 {
			return Memory{}, ErrSize
		}
		return Memory{percent: n}, nil
	}
	n, err := parseBytes(text)
	if err != nil || n < kibibyte {
		return Memory{}, ErrSize
	}
	return Bytes(n), nil
}

// number64 reads digits and nothing else.
func number64(text string) (uint64, error) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, ErrSize
	}
	return strconv.ParseUint(text, 10, 64)
}

func parseBytes(text string) (uint64, error) {
	if text == "" {
		return 0, ErrSize
	}
	unit, hasUnit := byLetter[text[len(text)-1]]
	if !hasUnit {
		return number64(text)
	}
	whole, fraction, hasFraction := strings.Cut(text[:len(text)-1], ".")
	n, err := number64(whole)
	if err != nil {
		return 0, err
	}
	high, size := bits.Mul64(n, unit)
	if high != 0 {
		return 0, ErrSize
	}
	if !hasFraction {
		return size, nil
	}
	part, err := fractionOf(unit, fraction)
	if err != nil || size+part < size {
		return 0, ErrSize
	}
	return size + part, nil
}

// mostFraction is how many digits of a fraction fit: ten to their power times
// the largest unit is below 2^64.
const mostFraction = 6

func fractionOf(unit uint64, digits string) (uint64, error) {
	n, err := number64(digits)
	if err != nil || len(digits) > mostFraction {
		return 0, ErrSize
	}
	scale := uint64(1)
	for range digits {
		scale *= 10
	}
	return unit * n / scale, nil
}

// The bounds of Auto. An ordinary test run or type check of a large project
// took 1.6 GiB, so less than the floor would kill honest work, and the cap
// leaves that more than half again.
const (
	autoCap   = gibibyte * 5 / 2
	autoFloor = 2 * gibibyte
)

// autoMemory returns what one run may take below a ceiling that others share:
// half of it, within the bounds, and never more than it. A ceiling of nil is
// not known.
func autoMemory(ceiling *uint64) uint64 {
	if ceiling == nil {
		return autoCap
	}
	return max(1, min(autoCap, max(autoFloor, *ceiling/2), *ceiling))
}

// in returns the bound in bytes, whole pages as the kernel keeps it, below a
// ceiling on a machine with so much memory.
func (m Memory) in(ceiling *uint64, total, page uint64) uint64 {
	n := m.bytes
	switch {
	case m.auto:
		n = autoMemory(ceiling)
	case m.percent != 0:
		n = total / 100 * m.percent
	}
	if ceiling != nil {
		n = min(n, *ceiling)
	}
	return max(n/page, 1) * page
}
