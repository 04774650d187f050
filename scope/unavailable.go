package scope

import (
	"errors"
	"fmt"
)

// ErrEnded is returned where a process was ended while it was placed.
var ErrEnded = errors.New("it was ended before the command began; it may need more memory than the limit gives")

// Unavailable says why there is no group to be had, in words for a person.
type Unavailable struct{ Reason string }

func (u *Unavailable) Error() string { return u.Reason }

func unavailable(format string, args ...any) error {
	return &Unavailable{Reason: fmt.Sprintf(format, args...)}
}
