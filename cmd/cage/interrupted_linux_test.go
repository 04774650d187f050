package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cage/internal/kept"

	"golang.org/x/sys/unix"
)

// interrupted is a field whose session was killed by its own child.
type interrupted struct {
	*field
	// session is its name, and journal the folder of what it left.
	session, journal string
}

const workflow = "on: push\n"

// survivors start what outlives a killed cage: a process in a session of its
// own, one whose parent is gone, and one that does not listen.
const survivors = `
setsid sleep 1000 >/dev/null 2>&1 & echo $! >../detached
( sleep 1000 >/dev/null 2>&1 & echo $! >../orphan )
(trap '' TERM; exec sleep 1000 >/dev/null 2>&1) & echo $! >../deaf
`

// standStill stops the cage and waits until it has: a signal reaches its threads
// one after the other.
const standStill = `
kill -STOP $PPID
while grep -hq '^State:.[^T]' /proc/$PPID/task/*/status; do :; done
`

// die kills the cage and does no more.
const die = `
kill -KILL $PPID
exec sleep 1000 >/dev/null 2>&1
`

// murder tampers where the cage cannot see it, and kills it.
const murder = standStill + `
echo evil >>.env
rm -r .github
echo evil >.env.new
` + die

// newInterrupted has the session of a field killed in the middle of its work.
func newInterrupted(t *testing.T, flags ...string) *interrupted {
	t.Helper()
	f := newField(t)
	return f.interrupt(filepath.Join(f.repo, ".git"), murder, flags...)
}

// interrupt runs a script that kills its cage, whose journal lies in dir.
func (f *field) interrupt(dir, script string, flags ...string) *interrupted {
	f.t.Helper()
	f.write(".github/workflows/ci.yml", workflow)
	f.t.Cleanup(func() { f.endAll("detached", "orphan", "deaf") })
	f.cage(script, append([]string{"--grace", "100ms"}, flags...)...).exits(-1)
	folders, err := filepath.Glob(filepath.Join(dir, "gantry-cage-journal*"))
	f.must(err)
	if len(folders) != 1 {
		f.t.Fatalf("the killed session left %q in %s", folders, dir)
	}
	i := &interrupted{field: f, journal: folders[0]}
	i.session = i.record("session.json")["session"].(string)
	return i
}

// endAll ends the processes whose numbers stand in files.
func (f *field) endAll(names ...string) {
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(f.work, name)); err == nil {
			unix.Kill(f.number("../"+name), unix.SIGKILL)
		}
	}
}

// record reads one of the journal's records. Numbers keep all their digits.
func (i *interrupted) record(name string) map[string]any {
	i.t.Helper()
	data, err := os.ReadFile(filepath.Join(i.journal, name))
	i.must(err)
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var record map[string]any
	i.must(decoder.Decode(&record))
	return record
}

// rewrite changes a record as a forger would: with its digest.
func (i *interrupted) rewrite(name string, change func(record map[string]any)) {
	i.t.Helper()
	record := i.record(name)
	change(record)
	data, err := json.Marshal(record)
	i.must(err)
	sum := sha256.Sum256(data)
	i.must(os.WriteFile(filepath.Join(i.journal, name), data, 0o600))
	i.must(os.WriteFile(filepath.Join(i.journal, name+".sha256"), []byte(hex.EncodeToString(sum[:])+"\n"), 0o600))
}

// lives are the names of the life records.
func (i *interrupted) lives() []string {
	i.t.Helper()
	names, err := filepath.Glob(filepath.Join(i.journal, "life-*.json"))
	i.must(err)
	for n := range names {
		names[n] = filepath.Base(names[n])
	}
	return names
}

// lastLived moves the session's last sign of life: file times of the kind that
// is compared with it cannot be moved.
func (i *interrupted) lastLived(ago time.Duration) {
	i.t.Helper()
	for _, name := range i.lives() {
		i.rewrite(name, func(record map[string]any) { record["last_sign"] = time.Now().Add(-ago) })
	}
}

// records adds a process to those that the journal says the session had.
func (i *interrupted) records(pid int, start any) {
	i.t.Helper()
	for _, name := range i.lives() {
		i.rewrite(name, func(record map[string]any) {
			record["processes"] = append(record["processes"].([]any), map[string]any{"pid": pid, "start": start})
		})
	}
}

// startOf is when a process started, as the kernel counts (proc_pid_stat(5)).
func startOf(t *testing.T, pid int) json.Number {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	return json.Number(fields[19])
}

// next starts the next session and waits for its end.
func (i *interrupted) next(code int, flags ...string) *run {
	i.t.Helper()
	r := i.cage(`: >ran`, append([]string{"--grace", "100ms"}, flags...)...)
	r.exits(code)
	return r
}

