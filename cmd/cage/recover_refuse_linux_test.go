package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// newSpoiled is an interrupted session that has left a process running, which
// its journal names.
func newSpoiled(t *testing.T) *interrupted {
	t.Helper()
	f := newField(t)
	f.write("../before", fmt.Sprintln(f.foreign()))
	i := f.interrupt(filepath.Join(f.repo, ".git"), `setsid sleep 1000 >/dev/null 2>&1 & echo $! >../detached
`+murder, "--watch-interval", "1h")
	pid := i.number("../detached")
	i.records(pid, startOf(t, pid))
	return i
}

// contents describes the journal: names, modes, bytes.
func (i *interrupted) contents() string {
	i.t.Helper()
	var b strings.Builder
	i.must(filepath.Walk(i.journal, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %v", path, info.Mode())
		if info.Mode().IsRegular() && info.Name() != "lock" { // signed by whoever takes it
			data, err := os.ReadFile(path)
			i.must(err)
			fmt.Fprintf(&b, " %x", data)
		}
		b.WriteByte('\n')
		return nil
	}))
	return b.String()
}

// untrusted wants the journal to be refused, with nothing ended, nothing put
// back, and the journal as it is.
func (i *interrupted) untrusted(words ...string) {
	i.t.Helper()
	before := i.contents()
	r := i.refusesToStart("GXT_CAGE_JOURNAL_CORRUPT", append(words, i.journal, "look into the folder")...)
	if after := i.contents(); after != before {
		i.t.Errorf("the journal was changed:\n%s\nafter\n%s", after, before)
	}
	i.harmed()
	if pid := i.number("../detached"); !alive(pid) {
		i.t.Fatalf("process %d was ended\n%s", pid, &r.stderr)
	}
}

// Promise: of a journal that is damaged in any way nothing is used: no process
// is ended, no file is put back, and the journal stays for a person to look at.
// Whole again, it is recovered.
func TestDamagedJournalIsRefused(t *testing.T) {
	t.Parallel()
	i := newSpoiled(t)
	names, err := filepath.Glob(filepath.Join(i.journal, "*"))
	i.must(err)
	for _, name := range names {
		base := filepath.Base(name)
		if base == "lock" || strings.HasSuffix(base, ".new") {
			continue // what they say decides nothing
		}
		data, err := os.ReadFile(name)
		i.must(err)
		for _, at := range []int{0, len(data) / 2, len(data) - 1} {
			flipped := bytes.Clone(data)
			flipped[at] ^= 1
			i.must(os.WriteFile(name, flipped, 0o600))
			i.untrusted()
		}
		i.must(os.WriteFile(name, data[:len(data)/2], 0o600))
		i.untrusted()
		// A life record that is gone is what a kill between two of them leaves.
		if i.must(os.Remove(name)); !strings.HasSuffix(base, ".json") || !strings.HasPrefix(base, "life-") {
			i.untrusted()
		}
		i.must(os.WriteFile(name, data, 0o600))
	}
	i.recovers("recovery.processes_ended=1", "recovery.restored=3")
}

