package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"cage/internal/pushguard"
	"cage/internal/torture"
	"cage/report"
	"cage/report/reporttest"
	"cage/spawn"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// The scenarios in testdata/script run the real program on real repositories
// with real processes. Beside testscript's own commands they have:
//
//	exits <code> <program> [args...]   runs it and wants that exit code
//	report <file> <field>=<value>...   wants these values in a report; fields
//	                                   are joined by dots, null is "null"
//	row <file> <path> <field>=<value>...  the same of the row of a path
//	norow <file> <path>                wants no row for a path
//	snap <name> <path>...              remembers trees: names, bytes, modes,
//	                                   owners, times, attributes
//	same <name>                        wants them to be as remembered
//	conforms <document> <file>         validates a document of a subcommand
//	                                   against its schema
//
// those of script_refuse_test.go for calls that are refused, of
// script_fight_test.go for the session log, of script_restore_test.go for
// displaced versions, and of script_check_test.go for checks.
//
// Every report that is looked at is validated against the schema first.

func TestMain(m *testing.M) {
	torture.Main()
	spawn.Main() // a stage is called by several names
	testscript.Main(m, map[string]func(){
		"cage":          main,
		"tamper":        tamperMain,
		pushguard.Stage: main,
	})
}

func TestScripts(t *testing.T) {
	var once sync.Once
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("..", "..", "testdata", "script"),
		Setup: func(env *testscript.Env) error {
			// Where -run leaves scripts out, testscript leaves the folder of all.
			once.Do(func() { t.Cleanup(func() { os.Remove(filepath.Dir(env.WorkDir)) }) })
			return setUpScript(env)
		},
		Cmds:                scriptCommands(),
		Condition:           scriptCondition,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// repeats returns how often CAGE_REPEAT says to run what has to hold every
// time, and standard where it says nothing.
func repeats(t *testing.T, standard int) int {
	t.Helper()
	text := os.Getenv("CAGE_REPEAT")
	if text == "" {
		return standard
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("CAGE_REPEAT=%q is no count", text)
	}
	return n
}

// setUpScript gives a script a home, a state folder and a temporary folder of
// its own beside its work, and git an identity and nothing of the machine's
// configuration.
func setUpScript(env *testscript.Env) error {
	for name, dir := range map[string]string{
		"HOME": "home", "XDG_STATE_HOME": "state", "TMPDIR": "tmp",
	} {
		path := filepath.Join(env.WorkDir, dir)
		if err := os.MkdirAll(path, 0o700); err != nil {
			return err
		}
		env.Setenv(name, path)
	}
	for name, value := range map[string]string{
		"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1",
		"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.invalid",
		"GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.invalid",
	} {
		env.Setenv(name, value)
	}
	// With the race detector every program waits a second at its end.
	env.Setenv("GORACE", "atexit_sleep_ms=50")
	module, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return err
	}
	env.Setenv("MODULE", module)
	// What a script cannot spell.
	env.Setenv("/n", "\n")
	env.Setenv("/e", "\x1b")
	env.Setenv("BAD", "\uFFFD") // as a report has a byte that is no UTF-8
	env.Setenv("MARK", filepath.Join(env.WorkDir, "the-command-ran"))
	env.Values[snapshotsKey{}] = make(map[string]string)
	env.Defer(func() { forgetNotes(env.WorkDir) })
	return nil
}

// forgetNotes removes what the state folder in the user's home knows of sessions
// in a script's folder: those that the script killed for good.
func forgetNotes(below string) {
	me, err := user.Current()
	if err != nil {
		return
	}
	notes, err := filepath.Glob(filepath.Join(me.HomeDir, ".local/state/cage/roots/*"))
	if err != nil {
		return
	}
	for _, note := range notes {
		if data, err := os.ReadFile(note); err == nil && bytes.Contains(data, []byte(below)) {
			os.Remove(note)
		}
	}
}

// scriptCondition knows `[root]`, `[mounts]`, `[userns]` and `[traces]`, beside
// testscript's own `[exec:name]` and `[linux]`.
func scriptCondition(name string) (bool, error) {
	switch name {
	case "root":
		return os.Geteuid() == 0, nil
	case "mounts":
		return canMount(), nil
	case "userns":
		return hasUserNamespaces(), nil
	case "traces":
		return canTrace(), nil
	default:
		return false, fmt.Errorf("unknown condition %q", name)
	}
}

func scriptCommands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"exits":  cmdExits,
		"report": cmdReport,
		"row":    cmdRow,
		"norow":  cmdNoRow,
		"snap":   cmdSnap,
		"same":   cmdSame,

		"refuses": cmdRefuses,
		"unfit":   cmdUnfit,
		"misused": cmdMisused,

		"conforms": cmdConforms,

		"logged": cmdLogged,

		"checked":   cmdChecked,
		"finding":   cmdFinding,
		"nofinding": cmdNoFinding,

		"displaced": cmdDisplaced,
		"original":  cmdOriginal,
	}
}

func noNegation(ts *testscript.TestScript, neg bool) {
	if neg {
		ts.Fatalf("this command cannot be negated")
	}
}

func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	noNegation(ts, neg)
	if len(args) < 2 {
		ts.Fatalf("usage: exits <code> <program> [args...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("%s exited %d, want %d", args[1], got, want)
	}
}

// document is a report as a reader of JSON has it.
func document(ts *testscript.TestScript, file string) map[string]any {
	data, err := os.ReadFile(ts.MkAbs(file))
	ts.Check(err)
	if err := reporttest.Validate(data); err != nil {
		ts.Fatalf("%s is no valid report: %v", file, err)
	}
	var doc map[string]any
	ts.Check(json.Unmarshal(data, &doc))
	return doc
}

