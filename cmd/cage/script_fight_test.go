package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"cage/report"
	"cage/report/reporttest"

	"github.com/rogpeppe/go-internal/testscript"
)

// What the session log has to say, for scenarios about fights:
//
//	logged [-count=N] <file> <event> <field>=<value>...
//	    wants events with these values in the log that a report names: one or
//	    more, or exactly N

func cmdLogged(ts *testscript.TestScript, neg bool, args []string) {
	noNegation(ts, neg)
	count := -1
	if len(args) > 0 && strings.HasPrefix(args[0], "-count=") {
		n, err := strconv.Atoi(strings.TrimPrefix(args[0], "-count="))
		ts.Check(err)
		count, args = n, args[1:]
	}
	if len(args) < 2 {
		ts.Fatalf("usage: logged [-count=N] <file> <event> <field>=<value>...")
	}
	found := 0
	for _, event := range sessionLog(ts, args[0]) {
		if event["event"] == args[1] && matches(event, args[2:]) {
			found++
		}
	}
	if found == 0 && count < 0 || count >= 0 && found != count {
		ts.Fatalf("%d events %v in the log", found, args[1:])
	}
}

// sessionLog returns the events of the log that a report names.
func sessionLog(ts *testscript.TestScript, file string) []map[string]any {
	watch, _ := document(ts, file)["watch"].(map[string]any)
	path, _ := watch["session_log"].(string)
	data, err := os.ReadFile(path)
	ts.Check(err)
	validate, err := reporttest.CompileBy(report.EventSchema())
	ts.Check(err)
	var events []map[string]any
	for line := range strings.Lines(string(data)) {
		var event map[string]any
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			ts.Fatalf("the log has the line %q: %v", line, err)
		}
		if err := validate([]byte(line)); err != nil {
			ts.Fatalf("the log has the line %q: %v", line, err)
		}
		events = append(events, event)
	}
	return events
}

// hasUserNamespaces reports whether unshare can make a user namespace in which
// the limits of inotify can be lowered.
func hasUserNamespaces() bool {
	return exec.Command("unshare", "-Ur", "sh", "-c", "echo 100 >/proc/sys/user/max_inotify_watches").Run() == nil
}

func matches(event map[string]any, pairs []string) bool {
	for _, pair := range pairs {
		field, value, _ := strings.Cut(pair, "=")
		if got, ok := event[field]; !ok || spell(got) != value {
			return false
		}
	}
	return true
}
