package scope

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"cage/internal/proc"
)

// prefix begins the name of every group.
const prefix = "cage-session-"

// sessionsSlice contains every scope. Its name makes it a part of outerSlice
// (systemd.slice(5)).
const (
	outerSlice    = "cage.slice"
	sessionsSlice = "cage-sessions.slice"
)

// mostID is the longest part of a name that stands for an id: systemd allows
// 255 bytes in all.
const mostID = 180

// name is what a group is called after. Its parts are divided by colons, which
// no id keeps, so that no two of them share a spelling.
type name struct {
	// label is what sanitise makes of an id.
	label string
	owner owner
	// attempt is 1, or more where the name before is taken: a unit that has
	// failed keeps its name until somebody resets it.
	attempt int
}

// mostAttempts is how many names are tried.
const mostAttempts = 8

// owner is the program that a group belongs to. A process number says nothing in
// another pid namespace.
type owner struct {
	namespace uint32
	proc.ID
}

func (n name) String() string {
	return fmt.Sprintf("%s%s:%d:%d:%d:%d", prefix, n.label, n.owner.namespace, n.owner.PID, n.owner.Start, n.attempt)
}

// unit is the name of the scope.
func (n name) unit() string { return n.String() + ".scope" }

// parseName reads a name, with or without what a unit ends with.
func parseName(text string) (name, bool) {
	text = strings.TrimSuffix(text, ".scope")
	rest, ours := strings.CutPrefix(text, prefix)
	parts := strings.Split(rest, ":")
	if !ours || len(parts) != 5 {
		return name{}, false
	}
	var numbers [4]uint64
	for i, bits := range []int{32, 31, 64, 31} {
		n, err := strconv.ParseUint(parts[i+1], 10, bits)
		if err != nil {
			return name{}, false
		}
		numbers[i] = n
	}
	n := name{
		label:   parts[0],
		owner:   owner{namespace: uint32(numbers[0]), ID: proc.ID{PID: int(numbers[1]), Start: numbers[2]}},
		attempt: int(numbers[3]),
	}
	// What is spelled in another way was not spelled here.
	return n, n.attempt > 0 && n.owner.PID > 0 && fold(n.label) == n.label && n.label != "" && n.String() == text
}

// sanitise makes an id a part of a name. One that had to be changed or cut ends
// with eight digits of its hash, so that two ids never become the same.
func sanitise(id string) string {
	kept := fold(id)
	kept = kept[:min(len(kept), mostID)]
	if kept == id && kept != "" {
		return kept
	}
	if kept == "" {
		kept = "session"
	}
	digest := sha256.Sum256([]byte(id))
	return kept + "-" + hex.EncodeToString(digest[:4])
}

// fold makes a dash of whatever a name cannot have, and leaves out what it
// cannot begin with.
func fold(id string) string {
	return strings.TrimLeft(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '.', r == '-':
			return r
		default:
			return '-'
		}
	}, id), ".-")
}
