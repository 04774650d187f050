package proc

import (
	"syscall"
	"time"
)

// look is how often EndAll looks whether processes that are not its children
// have ended.
const look = 5 * time.Millisecond

// EndAll ends processes that are not this program's children: SIGTERM, SIGKILL
// after the grace. It returns when all are gone or patience is over, with those
// that are not. Nothing proves that they left no others.
func EndAll(ids []ID, grace, patience time.Duration) (survivors []ID) {
	for _, id := range ids {
		_ = id.Signal(syscall.SIGTERM) // gone, or somebody else's: then it survives
		_ = id.Signal(syscall.SIGCONT)
	}
	left := waitGone(ids, grace)
	for _, id := range left {
		_ = id.Signal(syscall.SIGKILL)
	}
	return waitGone(left, patience)
}

func waitGone(ids []ID, most time.Duration) []ID {
	for deadline := time.Now().Add(most); ; time.Sleep(look) {
		var left []ID
		for _, id := range ids {
			if id.Alive() {
				left = append(left, id)
			}
		}
		if len(left) == 0 || !time.Now().Before(deadline) {
			return left
		}
		ids = left
	}
}
