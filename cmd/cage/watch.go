package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"cage/report"
	"cage/session"

	"github.com/spf13/cobra"
)

// watchFlags are the flags of a watch as they were given.
type watchFlags struct {
	guardFlags
	pid processNumber
}

func newWatch(code *int) *cobra.Command {
	f := watchFlags{guardFlags: newGuardFlags()}
	c := &cobra.Command{
		Use:   "watch [flags]",
		Short: "Guard the files without running a command",
		Long: `Guards the protected files of the repository around the current directory until
you end it: for an agent that runs inside an editor or was started elsewhere.
What is changed is put back, and a line says so. Nothing is ended, unless --pid
names a program: that is halted when it keeps fighting.`,
		Args: noArguments,
		Annotations: map[string]string{endingKey: `It ends on SIGINT (Ctrl-C), SIGTERM, SIGHUP or SIGQUIT, or with the program of --pid.

Exit codes, decided from the top:
  4   the program of --pid was halted
  3   a protected file was changed; the report says whether all is back
  2   the watch did not begin
  0   no protected file was changed
`},
		RunE: func(c *cobra.Command, _ []string) (err error) {
			*code, err = f.watch(c)
			return err
		},
	}
	f.register(c)
	return c
}

func (f *watchFlags) register(c *cobra.Command) {
	a := addTo(c)
	f.addGuarding(a)

	const fights = "When a program fights"
	a.add(fights, &f.contestLimit, "contest-limit", "rounds of one path before it is put back after growing pauses only, 0 for always at once (default .cage.yaml, then 3)")
	a.add(fights, &f.pid, "pid", "halt this program instead, which already runs, and end when it ends")
	a.add(fights, &f.ruleContestLimit, "rule-contest-limit", "with --pid: rounds of one rule before it is halted, 0 counts none (default .cage.yaml, then 10)")
	a.add(fights, &f.grace, "grace", "with --pid: time between SIGTERM and SIGKILL")

	f.addTelling(a, "print every event on stdout, as a line of JSON")
	completeValues(c)
}

// watch watches and prints what came of it. Without a report the error is a
// usage error or a *session.Refusal.
func (f *watchFlags) watch(c *cobra.Command) (int, error) {
	for _, name := range []string{"rule-contest-limit", "grace"} {
		if f.pid == 0 && c.Flags().Changed(name) {
			return 0, usage("--%s goes with --pid; see cage watch --help", name)
		}
	}
	// In the background of a terminal (stty tostop) a line on stderr must not stop
	// the guard.
	signal.Ignore(syscall.SIGTTOU)
	over := takeSignals()
	doc, err := session.Watch(c.Context(), session.WatchOptions{Guarding: f.guarding(), PID: int(f.pid), Events: f.events()})
	if doc == nil {
		over(report.ExitRefused)
		f.printRefusalLine(err)
		return 0, err
	}
	over(doc.ExitCode)
	fmt.Fprint(os.Stderr, report.Summary(*doc, colours(os.Stderr)))
	return doc.ExitCode, err
}

func (f *watchFlags) events() io.Writer {
	if !f.json {
		return nil
	}
	return os.Stdout
}

// printRefusalLine shows a refusal to programs as a line, like every event. If
// that fails, complain's line for people still says it.
func (f *watchFlags) printRefusalLine(err error) {
	var refusal *session.Refusal
	if !f.json || !errors.As(err, &refusal) {
		return
	}
	var line bytes.Buffer
	if document, err := refusal.JSON(); err == nil && json.Compact(&line, document) == nil {
		line.WriteByte('\n')
		os.Stdout.Write(line.Bytes())
	}
}
