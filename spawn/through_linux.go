package spawn

import (
	"cmp"
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
// program has the talk meanwhile, as its standard error too, and may leave
// processes that have it for ever. So the stage comes back with a new talk, whose
// other end it sends along.

const (
	descriptors = "/proc/self/fd/"
	// mostSaid bounds what is kept of the words of a program, in bytes.
	mostSaid = 4096
)

// sendThrough sends the stage at the other end of the talk through a program and
// returns the new talk, or what the program said where the stage does not come
// back, or that it took too long.
func sendThrough(talk *os.File, way assignment, patience time.Duration) (back *os.File, said []byte, err error) {
	if err := gob.NewEncoder(talk).Encode(way); err != nil {
		return nil, nil, talkError(err)
	}
	if err := talk.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return nil, nil, fmt.Errorf("waiting for the stage: %w", err)
	}
	defer talk.SetReadDeadline(time.Time{})
	program := way.Through[0]
	for {
		words, back, err := receive(talk)
		if back != nil {
			return back, nil, nil
		}
		said = append(said, words[:min(len(words), mostSaid-len(said))]...)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			late := fmt.Sprintf("it did not end in %s", patience)
			return nil, append(said, late...), fmt.Errorf("%s failed", program)
		case errors.Is(err, io.EOF) && len(said) > 0:
			return nil, said, fmt.Errorf("%s failed", program)
		case err != nil:
			return nil, said, talkError(err)
		}
	}
}

// receive reads from a socket, and takes the one that may have been sent along.
func receive(from *os.File) (words []byte, socket *os.File, err error) {
	conn, err := from.SyscallConn()
	if err != nil {
		return nil, nil, err
	}
	words = make([]byte, 512)
	along := make([]byte, unix.CmsgSpace(4)) // one descriptor
	var n, alongs int
	var failed error
	err = conn.Read(func(fd uintptr) bool {
		n, alongs, _, _, failed = unix.Recvmsg(int(fd), words, along, unix.MSG_CMSG_CLOEXEC)
		return !errors.Is(failed, unix.EAGAIN) && !errors.Is(failed, unix.EINTR)
	})
	if err = cmp.Or(err, failed); err != nil {
		return nil, nil, err
	}
	if n == 0 {
		return nil, nil, io.EOF
	}
	messages, err := unix.ParseSocketControlMessage(along[:alongs])
	if err != nil || len(messages) == 0 {
		return words[:n], nil, err
	}
	sent, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(sent) == 0 {
		return words[:n], nil, err
	}
	socket, err = stageSocket(sent[0])
	return words[:n], socket, err
}

// goThrough becomes the other program, which dies with the parent as the command
// will. Where it returns, its error is said as that program's would be.
func goThrough(talk *os.File, way assignment) error {
	defer runtime.KeepAlive(talk) // closed by nobody before it is handed on
	if err := dieWith(way.Parent); err != nil {
		return err
	}
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
	program := way.Through[0]
	return &os.PathError{Op: "exec", Path: program, Err: syscall.Exec(program, append(way.Through, back...), way.Env)}
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
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("making a new talk: %w", err)
	}
	err = unix.Sendmsg(talk, []byte{0}, unix.UnixRights(pair[0]), nil, 0)
	if err := errors.Join(err, unix.Close(pair[0]), unix.Close(talk)); err != nil {
		return fmt.Errorf("telling that the stage is back: %w", err)
	}
	return become(strconv.Itoa(pair[1]))
}
