package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// Promise: what a killed session leaves running is ended, what it changed is put
// back, and what that displaces is kept, whatever the settings; then the command
// starts. The report tells all of it.
func TestKilledSessionIsRecovered(t *testing.T) {
	t.Parallel()
	f := newField(t)
	i := f.interrupt(filepath.Join(f.repo, ".git"), survivors+murder, "--keep-displaced", "off")
	i.harmed()
	r := i.next(0, "--keep-displaced", "off")
	r.says("cage: recovered an interrupted session " + i.session + ": 3 files put back, 3 processes ended\n")
	i.wants("status=ok", "recovery.lost=false", "recovery.session="+i.session, "recovery.processes_ended=3", "recovery.restored=3")
	i.whole("ran", "")
	i.gone()
	i.unharmed()
	i.cleared()
	i.stored(dotenv+"evil\n", "evil\n")
	i.logs("recovered")
	i.must(os.Remove(i.path("ran")))
	i.next(0)
	i.wants("recovery=null")
}

// Promise: processes that were started after the last look at them are found by
// the session's name, also those that survivors start while they are ended.
func TestYoungSurvivorsAreFound(t *testing.T) {
	t.Parallel()
	f := newField(t)
	i := f.interrupt(filepath.Join(f.repo, ".git"), standStill+`
setsid sh -c 'trap "setsid sleep 1000 & setsid sleep 1000 & exit" TERM; echo $$ >../detached; while :; do sleep 0.01; done' >/dev/null 2>&1 &
while [ ! -s ../detached ]; do sleep 0.01; done
`+murder, "--watch-interval", "1h")
	i.recovers("recovery.restored=3")
	if alive(i.number("../detached")) {
		t.Error("it lives")
	}
	i.noneCarries("GANTRY_CAGE_SESSION=" + i.session)
}

// noneCarries wants no process to have an entry in its environment.
func (f *field) noneCarries(entry string) {
	f.t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/environ")
	f.must(err)
	for _, name := range names {
		if environ, err := os.ReadFile(name); err == nil && bytes.Contains(append([]byte{0}, environ...), []byte("\x00"+entry+"\x00")) {
			f.t.Errorf("%s has %s", filepath.Dir(name), entry)
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
				unix.Kill(pid, unix.SIGKILL)
			}
		}
	}
}

// Promise: a process that has the number of one that ended is never hit.
func TestReusedNumberIsNotHit(t *testing.T) {
	t.Parallel()
	i := newInterrupted(t)
	foreign := i.foreign()
	start, err := startOf(t, foreign).Int64()
	i.must(err)
	i.records(foreign, json.Number(strconv.FormatInt(start-1, 10)))
	i.recovers("recovery.processes_ended=0", "recovery.restored=3")
	i.untouched(foreign)
}

// foreign starts a process that is nobody's; it ends with the test.
func (f *field) foreign(env ...string) (pid int) {
	f.t.Helper()
	c := exec.Command("sleep", "1000")
	c.Env = append(os.Environ(), env...)
	f.must(c.Start())
	f.t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	return c.Process.Pid
}

// Promise: outside git it is the same.
func TestKilledSessionOutsideGit(t *testing.T) {
	t.Parallel()
	f := newField(t)
	f.must(os.RemoveAll(f.path(".git")))
	i := f.interrupt(filepath.Join(f.work, "tmp"), survivors+murder)
	i.recovers("recovery.processes_ended=3", "recovery.restored=3")
	i.gone()
	i.stored(dotenv+"evil\n", "evil\n")
}

// Promise: outside git, too, another temporary directory hides neither a session
// that runs nor one that was killed.
func TestAnotherTemporaryDirectoryHidesNothing(t *testing.T) {
	t.Parallel()
	f := newField(t)
	f.must(os.RemoveAll(f.path(".git")))
	f.must(os.Mkdir(filepath.Join(f.work, "other"), 0o700))
	elsewhere := func() *run {
		r := f.prepare("cage", f.call(`: >ran`, "--grace", "100ms")...)
		r.cmd.Env = append(r.cmd.Env, "TMPDIR="+filepath.Join(f.work, "other"))
		r.begin()
		return r
	}
	i := f.interrupt(filepath.Join(f.work, "tmp"), `
env TMPDIR=../other cage --report-file ../second.json -- touch ran 2>../second
echo $? >../code
`+murder)
	i.whole("../code", "2\n")
	if _, err := os.Lstat(f.path("ran")); err == nil {
		t.Error("a second session ran")
	}
	r := elsewhere()
	r.exits(0)
	r.says("cage: recovered an interrupted session " + i.session)
	i.unharmed()
	i.cleared()
}

// Promise: in a linked work tree it is the same, for its own git directory and
// for the files it shares.
func TestKilledSessionInALinkedWorktree(t *testing.T) {
	t.Parallel()
	f := newField(t)
	f.git("-c", "user.name=a", "-c", "user.email=a@example.invalid", "commit", "-q", "--allow-empty", "-m", "start")
	f.git("worktree", "add", "-q", "../linked")
	main := f.repo
	linked := *f
	linked.repo = filepath.Join(f.work, "linked")
	linked.write(".env", dotenv)
	linked.write("../repo/.git/hooks/pre-commit", "#!/bin/sh\n")
	config := linked.read("../repo/.git/config")
	i := linked.interrupt(filepath.Join(main, ".git/worktrees/linked"), standStill+`
git config core.hooksPath /nowhere
echo evil >../repo/.git/hooks/pre-commit
echo evil >../repo/.git/worktrees/linked/commondir
`+survivors+murder)
	i.recovers("recovery.processes_ended=3", "recovery.restored=6")
	i.gone()
	i.whole("../repo/.git/config", config)
	i.whole("../repo/.git/hooks/pre-commit", "#!/bin/sh\n")
	i.whole("../repo/.git/worktrees/linked/commondir", "../..\n")
}

func (f *field) git(args ...string) string {
	f.t.Helper()
	c := exec.Command("git", args...)
	c.Dir, c.Env = f.repo, f.env()
	out, err := c.CombinedOutput()
	if err != nil {
		f.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return string(out)
}