// Promise: neither is a journal used that is somebody else's, open to others,
// reached by a link, unknown, or not alone.
func TestForeignJournalIsRefused(t *testing.T) {
	for name, spoil := range map[string]func(i *interrupted) (undo func()){
		"an unknown version": func(i *interrupted) func() {
			i.rewrite("session.json", func(record map[string]any) { record["version"] = 99 })
			return nil
		},
		"an unknown field": func(i *interrupted) func() {
			i.rewrite("session.json", func(record map[string]any) { record["more"] = 1 })
			return nil
		},
		"another machine": func(i *interrupted) func() {
			i.rewrite("session.json", func(record map[string]any) { record["host"].(map[string]any)["machine"] = "other" })
			return nil
		},
		"another root": func(i *interrupted) func() {
			i.rewrite("session.json", func(record map[string]any) { record["anchors"].(map[string]any)["root"] = 1 })
			return nil
		},
		"a mode for others": func(i *interrupted) func() {
			i.must(os.Chmod(filepath.Join(i.journal, "content.pack"), 0o640))
			return nil
		},
		"a folder for others": func(i *interrupted) func() { i.must(os.Chmod(i.journal, 0o755)); return nil },
		"something else beside it": func(i *interrupted) func() {
			i.must(os.WriteFile(filepath.Join(i.journal, "x"), nil, 0o600))
			return nil
		},
		"a folder beside it": func(i *interrupted) func() { i.must(os.Mkdir(filepath.Join(i.journal, "stage"), 0o700)); return nil },
		"a link in it": func(i *interrupted) func() {
			i.must(os.Rename(filepath.Join(i.journal, "content.pack"), filepath.Join(i.work, "pack")))
			i.must(os.Symlink(filepath.Join(i.work, "pack"), filepath.Join(i.journal, "content.pack")))
			return nil
		},
		"a lock that leads into it": func(i *interrupted) func() {
			i.must(os.Remove(filepath.Join(i.journal, "lock")))
			i.must(os.Symlink("content.pack", filepath.Join(i.journal, "lock")))
			return nil
		},
		"a lock that is a part of it": func(i *interrupted) func() {
			i.must(os.Remove(filepath.Join(i.journal, "lock")))
			i.must(os.Link(filepath.Join(i.journal, "content.pack"), filepath.Join(i.journal, "lock")))
			return nil
		},
		"another owner": func(i *interrupted) func() {
			if os.Geteuid() != 0 {
				i.t.Skip("only root can give files away")
			}
			const nobody = 65534
			i.must(os.Lchown(filepath.Join(i.journal, "baseline.json"), nobody, nobody))
			return nil
		},
		"another owner of the folder": func(i *interrupted) func() {
			if os.Geteuid() != 0 {
				i.t.Skip("only root can give files away")
			}
			const nobody = 65534
			i.must(os.Lchown(i.journal, nobody, nobody))
			return nil
		},
		"a path above":                  func(i *interrupted) func() { i.names("root", "../outside"); return nil },
		"an absolute path":              func(i *interrupted) func() { i.names("root", "/etc/passwd"); return nil },
		"a path in git's objects":       func(i *interrupted) func() { i.names("common_dir", "objects/x"); return nil },
		"a path that no rule matches":   func(i *interrupted) func() { i.names("root", "main.go"); return nil },
		"a directory that there is not": func(i *interrupted) func() { i.names("home", ".bashrc"); return nil },
		"a process that is older": func(i *interrupted) func() {
			pid := i.number("../before")
			i.records(pid, startOf(i.t, pid))
			return func() { i.untouched(pid) }
		},
		"a process of somebody else's": func(i *interrupted) func() {
			pid := i.foreign()
			i.records(pid, startOf(i.t, pid))
			return func() { i.untouched(pid) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newSpoiled(t)
			after := spoil(i)
			i.untrusted()
			if after != nil {
				after()
			}
		})
	}
}

// names adds an entry to the journal's baseline.
func (i *interrupted) names(anchor, rel string) {
	i.t.Helper()
	i.rewrite("baseline.json", func(record map[string]any) {
		entries := record["entries"].([]any)
		forged := make(map[string]any)
		for key, value := range entries[0].(map[string]any) {
			forged[key] = value
		}
		forged["path"] = map[string]any{"anchor": anchor, "rel": base64.StdEncoding.EncodeToString([]byte(rel))}
		record["entries"] = append(entries, forged)
	})
}

// Promise: a link in the place of the journal's folder is not followed.
func TestJournalBehindALinkIsRefused(t *testing.T) {
	t.Parallel()
	i := newSpoiled(t)
	i.must(os.Rename(i.journal, filepath.Join(i.work, "real")))
	i.must(os.Symlink(filepath.Join(i.work, "real"), i.journal))
	i.untrusted()
}

