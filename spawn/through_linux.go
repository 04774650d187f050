package spawn

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A stage that goes through another program is the stage again when it comes
// back, by a descriptor of this binary, whose name may be gone. The other
// program writes to the talk meanwhile as its standard error, and a byte that no
// text has says that the stage is back.

const (
	descriptors = "/proc/self/fd/"
	isBack      = 0
	// mostSaid bounds what is kept of the words of a program, in bytes.
	mostSaid = 4096
)

// sendThrough sends the stage at the other end of the talk through a program and
// returns what that said where the stage does not come back, or that it took too
// long.
func sendThrough(talk *os.File, prefix, env []string, patience time.Duration) (said []byte, err error) {
	if err := gob.NewEncoder(talk).Encode(assignment{Through: prefix, Env: env}); err != nil {
		return nil, talkError(err)
	}
	if err := talk.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return nil, fmt.Errorf("waiting for the stage: %w", err)
	}
	defer talk.SetReadDeadline(time.Time{})
	buf := make([]byte, 512)
	for {
		n, err := talk.Read(buf)
		if bytes.IndexByte(buf[:n], isBack) >= 0 {
			return nil, nil
		}
		said = append(said, buf[:min(n, mostSaid-len(said))]...)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			late := fmt.Sprintf("it did not end in %s", patience)
			return append(said, late...), fmt.Errorf("%s failed", prefix[0])
		case errors.Is(err, io.EOF) && len(said) > 0:
			return said, fmt.Errorf("%s failed", prefix[0])
		case err != nil:
			return said, talkError(err)
		}
	}
}

// goThrough becomes the other program. Where it returns, its error is said as
// that program's would be.
func goThrough(talk *os.File, prefix, env []string) error {
	defer runtime.KeepAlive(talk) // closed by nobody before it is handed on
	socket := int(talk.Fd())
	stderr, err := unix.Dup(syscall.Stderr)
	if err != nil {
		return fmt.Errorf("keeping the standard error: %w", err)
	}
	if err := unix.Dup3(socket, syscall.Stderr, 0); err != nil {
		return fmt.Errorf("replacing the standard error: %w", err)
	}
	binary, err := unix.Open("/proc/self/exe", unix.O_PATH, 0)
	if err != nil {
		return fmt.Errorf("opening the program itself: %w", err)
	}
	if _, err := unix.FcntlInt(talk.Fd(), unix.F_SETFD, 0); err != nil {
		return fmt.Errorf("keeping the talk: %w", err)
	}
	back := []string{descriptors + strconv.Itoa(binary), stageName, strconv.Itoa(socket), strconv.Itoa(stderr)}
	return &os.PathError{Op: "exec", Path: prefix[0], Err: syscall.Exec(prefix[0], append(prefix, back...), env)}
}

// isBackAs reports whether the arguments of the program are those of a stage that
// is back.
func isBackAs(args []string) bool {
	return len(args) == 4 && strings.HasPrefix(args[0], descriptors) && args[1] == stageName
}

// comeBack takes the standard error back, lets go of what was held for the way,
// and goes on as the stage.
func comeBack(args []string) error {
	binary, err := strconv.Atoi(strings.TrimPrefix(args[0], descriptors))
	talk, talkErr := strconv.Atoi(args[2])
	stderr, stderrErr := strconv.Atoi(args[3])
	if err := errors.Join(err, talkErr, stderrErr); err != nil {
		return fmt.Errorf("this is a stage that the program starts by itself: %w", err)
	}
	if err := errors.Join(unix.Dup3(stderr, syscall.Stderr, 0), unix.Close(stderr), unix.Close(binary)); err != nil {
		return fmt.Errorf("taking the standard error back: %w", err)
	}
	if _, err := unix.Write(talk, []byte{isBack}); err != nil {
		return fmt.Errorf("telling that the stage is back: %w", err)
	}
	return become(args[2])
}
