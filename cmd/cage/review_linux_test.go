package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// reviewed runs cage review and returns what it prints.
func (f *field) reviewed(code int, args ...string) (stdout string, r *run) {
	f.t.Helper()
	r = f.prepare("cage", append([]string{"review"}, args...)...)
	r.begin()
	r.exits(code)
	return r.stdout.String(), r
}

// Promise: what was displaced before the cage was killed can be taken back after
// the recovery, where it was not copied too; and what nobody wrote down is
// listed all the same.
func TestReviewAfterRecovery(t *testing.T) {
	t.Parallel()
	f := newField(t)
	f.write(".github/workflows/ci.yml", "on: push\n")
	r := f.cage(`exec >/dev/null 2>&1
		ln -s elsewhere link && mv link .env
		exec 3>made; echo honest >&3; mv made .github/workflows/ci.yml
		: >done; sleep 1000`)
	f.appears("done")
	f.eventually("both are back", func() bool { return f.read(".env") == dotenv && f.read(".github/workflows/ci.yml") == "on: push\n" })
	// The file is still being written: only the link is written down.
	f.eventually("the link is written down", func() bool {
		indexes, _ := filepath.Glob(filepath.Join(f.work, "state/cage/sessions/*/index.json"))
		return len(indexes) == 1
	})
	r.signal(syscall.SIGKILL)
	<-r.over

	_, refused := f.reviewed(2, "--accept", ".env")
	refused.says("[GXT_CAGE_REVIEW_IN_SESSION] session")
	refused.says("was interrupted here and is not recovered yet")
	again := f.cage("true")
	again.exits(0)
	again.says("recovered an interrupted session")

	list, _ := f.reviewed(0)
	for _, want := range []string{"  1 version  .env\n", "  1 version  (nobody wrote down where it stood)\n"} {
		if !strings.Contains(list, want) {
			t.Errorf("no %q in\n%s", want, list)
		}
	}
	patch, _ := f.reviewed(0, "--diff")
	if !strings.Contains(patch, "+elsewhere\n") {
		t.Errorf("the link is not shown:\n%s", patch)
	}
	f.reviewed(0, "--accept", ".env")
	if target, err := os.Readlink(f.path(".env")); err != nil || target != "elsewhere" {
		t.Errorf("%q (%v)", target, err)
	}
	if _, err := os.Lstat(f.path(".git/gantry-cage-journal")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock stays: %v", err)
	}
}

// Promise: a version that was copied, and not yet written down when the cage was
// killed, is listed after the recovery.
func TestReviewOfCopiesThatNobodyWroteDown(t *testing.T) {
	t.Parallel()
	f := newField(t)
	i := f.interrupt(filepath.Join(f.repo, ".git"),
		`echo honest >>.env; while ! grep -qs honest ../state/cage/sessions/*/*; do sleep 0.02; done`+murder, "--watch-interval", "1h")
	i.recovers("recovery.restored=3")
	list, _ := f.reviewed(0, i.session)
	if want := "(nobody wrote down where it stood)  15 bytes\n     " + filepath.Join(f.work, "state/cage/sessions", i.session) + "/"; strings.Count(list, want) != 1 {
		t.Errorf("no %q in\n%s", want, list)
	}
}

// Promise: in a work tree beside one in which a session guards the files that
// both share, those are left to it.
func TestReviewBesideAWorkTree(t *testing.T) {
	t.Parallel()
	f := newField(t)
	for _, args := range [][]string{{"add", "-f", ".env"}, {"-c", "user.name=A", "-c", "user.email=a@example.invalid", "commit", "-qm", "start"}, {"worktree", "add", "-q", "../other"}} {
		git := f.prepare("git", args...)
		git.begin()
		git.exits(0)
	}
	f.cage("mkdir -p .git/hooks; echo '#!/bin/sh' >.git/hooks/pre-commit; sleep 0.1; while [ -e .git/hooks/pre-commit ]; do sleep 0.02; done; echo A=2 >.env").exits(3)
	other := f.prepare("cage", "--", "sh", "-c", ": >ready; exec sleep 1000")
	other.cmd.Dir = filepath.Join(f.work, "other")
	other.begin()
	f.appears("../other/ready")
	_, refused := f.reviewed(2, "--accept", ".git/hooks/pre-commit")
	refused.says("[GXT_CAGE_REVIEW_UNUSABLE]")
	refused.says("a session in another work tree guards its path")
	f.reviewed(0, "--accept", ".env")
	f.whole(".env", "A=2\n")
	other.signal(syscall.SIGTERM)
	other.exits(128 + int(syscall.SIGTERM))
}

// Promise: on a terminal a patch comes through the person's pager, and not
// through one that the repository plants, with nothing in it that the terminal
// would obey; Ctrl-C in the pager ends neither.
func TestReviewOnATerminal(t *testing.T) {
	t.Run("pager", func(t *testing.T) {
		t.Parallel()
		needs(t, "tmux", "less")
		f := newField(t)
		f.cage(`printf 'A=2\033[2J\033[Hgone\n' >.env; while [ "$(head -c 3 .env)" != A=1 ]; do sleep 0.02; done`).exits(3)
		f.write("bin/less", "#!/bin/sh\n: >planted-ran\n")
		f.must(os.Chmod(f.path("bin/less"), 0o755))
		p := openWindow(f, `unset GIT_PAGER PAGER; trap : INT; PATH=$PWD/bin:$PATH LESS=R cage review --diff; echo $? >../exit.new; mv ../exit.new ../exit`)
		p.shows(`+A=2\x1b[2J\x1b[Hgone`)
		p.shows("-A=1")
		p.keys("C-c")
		p.eventually("the pager is left", func() bool {
			p.tmux("send-keys", "q") // which less may drop while it is interrupted
			_, err := os.Lstat(p.path("../exit"))
			return err == nil
		})
		p.exited("0")
		p.whole("planted-ran", "open "+p.path("planted-ran")+": no such file or directory")
	})
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		needs(t, "tmux")
		f := newField(t)
		f.cage(`echo A=2 >.env; while [ "$(head -c 3 .env)" != A=1 ]; do sleep 0.02; done`).exits(3)
		p := openWindow(f, `GIT_PAGER=no-such-pager cage review --diff; echo $? >../exit.new; sleep 1000`)
		p.shows("cage: warning: there is no pager no-such-pager")
		p.shows("+A=2")
	})
}