// Promise: a repository that was copied elsewhere with a journal in it is left
// alone there, and recovered where it was.
func TestCopiedRepositoryIsLeftAlone(t *testing.T) {
	t.Parallel()
	i := newSpoiled(t)
	if out, err := exec.Command("cp", "-a", i.repo, filepath.Join(i.work, "copy")).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	copied := *i
	field := *i.field
	copied.field = &field
	copied.repo, copied.journal = filepath.Join(i.work, "copy"), filepath.Join(i.work, "copy/.git/gantry-cage-journal")
	copied.untrusted()
	i.must(os.RemoveAll(copied.repo))
	i.recovers("recovery.processes_ended=1", "recovery.restored=3")
}

// Promise: after a restart of the machine, or from another pid namespace, the
// files are put back and no process is ended: their numbers mean nothing.
func TestNumbersOfAnotherWorldMeanNothing(t *testing.T) {
	for name, change := range map[string]func(host map[string]any){
		"another boot":          func(host map[string]any) { host["boot"] = "00000000-0000-0000-0000-000000000000" },
		"another pid namespace": func(host map[string]any) { host["pid_namespace"] = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newSpoiled(t)
			i.rewrite("session.json", func(record map[string]any) { change(record["host"].(map[string]any)) })
			i.recovers("recovery.processes_ended=0", "recovery.restored=3")
			if !alive(i.number("../detached")) {
				t.Error("a process was ended")
			}
		})
	}
}

// Promise: a start in a new pid namespace ends nobody, though the same numbers
// live there, and puts the files back.
func TestRecoveryFromAnotherPidNamespace(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 || exec.Command("unshare", "-pf", "--mount-proc", "true").Run() != nil {
		t.Skip("no pid namespace can be made here")
	}
	i := newSpoiled(t)
	r := i.prepare("unshare", append([]string{"-pf", "--mount-proc", "cage"}, i.call(`: >ran`, "--grace", "100ms")...)...)
	r.begin()
	r.exits(0)
	r.says("cage: recovered an interrupted session " + i.session)
	i.wants("recovery.processes_ended=0", "recovery.restored=3")
	i.unharmed()
	if !alive(i.number("../detached")) {
		t.Error("a process was ended")
	}
}

// Promise: a shell elsewhere that carries the session's name, because somebody
// set it there, is never touched, nor is a process that was there before the
// session.
func TestMarkedShellIsNotTouched(t *testing.T) {
	t.Parallel()
	f := newField(t)
	r, before := f.besides(`: >ready; exec sleep 1000 >/dev/null 2>&1`)
	f.appears("ready")
	journal := f.path(".git/gantry-cage-journal")
	i := &interrupted{field: f, journal: journal}
	i.session = i.record("session.json")["session"].(string)
	marked := f.foreign("GANTRY_CAGE_SESSION=" + i.session)
	r.signal(unix.SIGKILL)
	r.exits(-1)
	f.cage(`: >ran`).exits(0)
	f.wants("recovery.session=" + i.session)
	f.untouched(marked)
	f.untouched(before)
}

// Promise: one session at a time; the message names the process that runs it.
func TestSecondStartIsRefused(t *testing.T) {
	t.Parallel()
	f := newField(t)
	r := f.cage(`: >ready; while [ ! -e go ]; do sleep 0.02; done`)
	f.appears("ready")
	i := &interrupted{field: f}
	i.refusesToStart("GXT_CAGE_SESSION_ACTIVE", fmt.Sprintf("process %d", r.cmd.Process.Pid))
	for _, decision := range []string{"restore", "keep"} {
		review := f.prepare("cage", "review", "--recover", decision)
		review.begin()
		review.exits(2)
		review.says("cage: [GXT_CAGE_SESSION_ACTIVE] ")
	}
	// Nor is it fooled by what the lock says, which anybody can write.
	f.must(os.WriteFile(f.path(".git/gantry-cage-journal/lock"), []byte("4194000 1 1\n"), 0o600))
	i.refusesToStart("GXT_CAGE_SESSION_ACTIVE")
	// Nor by the journal being gone, which the session notices only later.
	f.must(os.RemoveAll(f.path(".git/gantry-cage-journal")))
	i.refusesToStart("GXT_CAGE_SESSION_ACTIVE", fmt.Sprintf("process %d", r.cmd.Process.Pid))
	f.write("go", "")
	r.exits(0)
	if notes := f.notes(); len(notes) > 0 {
		t.Errorf("notes are left: %q", notes)
	}
}

