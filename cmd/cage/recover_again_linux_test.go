package main

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"cage/report"
	"cage/report/reporttest"
)

// Promise: a recovery that is killed is recovered by the next start, however
// often that happens. CAGE_REPEAT says how often it is tried.
func TestKilledRecoveryIsRecovered(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 9))
	for range repeats(t, 2) {
		f := newField(t)
		f.write("sub/.env", "S=1\n")
		i := f.interrupt(filepath.Join(f.repo, ".git"), standStill+"echo evil >>sub/.env\n"+survivors+murder)
		for range 4 {
			r := i.prepare("cage", i.call(`: >ran`, "--grace", "50ms")...)
			r.begin()
			time.Sleep(time.Duration(random.IntN(120)) * time.Millisecond)
			r.kill()
		}
		i.must(os.RemoveAll(i.path("ran")))
		i.next(0)
		i.gone()
		i.unharmed()
		i.whole("sub/.env", "S=1\n")
		i.must(os.RemoveAll(i.path("sub")))
		i.cleared()
	}
}

// Promise: --report-only ends what still runs and says what a recovery would do;
// it puts nothing back, leaves the journal as it is and writes none.
func TestReportOnlyRecoversNothing(t *testing.T) {
	t.Parallel()
	f := newField(t)
	i := f.interrupt(filepath.Join(f.repo, ".git"), survivors+murder)
	before := i.contents()
	for _, ended := range []string{"3", "0"} {
		told := ""
		if ended == "3" {
			told = "; 3 of its processes were ended"
		}
		r := i.next(0, "--report-only")
		r.says("cage: an interrupted session " + i.session + " left 3 protected files changed: .env, .env.new, .github/workflows/ci.yml" +
			told + "; --report-only puts nothing back\n")
		i.wants("recovery.session="+i.session, "recovery.processes_ended="+ended, "recovery.restored=0")
		i.gone()
		i.harmed()
		i.whole("ran", "")
		if after := i.contents(); after != before {
			t.Errorf("the journal changed:\n%s\nafter\n%s", after, before)
		}
	}
	i.recovers("recovery.processes_ended=0", "recovery.restored=3")
}

// Promise: git is not disturbed by a session's journal, running or left, nor
// carries anything of it away.
func TestGitBesideAJournal(t *testing.T) {
	t.Parallel()
	f := newField(t)
	f.write(".gitignore", ".env*\nran\nready\ngo\n")
	f.write(".github/workflows/ci.yml", workflow)
	f.git("add", "-A")
	f.git("-c", "user.name=a", "-c", "user.email=a@example.invalid", "commit", "-q", "-m", "start")
	undisturbed := func() {
		t.Helper()
		for _, call := range [][]string{{"status", "--porcelain"}, {"add", "-A", "-n"}, {"clean", "-nd"}, {"fsck", "--strict"}, {"gc", "-q"}} {
			if out := f.git(call...); strings.Contains(out, "gantry") {
				t.Errorf("git %q says %s", call, out)
			}
		}
		f.git("clone", "-q", f.repo, "../clone")
		f.git("clone", "-q", "--mirror", f.repo, "../mirror")
		f.git("worktree", "add", "-q", "--detach", "../tree")
		f.git("worktree", "list")
		f.git("worktree", "prune")
		found, err := exec.Command("find", filepath.Join(f.work, "clone"), filepath.Join(f.work, "mirror"), filepath.Join(f.work, "tree"), "-name", "*gantry*").Output()
		f.must(err)
		if len(found) > 0 {
			t.Errorf("git carried away %s", found)
		}
		f.git("worktree", "remove", "../tree")
		f.must(os.RemoveAll(filepath.Join(f.work, "clone")))
		f.must(os.RemoveAll(filepath.Join(f.work, "mirror")))
	}
	r := f.cage(`: >ready; while [ ! -e go ]; do sleep 0.02; done`)
	f.appears("ready")
	undisturbed()
	f.write("go", "")
	r.exits(0)
	f.must(os.Remove(f.path("go")))
	i := f.interrupt(filepath.Join(f.repo, ".git"), standStill+"echo evil >>.env"+die)
	undisturbed()
	i.next(0)
	i.wants("recovery.restored=1")
	i.whole(".env", dotenv)
	if out := f.git("status", "--porcelain"); out != "" {
		t.Errorf("git status says %s", out)
	}
}

