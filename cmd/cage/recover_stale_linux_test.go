package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// work is what a person does the next day.
const (
	ownEnv      = "A=mine\n"
	ownWorkflow = "on: mine\n"
)

// newLeftOvernight is a session that was killed yesterday, whose files a person
// has worked on since. One of its processes still runs.
func newLeftOvernight(t *testing.T) *interrupted {
	t.Helper()
	f := newField(t)
	i := f.interrupt(filepath.Join(f.repo, ".git"), survivors+murder)
	i.lastLived(24 * time.Hour)
	i.write(".env", ownEnv)
	i.write(".github/workflows/ci.yml", ownWorkflow)
	return i
}

func (i *interrupted) asPersonLeft() {
	i.t.Helper()
	i.whole(".env", ownEnv)
	i.whole(".github/workflows/ci.yml", ownWorkflow)
	i.whole(".env.new", "evil\n")
}

// review decides about an interrupted session.
func (i *interrupted) review(decision string) *run {
	i.t.Helper()
	r := i.prepare("cage", "review", "--recover", decision)
	r.begin()
	r.exits(0)
	return r
}

// Promise: nothing that somebody worked on since is touched by a recovery; what
// the session left running is ended all the same. A person decides, and both
// sides are kept whatever they decide. Then the next start works.
func TestLaterWorkIsNotTouched(t *testing.T) {
	t.Run("restore", func(t *testing.T) {
		t.Parallel()
		i := newLeftOvernight(t)
		for _, ended := range []string{"; 3 of its processes were ended\n", ".github/workflows/ci.yml\n"} {
			i.refusesToStart("GXT_CAGE_RECOVERY_STALE", "cage review --recover restore|keep", ".env", ".env.new", ".github/workflows/ci.yml", ended)
			i.asPersonLeft()
			i.gone()
		}
		i.review("restore").says("cage: recovered an interrupted session " + i.session + ": 3 files put back")
		i.unharmed()
		i.cleared()
		i.stored(ownEnv, ownWorkflow, "evil\n")
		i.next(0)
		i.wants("recovery=null", "changes=[]")
	})
	t.Run("keep", func(t *testing.T) {
		t.Parallel()
		i := newLeftOvernight(t)
		i.refusesToStart("GXT_CAGE_RECOVERY_STALE")
		r := i.review("keep")
		r.says("cage: recovered an interrupted session " + i.session)
		r.says("3 files left as they are")
		r.says("stored         2 versions, as the session found them, in ")
		i.asPersonLeft()
		i.stored(dotenv, workflow)
		i.next(0)
		i.wants("recovery=null", "changes=[]")
		i.asPersonLeft()
	})
	t.Run("decided at once", func(t *testing.T) {
		t.Parallel()
		i := newLeftOvernight(t)
		i.review("keep")
		i.gone()
		i.asPersonLeft()
	})
}

// Promise: what a killed session left running decides nothing about its files.
func TestProcessOfASessionDecidesNothing(t *testing.T) {
	t.Parallel()
	f := newField(t)
	i := f.interrupt(filepath.Join(f.repo, ".git"), murder)
	for _, decision := range []string{"restore", "keep"} {
		r := i.prepare("cage", "review", "--recover", decision)
		r.cmd.Env = append(r.cmd.Env, "GANTRY_CAGE_SESSION="+i.session)
		r.begin()
		r.exits(2)
		r.says("cage: [GXT_CAGE_REVIEW_IN_SESSION] this is a process of a session")
		i.harmed()
	}
	i.recovers("recovery.restored=3")
}

// Promise: what was put back is told of also where the next session then does not
// begin, as for rules that are not valid.
func TestRecoveryIsToldOfBeforeARefusal(t *testing.T) {
	t.Parallel()
	f := newField(t)
	i := f.interrupt(filepath.Join(f.repo, ".git"), murder)
	r := i.next(2, "--allow-override", "main.go")
	r.says("cage: recovered an interrupted session " + i.session + ": 3 files put back, 0 processes ended\ncage: [GXT_CAGE_OVERRIDE_INVALID] ")
	i.unharmed()
	i.cleared()
	i.next(0)
	i.wants("recovery=null")
}

