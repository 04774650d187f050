package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"cage/report/reporttest"

	"github.com/rogpeppe/go-internal/testscript"
)

// What a call that is refused must look like:
//
//	refuses <code> <message> [flags...]
//	    runs the cage with these flags, --json and --report-file: the command
//	    never runs, the exit code is 2, stderr is one line with the code and the
//	    message, a regular expression, and one with a fix, and stdout and the
//	    report file hold the same in a valid document
//	unfit <message> <file>
//	    the same for a --report-file that is not taken, which is not written
//	misused <message> [args...]
//	    runs the cage with these arguments: nothing runs, the exit code is 2,
//	    stderr is one line, stdout nothing
//
// The command would leave a mark, $MARK. That it is not there proves that
// nothing ran.

func markOf(ts *testscript.TestScript) string { return ts.Getenv("MARK") }

func cmdRefuses(ts *testscript.TestScript, neg bool, args []string) {
	noNegation(ts, neg)
	if len(args) < 2 {
		ts.Fatalf("usage: refuses <code> <message> [flags...]")
	}
	file := filepath.Join(ts.Getenv("WORK"), "refusal.json")
	stdout := wantRefusal(ts, args[0], args[1], append(args[2:], "--report-file", file))
	written, err := os.ReadFile(file)
	ts.Check(err)
	if !bytes.Equal(written, []byte(stdout)) {
		ts.Fatalf("the report file differs from stdout:\n%s", written)
	}
	ts.Check(os.Remove(file))
}

func cmdUnfit(ts *testscript.TestScript, neg bool, args []string) {
	noNegation(ts, neg)
	if len(args) != 2 {
		ts.Fatalf("usage: unfit <message> <file>")
	}
	wantRefusal(ts, "GXT_CAGE_REPORT_FILE_INVALID", args[0], []string{"--report-file", args[1]})
}

// wantRefusal runs the cage with flags and wants it refused for everybody: the
// lines on stderr, and the document on stdout, which it returns.
func wantRefusal(ts *testscript.TestScript, code, pattern string, flags []string) (document string) {
	message := wholeText(ts, pattern)
	stdout, stderr := refused(ts, append(flags, "--json", "--", "touch", markOf(ts)))
	lines := strings.SplitAfter(strings.TrimSuffix(stderr, "\n"), "\n")
	prefix := "cage: [" + code + "] "
	if !strings.HasPrefix(lines[0], prefix) || len(lines) != 2 || !strings.HasPrefix(lines[1], "fix: ") {
		ts.Fatalf("stderr is not one line with %s and one with a fix:\n%s", code, stderr)
	}
	if text := strings.TrimSpace(strings.TrimPrefix(lines[0], prefix)); !message.MatchString(text) {
		ts.Fatalf("the message is not %q:\n%s", pattern, text)
	}
	refusalDocument(ts, code, []byte(stdout))
	return stdout
}

func cmdMisused(ts *testscript.TestScript, neg bool, args []string) {
	noNegation(ts, neg)
	if len(args) < 1 {
		ts.Fatalf("usage: misused <message> [args...]")
	}
	message := wholeText(ts, args[0])
	stdout, stderr := refused(ts, args[1:])
	line, rest, ended := strings.Cut(stderr, "\n")
	if !ended || rest != "" || !strings.HasPrefix(line, "cage: ") {
		ts.Fatalf("stderr is not one line of ours:\n%s", stderr)
	}
	if text := strings.TrimPrefix(line, "cage: "); !message.MatchString(text) {
		ts.Fatalf("the message is not %q:\n%s", args[0], text)
	}
	if stdout != "" {
		ts.Fatalf("stdout is not empty:\n%s", stdout)
	}
}

func wholeText(ts *testscript.TestScript, pattern string) *regexp.Regexp {
	expression, err := regexp.Compile("^(?:" + pattern + ")$")
	ts.Check(err)
	return expression
}

// refused runs the cage, wants the exit code 2 and that no mark was left.
func refused(ts *testscript.TestScript, args []string) (stdout, stderr string) {
	err := ts.Exec("cage", args...)
	stdout, stderr = ts.ReadFile("stdout"), ts.ReadFile("stderr")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitUsage {
		ts.Fatalf("cage %q was not refused: %v", args, err)
	}
	if _, err := os.Lstat(markOf(ts)); !errors.Is(err, fs.ErrNotExist) {
		ts.Fatalf("the command ran, or may have: %v", err)
	}
	return stdout, stderr
}

// refusalDocument wants a valid document of a refusal with that code.
func refusalDocument(ts *testscript.TestScript, code string, data []byte) {
	if err := reporttest.Validate(data); err != nil {
		ts.Fatalf("no valid document: %v\n%s", err, data)
	}
	var document struct {
		Status    string   `json:"status"`
		ErrorCode string   `json:"error_code"`
		FixHints  []string `json:"fix_hints"`
		ExitCode  int      `json:"exit_code"`
	}
	ts.Check(json.Unmarshal(data, &document))
	if document.Status != "failed" || document.ErrorCode != code || len(document.FixHints) == 0 || document.ExitCode != exitUsage {
		ts.Fatalf("not the document of %s:\n%s", code, data)
	}
}