// Promise: of many starts at the same moment exactly one runs. CAGE_REPEAT says
// how often.
func TestOneOfManyStartsWins(t *testing.T) {
	t.Parallel()
	const starts = 20
	for range repeats(t, 1) {
		f := newField(t)
		var all sync.WaitGroup
		codes := make(chan int, starts)
		for n := range starts {
			all.Go(func() {
				c := exec.Command("cage", "--grace", "100ms", "--", "sh", "-c", fmt.Sprintf(`: >won-%d; while [ ! -e go ]; do sleep 0.02; done`, n))
				c.Dir, c.Env = f.repo, f.env()
				c.Run()
				codes <- c.ProcessState.ExitCode()
				// The one that won is the last to end.
				if len(codes) == starts-1 {
					f.write("go", "")
				}
			})
		}
		all.Wait()
		count := make(map[int]int)
		for range starts {
			count[<-codes]++
		}
		won, err := filepath.Glob(f.path("won-*"))
		f.must(err)
		if count[0] != 1 || count[2] != starts-1 || len(won) != 1 {
			t.Fatalf("exit codes %v, ran %q", count, won)
		}
	}
}

// Promise: a survivor that takes the lock of its dead session keeps nobody from
// recovering; somebody else who holds it is named.
func TestLockInOtherHands(t *testing.T) {
	t.Run("a survivor's", func(t *testing.T) {
		t.Parallel()
		f := newField(t)
		i := f.interrupt(filepath.Join(f.repo, ".git"), `
setsid flock .git/gantry-cage-journal/lock sh -c 'echo $$ >../detached; exec sleep 1000' >/dev/null 2>&1 &
`+murder)
		f.number("../detached")
		i.recovers("recovery.processes_ended=2", "recovery.restored=3")
	})
	t.Run("a survivor's who signs for another", func(t *testing.T) {
		t.Parallel()
		f := newField(t)
		victim := f.foreign()
		i := f.interrupt(filepath.Join(f.repo, ".git"), `
setsid flock .git/gantry-cage-journal/lock sh -c 'echo $$ >../detached; exec sleep 1000' >/dev/null 2>&1 &
`+murder)
		f.number("../detached")
		namespace, err := os.Stat("/proc/self/ns/pid")
		f.must(err)
		signature := fmt.Sprintf("%d %s %d\n", victim, startOf(t, victim), namespace.Sys().(*syscall.Stat_t).Ino)
		f.must(os.WriteFile(filepath.Join(i.journal, "lock"), []byte(signature), 0o600))
		i.recovers("recovery.processes_ended=2", "recovery.restored=3")
		f.untouched(victim)
	})
	t.Run("a survivor's who signs as from elsewhere", func(t *testing.T) {
		t.Parallel()
		f := newField(t)
		i := f.interrupt(filepath.Join(f.repo, ".git"), `
setsid flock .git/gantry-cage-journal/lock sh -c 'echo $$ >../detached; exec sleep 1000' >/dev/null 2>&1 &
`+murder)
		f.number("../detached")
		f.must(os.WriteFile(filepath.Join(i.journal, "lock"), []byte("1 1 1\n"), 0o600))
		i.recovers("recovery.processes_ended=2", "recovery.restored=3")
	})
	t.Run("somebody's", func(t *testing.T) {
		t.Parallel()
		i := newInterrupted(t)
		lock, err := os.OpenFile(filepath.Join(i.journal, "lock"), os.O_RDWR, 0)
		i.must(err)
		i.must(unix.Flock(int(lock.Fd()), unix.LOCK_EX))
		i.refusesToStart("GXT_CAGE_SESSION_ACTIVE", fmt.Sprintf("process %d", os.Getpid()), "end it, then start again")
		i.harmed()
		i.must(lock.Close())
		i.recovers("recovery.restored=3")
	})
}