// Promise: so it is for what somebody removed since, with all that was around it,
// and for a clock that cannot be right.
func TestWorkIsSeenInWhateverIsLeftOfIt(t *testing.T) {
	t.Run("removed with its directories", func(t *testing.T) {
		t.Parallel()
		f := newField(t)
		i := f.interrupt(filepath.Join(f.repo, ".git"), standStill+die)
		i.lastLived(24 * time.Hour)
		i.must(os.RemoveAll(i.path(".github")))
		i.refusesToStart("GXT_CAGE_RECOVERY_STALE", ": .github/workflows/ci.yml\n")
		if _, err := os.Lstat(i.path(".github")); err == nil {
			t.Error("it was put back")
		}
	})
	t.Run("added", func(t *testing.T) {
		t.Parallel()
		f := newField(t)
		i := f.interrupt(filepath.Join(f.repo, ".git"), standStill+die)
		i.lastLived(24 * time.Hour)
		i.write(".env.mine", "mine\n")
		i.refusesToStart("GXT_CAGE_RECOVERY_STALE", ": .env.mine\n")
		i.whole(".env.mine", "mine\n")
	})
	t.Run("a clock in doubt", func(t *testing.T) {
		t.Parallel()
		i := newInterrupted(t)
		i.lastLived(-time.Hour)
		i.refusesToStart("GXT_CAGE_RECOVERY_STALE")
		i.harmed()
	})
	t.Run("a minute too late", func(t *testing.T) {
		t.Parallel()
		i := newInterrupted(t)
		i.lastLived(11 * time.Minute)
		i.refusesToStart("GXT_CAGE_RECOVERY_STALE")
		i.harmed()
	})
}

// Promise: within minutes, and where nobody has done anything since, the files
// are put back.
func TestRecentSessionIsRecovered(t *testing.T) {
	t.Run("minutes ago", func(t *testing.T) {
		t.Parallel()
		i := newInterrupted(t)
		i.lastLived(9 * time.Minute)
		i.recovers("recovery.restored=3")
		i.stored(dotenv+"evil\n", "evil\n")
	})
	t.Run("begun once and not finished", func(t *testing.T) {
		t.Parallel()
		f := newField(t)
		f.write("sub/.env", "S=1\n")
		f.write("sub/.env.two", "S=2\n")
		i := f.interrupt(filepath.Join(f.repo, ".git"), standStill+"rm sub/.env sub/.env.two"+murder)
		// What a recovery leaves that was killed: one file is back, its directory
		// as young as that.
		i.lastLived(24 * time.Hour)
		for _, name := range i.lives() {
			i.rewrite(name, func(record map[string]any) { record["recovering"] = time.Now() })
		}
		i.write("sub/.env", "S=1\n")
		i.must(os.RemoveAll(i.path(".env.new")))
		i.write(".github/workflows/ci.yml", workflow)
		i.refusesToStart("GXT_CAGE_RECOVERY_STALE", ": .env\n")
	})
	t.Run("nothing differs", func(t *testing.T) {
		t.Parallel()
		f := newField(t)
		i := f.interrupt(filepath.Join(f.repo, ".git"), survivors+standStill+die)
		i.lastLived(24 * time.Hour)
		i.write("main.go", "package main\n")
		i.must(os.Remove(i.path("main.go")))
		i.recovers("recovery.restored=0", "recovery.processes_ended=3")
	})
	t.Run("only a report-mode file differs", func(t *testing.T) {
		t.Parallel()
		f := newField(t)
		f.write("go.sum", "a\n")
		i := f.interrupt(filepath.Join(f.repo, ".git"), murder)
		f.write("go.sum", "b\n")
		i.must(os.Rename(i.path("go.sum"), i.path("ready")))
		i.must(os.Rename(i.path("ready"), i.path("go.sum")))
		i.next(0)
		i.wants("recovery.restored=3")
		i.whole("go.sum", "b\n")
	})
}

