package spawn

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"cage/internal/proc"
)

// StartError says why a command never ran.
type StartError struct {
	// Name is the command as it was typed.
	Name string
	// Reason is plain text for a person.
	Reason string
	// Err is what the system said.
	Err error
}

func (e *StartError) Error() string { return fmt.Sprintf("cannot run %q: %s", e.Name, e.Reason) }

func (e *StartError) Unwrap() error { return e.Err }

// find returns the file that a shell would run for the command.
func (c Command) find() (string, error) {
	path, err := exec.LookPath(c.Path)
	// os/exec warns of what was found by a relative entry of PATH. The user
	// has it there, and a shell runs it.
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return "", &StartError{Name: c.Path, Reason: c.notFound(err), Err: err}
	}
	if c.Dir == "" || filepath.IsAbs(path) {
		return path, nil
	}
	// It was found from the current directory and is run from another.
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", &StartError{Name: c.Path, Reason: "the current directory is unknown", Err: err}
	}
	return absolute, nil
}

func (c Command) notFound(err error) string {
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "not found in PATH"
	case errors.Is(err, fs.ErrNotExist):
		return "no such file"
	case errors.Is(err, syscall.EISDIR):
		return "is a directory"
	case errors.Is(err, fs.ErrPermission):
		return "not executable: permission denied"
	default:
		return reason(err)
	}
}

// startError explains why a file that was found could not be executed. An
// error that is not the system's answer to it passes unchanged.
func (c Command) startError(spec proc.Spec, err error) error {
	var refused *fs.PathError
	if !errors.As(err, &refused) || refused.Path != spec.Path {
		return err
	}
	return &StartError{Name: c.Path, Reason: c.refusal(spec, err), Err: err}
}

func (c Command) refusal(spec proc.Spec, err error) string {
	// execve and the change of directory before it share one answer.
	if info, dirErr := os.Stat(cmp.Or(spec.Dir, ".")); dirErr != nil {
		return fmt.Sprintf("cannot start in %q: %s", spec.Dir, reason(dirErr))
	} else if !info.IsDir() {
		return fmt.Sprintf("cannot start in %q: not a directory", spec.Dir)
	}
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return "neither a program for this machine nor a script with a #! line (exec format error)"
	case errors.Is(err, fs.ErrNotExist) && exists(spec.Path):
		return "the interpreter that it names does not exist"
	case errors.Is(err, syscall.EBADF):
		// Those that it is to get were open. To put them in their places takes
		// some more above the highest.
		return descriptorsTooHigh
	case errors.Is(err, syscall.EPERM) && c.Terminal != Foreground:
		// Of a file that may not be executed execve says EACCES.
		return placeRefused
	case errors.Is(err, fs.ErrPermission):
		return "not executable: permission denied"
	default:
		return reason(err)
	}
}

// placeRefused is why a command cannot stand as its terminal wants.
const placeRefused = "its terminal takes a session or process group of its own, which this program is refused, as in a run with the lifetime run; take the terminal foreground"

// descriptorsTooHigh is why a command cannot get the open files that it is to get.
const descriptorsTooHigh = "its descriptors are too near the limit of open files; raise that (ulimit -n), or give it lower ones"

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// reason is the system's own word, without the file names around it.
func reason(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	return strings.TrimPrefix(err.Error(), "exec: ")
}