// Promise: the doctor tells what is left, to people and to programs, and changes
// nothing.
func TestDoctorTellsWhatIsLeft(t *testing.T) {
	t.Parallel()
	f := newField(t)
	f.examined(0, "")
	r := f.cage(`: >ready; while [ ! -e go ]; do sleep 0.02; done`)
	f.appears("ready")
	f.examined(0, "running")
	f.write("go", "")
	r.exits(0)
	f.must(os.Remove(f.path("go")))
	f.must(os.Remove(f.path("ready")))
	f.hooksLeft(0)
	stray := filepath.Join(f.work, "tmp", "gantry-cage-hooks-0123456789abcdef")
	f.must(os.Mkdir(stray, 0o700))
	f.examined(1, "push_guard")
	f.must(os.Remove(stray))
	i := f.interrupt(filepath.Join(f.repo, ".git"), "echo evil >>.env; while [ -z \"$(ls .git/gantry-cage-kept)\" ]; do sleep 0.02; done\n"+murder)
	f.hooksLeft(1)
	const lock = ".git/gantry-cage-journal/lock"
	before := i.contents() + i.read(lock)
	text := f.examined(1, "interrupted")
	for _, words := range []string{i.session, i.journal, "cage review --recover restore|keep"} {
		if !strings.Contains(text, words) {
			t.Errorf("the doctor does not say %q:\n%s", words, text)
		}
	}
	// The session may have lived in another time zone.
	if !regexp.MustCompile(`it last lived at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`).MatchString(text) {
		t.Errorf("the doctor does not say when the session last lived:\n%s", text)
	}
	if after := i.contents() + i.read(lock); after != before {
		t.Errorf("the doctor changed the journal:\n%s\nafter\n%s", after, before)
	}
	part := filepath.Join(i.journal, "baseline.json")
	whole, err := os.ReadFile(part)
	i.must(err)
	i.must(os.WriteFile(part, nil, 0o600))
	f.examined(1, "corrupt quarantine")
	i.must(os.WriteFile(part, whole, 0o600))
	i.must(os.Rename(i.journal, filepath.Join(f.work, "journal")))
	f.examined(1, "lost quarantine")
	i.must(os.Rename(filepath.Join(f.work, "journal"), i.journal))
	i.recovers("recovery.restored=3")
	f.hooksLeft(0)
	f.examined(0, "")
}

// Promise: hooks of a killed session go with the recovery, also where its
// journal is lost and the temporary directory is another one.
func TestHooksOfAKilledSessionGo(t *testing.T) {
	t.Parallel()
	f := newField(t)
	f.needsNotes()
	for _, lost := range []bool{false, true} {
		i := f.interrupt(filepath.Join(f.repo, ".git"), murder)
		f.hooksLeft(1)
		if lost {
			f.must(os.RemoveAll(i.journal))
		}
		r := f.prepare("cage", "--", "true")
		r.cmd.Env = append(r.cmd.Env, "TMPDIR="+filepath.Join(f.work, "home"))
		r.begin()
		r.exits(0)
		f.hooksLeft(0)
	}
}

// hooksLeft wants so many folders of hooks in the temporary directory.
func (f *field) hooksLeft(want int) {
	f.t.Helper()
	left, err := filepath.Glob(filepath.Join(f.work, "tmp", "gantry-cage-hooks-*"))
	f.must(err)
	if len(left) != want {
		f.t.Errorf("the folders of hooks are %q, want %d", left, want)
	}
}

// examined runs the doctor in both forms and wants one leftover of that kind,
// or none. It returns what people read.
func (f *field) examined(code int, kind string) string {
	f.t.Helper()
	r := f.prepare("cage", "doctor", "--json")
	r.begin()
	r.exits(code)
	var found struct {
		Root      string
		Leftovers []struct{ Kind, Place, Text, Fix string }
	}
	f.must(reporttest.ValidateBy(report.DoctorSchema(), r.stdout.Bytes()))
	f.must(json.Unmarshal(r.stdout.Bytes(), &found))
	var kinds []string
	for _, left := range found.Leftovers {
		kinds = append(kinds, left.Kind)
	}
	if got := strings.Join(kinds, " "); got != kind || found.Root != f.repo {
		f.t.Errorf("the doctor finds %q in %s, want %q in %s", got, found.Root, kind, f.repo)
	}
	people := f.prepare("cage", "doctor")
	people.begin()
	people.exits(code)
	return people.stdout.String()
}