// Promise: a hooks folder outside the repository is compared with the last sign
// of life too, even where the session bent git's config away from it.
func TestLaterWorkOnHooksOutsideIsNotTouched(t *testing.T) {
	t.Parallel()
	f := newField(t)
	f.write("../hooks/pre-commit", "#!/bin/sh\n")
	f.write("../hooks/mine", "mine\n")
	f.git("config", "core.hooksPath", filepath.Join(f.work, "hooks"))
	i := f.interrupt(filepath.Join(f.repo, ".git"), standStill+`
git config core.hooksPath /nowhere
echo evil >../hooks/pre-commit
`+murder)
	i.next(0)
	i.wants("recovery.restored=5")
	i.whole("../hooks/pre-commit", "#!/bin/sh\n")
	i.whole("../hooks/mine", "mine\n")
	i.unharmed()

	i = f.interrupt(filepath.Join(f.repo, ".git"), standStill+`
git config core.hooksPath /nowhere
echo evil >../hooks/pre-commit
`+murder)
	// The session's doing is a minute old, the person's is of now.
	i.lastLived(11 * time.Minute)
	i.must(os.RemoveAll(i.path("ran")))
	i.refusesToStart("GXT_CAGE_RECOVERY_STALE")
	i.whole("../hooks/pre-commit", "evil\n")
	i.review("restore")
	i.whole("../hooks/pre-commit", "#!/bin/sh\n")
}

// Promise: a hooks folder that is gone, or another one, is said to be; nothing is
// written into another one. The journal stays until the folder is back, or a
// person takes the hooks out of it.
func TestHooksFolderThatIsGone(t *testing.T) {
	const hook = "#!/bin/sh\n"
	for name, decide := range map[string]func(i *interrupted){
		"put back": func(i *interrupted) {
			i.must(os.Rename(filepath.Join(i.work, "away"), filepath.Join(i.work, "hooks")))
			i.recovers("recovery.restored=1")
			i.whole("../hooks/pre-commit", hook)
		},
		"given up": func(i *interrupted) {
			i.review("keep").says("1 file left as it is")
			i.stored(hook, dotenv+"evil\n", "evil\n")
			i.next(0)
			i.wants("recovery=null")
		},
		"another one": func(i *interrupted) {
			i.write("../hooks/pre-commit", "mine\n")
			i.refusesToStart("GXT_CAGE_RECOVERY_INCOMPLETE")
			i.whole("../hooks/pre-commit", "mine\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newField(t)
			f.write("../hooks/pre-commit", hook)
			f.git("config", "core.hooksPath", filepath.Join(f.work, "hooks"))
			i := f.interrupt(filepath.Join(f.repo, ".git"), standStill+"echo evil >../hooks/pre-commit\nmv ../hooks ../away"+murder)
			i.refusesToStart("GXT_CAGE_RECOVERY_INCOMPLETE", "folder is gone")
			i.unharmed()
			decide(i)
		})
	}
}

// Promise: what nothing but a signal tells apart from a whole recovery is not
// left half done: one that comes in the middle is obeyed afterwards.
func TestSignalDuringRecovery(t *testing.T) {
	for _, sig := range ending() {
		t.Run(unix.SignalName(sig), func(t *testing.T) {
			t.Parallel()
			f := newField(t)
			i := f.interrupt(filepath.Join(f.repo, ".git"), survivors+murder)
			// What does not listen to SIGTERM takes the grace.
			r := i.cage(`: >ran`, "--grace", "300ms")
			i.eventually("the first survivor is gone", func() bool { return !alive(i.number("../detached")) })
			r.signal(sig)
			r.exits(2)
			r.says("cage: recovered an interrupted session " + i.session + ": 3 files put back, 3 processes ended\ncage: [GXT_CAGE_INTERRUPTED] " + unix.SignalName(sig))
			if _, err := os.Lstat(i.path("ran")); err == nil {
				t.Error("the command ran")
			}
			i.gone()
			i.unharmed()
			i.cleared()
			i.stored(dotenv+"evil\n", "evil\n")
			i.next(0)
			i.wants("recovery=null")
		})
	}
}