func cmdConforms(ts *testscript.TestScript, neg bool, args []string) {
	noNegation(ts, neg)
	if len(args) != 2 {
		ts.Fatalf("usage: conforms <document> <file>")
	}
	schemas := map[string]string{"doctor": report.DoctorSchema(), "suggest": report.SuggestSchema()}
	schema, known := schemas[args[0]]
	if !known {
		ts.Fatalf("unknown document %q", args[0])
	}
	ts.Check(reporttest.ValidateBy(schema, []byte(ts.ReadFile(args[1]))))
}

func cmdReport(ts *testscript.TestScript, neg bool, args []string) {
	noNegation(ts, neg)
	if len(args) < 2 {
		ts.Fatalf("usage: report <file> <field>=<value>...")
	}
	want(ts, document(ts, args[0]), args[1:])
}

func cmdRow(ts *testscript.TestScript, neg bool, args []string) {
	noNegation(ts, neg)
	if len(args) < 3 {
		ts.Fatalf("usage: row <file> <path> <field>=<value>...")
	}
	row := findRow(ts, args[0], args[1])
	if row == nil {
		ts.Fatalf("no row for %s in %s", args[1], args[0])
	}
	want(ts, row, args[2:])
}

func cmdNoRow(ts *testscript.TestScript, neg bool, args []string) {
	noNegation(ts, neg)
	if len(args) != 2 {
		ts.Fatalf("usage: norow <file> <path>")
	}
	if row := findRow(ts, args[0], args[1]); row != nil {
		ts.Fatalf("a row for %s: %v", args[1], row)
	}
}

func findRow(ts *testscript.TestScript, file, path string) map[string]any {
	rows, _ := document(ts, file)["changes"].([]any)
	for _, row := range rows {
		if fields, ok := row.(map[string]any); ok && fields["path"] == path {
			return fields
		}
	}
	return nil
}

// want compares fields of a document, named by dots, with their values.
func want(ts *testscript.TestScript, doc map[string]any, pairs []string) {
	for _, pair := range pairs {
		field, value, ok := strings.Cut(pair, "=")
		if !ok {
			ts.Fatalf("%q is no <field>=<value>", pair)
		}
		var got any = doc
		for name := range strings.SplitSeq(field, ".") {
			object, ok := got.(map[string]any)
			if !ok {
				ts.Fatalf("%s: %v is no object", field, got)
			}
			if got, ok = object[name]; !ok {
				ts.Fatalf("%s: there is no field %q", field, name)
			}
		}
		if text := spell(got); text != value {
			ts.Fatalf("%s is %s, want %s", field, text, value)
		}
	}
}

func spell(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	default:
		text, _ := json.Marshal(v)
		return string(text)
	}
}

type snapshotsKey struct{}

// snapshots are what `snap` remembered: a listing by name, with the paths it
// was made of in the first line.
func snapshots(ts *testscript.TestScript) map[string]string {
	return ts.Value(snapshotsKey{}).(map[string]string)
}

func cmdSnap(ts *testscript.TestScript, neg bool, args []string) {
	noNegation(ts, neg)
	if len(args) < 2 {
		ts.Fatalf("usage: snap <name> <path>...")
	}
	paths := slices.Clone(args[1:])
	for i := range paths {
		paths[i] = ts.MkAbs(paths[i])
	}
	snapshots(ts)[args[0]] = strings.Join(paths, "\x00") + "\n" + listing(ts, paths)
}

func cmdSame(ts *testscript.TestScript, neg bool, args []string) {
	noNegation(ts, neg)
	if len(args) != 1 {
		ts.Fatalf("usage: same <name>")
	}
	paths, before, ok := strings.Cut(snapshots(ts)[args[0]], "\n")
	if !ok {
		ts.Fatalf("nothing was remembered as %q", args[0])
	}
	after := listing(ts, strings.Split(paths, "\x00"))
	if before != after {
		ts.Fatalf("%s is not the same:\n--- before\n%s--- after\n%s", args[0], before, after)
	}
}

// listing describes everything at and below the paths: a line each, with what
// a restore has to bring back.
func listing(ts *testscript.TestScript, paths []string) string {
	var lines strings.Builder
	for _, top := range paths {
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			line, err := describe(path)
			fmt.Fprintf(&lines, "%s\n", line)
			return err
		})
		if errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(&lines, "%q absent\n", top)
			continue
		}
		ts.Check(err)
	}
	return lines.String()
}

// describe spells one entry. A directory's own time is left out: putting a file
// back moves it.
func describe(path string) (string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	stat := info.Sys().(*syscall.Stat_t)
	line := fmt.Sprintf("%q %v %d:%d", path, info.Mode(), stat.Uid, stat.Gid)
	switch {
	case info.Mode().IsRegular():
		data, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		line += fmt.Sprintf(" %d %q %s", info.ModTime().UnixNano(), data, attributes(path))
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		line += fmt.Sprintf(" -> %q", target)
	}
	return line, nil
}

// attributes spells a file's extended attributes, where there are any.
func attributes(path string) string {
	names := make([]byte, 4096)
	n, err := unix.Llistxattr(path, names)
	if err != nil {
		return ""
	}
	all := strings.Split(strings.TrimSuffix(string(names[:n]), "\x00"), "\x00")
	slices.Sort(all)
	var text strings.Builder
	for _, name := range all {
		value := make([]byte, 4096)
		if n, err := unix.Lgetxattr(path, name, value); err == nil {
			fmt.Fprintf(&text, "%s=%q ", name, value[:n])
		}
	}
	return text.String()
}