// recovers wants the next session to recover this one, whole.
func (i *interrupted) recovers(pairs ...string) *run {
	i.t.Helper()
	i.must(os.RemoveAll(i.path("ran")))
	r := i.next(0)
	r.says("cage: recovered an interrupted session " + i.session + ": ")
	i.wants(append([]string{"status=ok", "recovery.lost=false", "recovery.session=" + i.session}, pairs...)...)
	i.whole("ran", "")
	i.unharmed()
	i.cleared()
	return r
}

// unharmed wants the protected files to be as they were.
func (i *interrupted) unharmed() {
	i.t.Helper()
	i.whole(".env", dotenv)
	i.whole(".github/workflows/ci.yml", workflow)
	if _, err := os.Lstat(i.path(".env.new")); err == nil {
		i.t.Error(".env.new is there")
	}
}

// harmed wants them to be as the killed session left them.
func (i *interrupted) harmed() {
	i.t.Helper()
	i.whole(".env", dotenv+"evil\n")
	i.whole(".env.new", "evil\n")
	if _, err := os.Lstat(i.path(".github")); err == nil {
		i.t.Error(".github is there")
	}
}

// cleared wants nothing of the killed session to be left but what it displaced.
func (i *interrupted) cleared() {
	i.t.Helper()
	for _, pattern := range []string{"repo/.git/gantry-cage-*", "repo/.git/worktrees/*/gantry-cage-*", "tmp/gantry-cage-journal*", "tmp/gantry-cage-kept*"} {
		left, err := filepath.Glob(filepath.Join(i.work, pattern))
		i.must(err)
		if len(left) > 0 {
			i.t.Errorf("it left %q", left)
		}
	}
	if notes := i.notes(); len(notes) > 0 {
		i.t.Errorf("it left the notes %q", notes)
	}
	names, err := exec.Command("find", i.repo, "-name", "*.git", "-prune", "-o", "-type", "f", "-print").Output()
	i.must(err)
	known := []string{".env", ".github/workflows/ci.yml", "ran", "ready"}
	for name := range strings.Lines(string(names)) {
		rel, err := filepath.Rel(i.repo, strings.TrimSuffix(name, "\n"))
		i.must(err)
		if !slices.Contains(known, rel) && rel != ".git" {
			i.t.Errorf("it left %s", rel)
		}
	}
}

// needsNotes skips what needs a home that can hold notes. It is the one of the
// password entry, which no environment of a test can change.
func (f *field) needsNotes() {
	f.t.Helper()
	me, err := user.Current()
	f.must(err)
	if err := os.MkdirAll(filepath.Join(me.HomeDir, ".local/state/cage/roots"), 0o700); err != nil {
		f.t.Skipf("the home of this user holds no notes of sessions: %v", err)
	}
}

// notes are the unfinished sessions that the user's home knows in the field.
func (f *field) notes() []string {
	f.t.Helper()
	me, err := user.Current()
	f.must(err)
	all, err := filepath.Glob(filepath.Join(me.HomeDir, ".local/state/cage/roots/*"))
	f.must(err)
	return slices.DeleteFunc(all, func(note string) bool {
		data, err := os.ReadFile(note)
		return err != nil || !bytes.Contains(data, []byte(f.work+"/"))
	})
}

// stored wants a version with that content among those that are kept for good.
func (i *interrupted) stored(contents ...string) {
	i.t.Helper()
	names, err := filepath.Glob(filepath.Join(i.work, "state/cage/sessions", i.session+"-recovered", "*"))
	i.must(err)
	var held []string
	for _, name := range names {
		if filepath.Base(name) == kept.IndexName {
			continue
		}
		data, err := os.ReadFile(name)
		i.must(err)
		held = append(held, string(data))
	}
	slices.Sort(held)
	slices.Sort(contents)
	if !slices.Equal(held, contents) {
		i.t.Errorf("stored are %q, want %q", held, contents)
	}
}

// gone wants the session's survivors to have been ended.
func (i *interrupted) gone() {
	i.t.Helper()
	for _, name := range []string{"detached", "orphan", "deaf"} {
		if pid := i.number("../" + name); alive(pid) {
			i.t.Errorf("%s, process %d, lives", name, pid)
		}
	}
}

// refusesToStart wants the next session to be refused with a code and in words,
// nothing to be run and nothing to be touched.
func (i *interrupted) refusesToStart(code string, words ...string) *run {
	i.t.Helper()
	r := i.next(2)
	r.says("cage: [" + code + "] ")
	r.says("\nfix: ")
	for _, word := range words {
		r.says(word)
	}
	i.wants("status=failed", "error_code="+code, "exit_code=2")
	if _, err := os.Lstat(i.path("ran")); err == nil {
		i.t.Error("the command ran")
	}
	return r
}