// Promise: a journal that is taken away while the session runs is written again,
// and one to which something is added too; a kill after that is recovered.
func TestJournalIsWrittenAgain(t *testing.T) {
	for name, attack := range map[string]string{
		"removed":        `rm -r .git/gantry-cage-journal`,
		"added to":       `: >.git/gantry-cage-journal/x`,
		"opened":         `chmod 777 .git/gantry-cage-journal`,
		"closed":         `chmod 000 .git/gantry-cage-journal`,
		"linked":         `ln .git/gantry-cage-journal/content.pack ../pack`,
		"moved":          `mv .git/gantry-cage-journal ../journal`,
		"written over":   `echo x >.git/gantry-cage-journal/baseline.json`,
		"made a link":    `mv .git/gantry-cage-journal ../journal; ln -s ../../journal .git/gantry-cage-journal`,
		"without a lock": `rm .git/gantry-cage-journal/lock`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "closed" && os.Geteuid() == 0 {
				t.Skip("root may enter what is closed")
			}
			f := newField(t)
			i := f.interrupt(filepath.Join(f.repo, ".git"), standStill+attack+`
kill -CONT $PPID
until grep -q 'written again' "$GANTRY_CAGE_SESSION_LOG"; do sleep 0.02; done
`+murder, "--watch-interval", "100ms")
			i.recovers("recovery.restored=3")
		})
	}
}

// Promise: so is the note that leads to the journal.
func TestNoteIsWrittenAgain(t *testing.T) {
	t.Parallel()
	f := newField(t)
	r := f.cage(`: >ready; while [ ! -e go ]; do sleep 0.02; done`, "--watch-interval", "100ms")
	f.appears("ready")
	for _, note := range f.notes() {
		f.must(os.Remove(note))
	}
	f.eventually("it is noted again", func() bool { return len(f.notes()) == 1 })
	f.write("go", "")
	r.exits(0)
	if notes := f.notes(); len(notes) > 0 {
		t.Errorf("notes are left: %q", notes)
	}
}

// Promise: that a journal is gone after the kill is said loudly, once.
func TestLostJournalIsMissed(t *testing.T) {
	t.Parallel()
	i := newInterrupted(t)
	i.must(os.RemoveAll(i.journal))
	r := i.next(0)
	r.says("cage: warning: the earlier session " + i.session + " did not end and its journal is gone: nothing it protected could be put back; look at the protected files before you go on\n")
	i.wants("recovery.lost=true", "recovery.session="+i.session, "recovery.restored=0", "recovery.last_sign=null")
	i.harmed()
	i.next(0)
	i.wants("recovery=null")
}

// Promise: git's own pointers, bent by the session, neither hide its journal nor
// lead the recovery elsewhere.
func TestBentPointersLeadNowhere(t *testing.T) {
	for name, bend := range map[string]string{
		"core.worktree":  `git config core.worktree "$FIELD/victim"`,
		"core.hooksPath": `git config core.hooksPath "$FIELD/victim"`,
		"broken config":  `echo '[' >>.git/config`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newField(t)
			f.needsNotes()
			f.write("../victim/.env", "mine\n")
			f.write("../victim/pre-commit", "mine\n")
			config := f.read(".git/config")
			i := f.interrupt(filepath.Join(f.repo, ".git"), standStill+bend+murder)
			i.recovers("recovery.restored=4")
			i.whole(".git/config", config)
			i.whole("../victim/.env", "mine\n")
			i.whole("../victim/pre-commit", "mine\n")
		})
	}
}
