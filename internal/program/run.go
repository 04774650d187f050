// Package program finds and runs the programs that the cage asks: git, and those
// of the service manager.
//
// It promises that none is taken from the directory that an agent can write to,
// and that what a program answers is whole or an error. Who waits for a process
// is the caller's to say, by the Runner.
package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Call is one process to run.
type Call struct {
	// Path is the absolute path of the program.
	Path string
	// Args are its arguments, without the program's own name.
	Args []string
	// Env is its whole environment.
	Env []string
	// Dir is its working directory.
	Dir string
	// Stdin is all it can read on its standard input.
	Stdin []byte
}

// Variables returns what an environment sets, by name. The last of two wins, as in
// os/exec.
func Variables(environ []string) map[string]string {
	values := make(map[string]string, len(environ))
	for _, entry := range environ {
		if name, value, ok := strings.Cut(entry, "="); ok {
			values[name] = value
		}
	}
	return values
}

// Result is what a process that ended by itself left.
type Result struct {
	Stdout, Stderr []byte
	ExitCode       int
}

// Runner runs one process and waits for it. An error means that it was not
// started or did not end by itself; an exit code other than 0 is no error.
// A Runner ends the process when ctx ends, and may be called by several
// goroutines.
type Runner func(ctx context.Context, c Call) (Result, error)

// pipesAfterDeath is how long Exec waits for whoever inherited the pipes of a
// process that has ended.
const pipesAfterDeath = time.Second

// Exec is the Runner for programs that have no reaper of their own: it waits
// through os/exec, which must not stand beside a wait for any child.
func Exec(ctx context.Context, c Call) (Result, error) {
	cmd := exec.CommandContext(ctx, c.Path, c.Args...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = c.Env, c.Dir, pipesAfterDeath
	cmd.Stdin = bytes.NewReader(c.Stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return Result{}, fmt.Errorf("run %s: %w", c.Path, ctx.Err())
	case errors.As(err, &exit) && exit.Exited():
	case err != nil:
		return Result{}, fmt.Errorf("run %s: %w", c.Path, err)
	}
	return Result{Stdout: stdout.Bytes(), Stderr: stderr.Bytes(), ExitCode: cmd.ProcessState.ExitCode()}, nil
}

// maxWords bounds, in bytes, what of a program's own words goes into an error.
const maxWords = 600

// Words makes one harmless line of what a program wrote to its standard error, cut
// where it is long.
func Words(stderr []byte) string {
	line := strings.Join(strings.Fields(string(stderr[:min(len(stderr), maxWords)])), " ")
	var clean strings.Builder
	for _, r := range line {
		if strconv.IsPrint(r) {
			clean.WriteRune(r)
		} else {
			clean.WriteByte('?')
		}
	}
	return clean.String()
}
