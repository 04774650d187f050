package main

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// newLinked is a field with a second work tree; it returns that as a field too.
func newLinked(t *testing.T) (f, linked *field) {
	t.Helper()
	f = newField(t)
	f.needsNotes()
	f.git("-c", "user.name=a", "-c", "user.email=a@example.invalid", "commit", "-q", "--allow-empty", "-m", "start")
	f.git("worktree", "add", "-q", "../linked")
	other := *f
	other.repo = filepath.Join(f.work, "linked")
	other.write(".env", dotenv)
	return f, &other
}

// Promise: a linked work tree is recovered by what the user's home knows of it,
// whatever became of the file or the directory that leads to its repository.
func TestWorktreeWithoutItsPointer(t *testing.T) {
	for name, bend := range map[string]string{
		"removed":        `rm .git`,
		"broken":         `echo gitdir: /nowhere >.git`,
		"led elsewhere":  `git init -q --template= ../evil; echo gitdir: ../evil/.git >.git`,
		"a repository":   `rm .git; git init -q --template= .`,
		"another common": `git init -q --template= ../evil; echo "$FIELD/evil/.git" >../repo/.git/worktrees/linked/commondir`,
		"no common":      `rm ../repo/.git/worktrees/linked/commondir`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, linked := newLinked(t)
			pointer := linked.read(".git")
			i := linked.interrupt(f.path(".git/worktrees/linked"), standStill+bend+murder)
			r := i.next(0)
			r.says("cage: recovered an interrupted session " + i.session + ": 4 files put back")
			i.unharmed()
			i.whole(".git", pointer)
			i.whole("../repo/.git/worktrees/linked/commondir", "../..\n")
			if _, err := os.Lstat(filepath.Join(f.work, "evil/.git/config")); err == nil {
				i.whole("../evil/.git/config", "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n")
			}
			if notes := i.notes(); len(notes) > 0 {
				t.Errorf("it left the notes %q", notes)
			}
			i.must(os.RemoveAll(i.path("ran")))
			i.next(0)
			i.wants("recovery=null")
		})
	}
}

// Promise: a root that was none of git's when its session was killed is recovered
// where it has become a repository.
func TestRootThatBecameARepository(t *testing.T) {
	t.Parallel()
	f := newField(t)
	f.must(os.RemoveAll(f.path(".git")))
	i := f.interrupt(filepath.Join(f.work, "tmp"), standStill+"git init -q --template= ."+murder)
	i.recovers("recovery.restored=3")
	i.must(os.RemoveAll(i.path("ran")))
	i.next(0)
	i.wants("recovery=null")
}

// Promise: from a directory below, a root is recovered too.
func TestRecoveryFromBelow(t *testing.T) {
	t.Parallel()
	f := newField(t)
	i := f.interrupt(filepath.Join(f.repo, ".git"), standStill+"git config core.worktree /tmp"+murder)
	f.must(os.MkdirAll(f.path("a/b"), 0o755))
	r := i.prepare("cage", i.call(`: >../../ran`, "--grace", "100ms")...)
	r.cmd.Dir = f.path("a/b")
	r.begin()
	r.exits(0)
	r.says("cage: recovered an interrupted session " + i.session)
	i.unharmed()
	i.cleared()
}

// Promise: what work trees share is put back by the session that guarded it,
// even if another work tree's guards it meanwhile and has never known it whole.
func TestSharedFilesAreNotForgotten(t *testing.T) {
	t.Parallel()
	f, linked := newLinked(t)
	config := f.read(".git/config")
	i := linked.interrupt(f.path(".git/worktrees/linked"), standStill+`git config core.hooksPath /nowhere`+murder)
	r := f.cage(`: >ready; while [ ! -e go ]; do sleep 0.02; done`)
	f.appears("ready")
	i.refusesToStart("GXT_CAGE_SESSION_ACTIVE", "../repo/.git/config", "another work tree guards now")
	i.harmed()
	f.write("go", "")
	r.exits(0)
	i.recovers("recovery.restored=4")
	i.whole("../repo/.git/config", config)
}

// Promise: a link by the name of the lock of the shared files is written into by
// nobody.
func TestCommonLockIsNoWayIn(t *testing.T) {
	t.Parallel()
	f := newField(t)
	config := f.read(".git/config")
	f.must(os.Link(f.path(".git/config"), f.path(".git/gantry-cage-common.lock")))
	f.cage(`: >ran`).exits(0)
	f.whole(".git/config", config)
	r := f.cage(`rm .git/gantry-cage-common.lock; ln .git/config .git/gantry-cage-common.lock; : >ready; exec sleep 1000`)
	f.appears("ready")
	r.signal(unix.SIGKILL)
	r.exits(-1)
	f.cage(`: >ran`).exits(0)
	f.whole(".git/config", config)
}

// Promise: a lock that cannot be taken costs an interrupted session nothing:
// its journal stays, and is recovered once the lock can be.
func TestBlockedCommonLockKeepsTheJournal(t *testing.T) {
	t.Parallel()
	i := newInterrupted(t)
	lock := ".git/gantry-cage-common.lock"
	i.must(os.RemoveAll(i.path(lock)))
	i.must(os.MkdirAll(i.path(lock+"/x"), 0o700))
	before := i.contents()
	i.refusesToStart("GXT_CAGE_JOURNAL_UNWRITABLE", lock)
	review := i.prepare("cage", "review", "--recover", "restore")
	review.begin()
	review.exits(2)
	review.says("GXT_CAGE_JOURNAL_UNWRITABLE")
	if after := i.contents(); after != before {
		t.Errorf("the journal was changed:\n%s\nafter\n%s", after, before)
	}
	i.harmed()
	i.must(os.RemoveAll(i.path(lock)))
	i.recovers("recovery.restored=3")
}
