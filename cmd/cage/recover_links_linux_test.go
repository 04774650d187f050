package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Promise: what protected links lead to is put back as well as they are, however
// their words name it and whatever became of them.
func TestRecoveryFollowsLinks(t *testing.T) {
	for name, c := range map[string]struct{ link, target string }{
		"out of the git directory": {".git/hooks/pre-commit", "../../scripts/real"},
		"out of the root":          {".env.link", "../repo/scripts/real"},
		"an absolute one":          {".env.link", "$ROOT/scripts/real"},
		"to what is only reported": {".env.link", "$ROOT/scripts/go.sum"},
		"a hook outside":           {"../hooks/pre-commit", "../repo/scripts/real"},
		"an absolute hook outside": {"../hooks/pre-commit", "$ROOT/scripts/real"},
	} {
		for attack, script := range map[string]string{
			"what it leads to":         "",
			"all that leads there too": "\nln -sfn README " + c.link + "\ngit config core.hooksPath /nowhere",
		} {
			t.Run(name+"/"+attack, func(t *testing.T) {
				t.Parallel()
				f := newField(t)
				target := os.Expand(c.target, func(string) string { return f.repo })
				real := f.linked(c.link, target)
				f.git("config", "core.hooksPath", filepath.Dir(f.path(c.link)))
				config := f.read(".git/config")
				i := f.interrupt(filepath.Join(f.repo, ".git"), standStill+"echo evil >>"+real+script+murder)
				i.recoversBeside()
				i.whole(real, "real\n")
				i.whole(".git/config", config)
				if is, err := os.Readlink(f.path(c.link)); is != target {
					t.Errorf("the link leads to %q: %v", is, err)
				}
				if !strings.Contains(f.read("../report.json"), strconv.Quote(real)) {
					t.Errorf("the report does not name %s", real)
				}
			})
		}
	}
}

// recoversBeside wants a recovery where more stands than those tests know.
func (i *interrupted) recoversBeside(pairs ...string) {
	i.t.Helper()
	r := i.next(0)
	r.says("cage: recovered an interrupted session " + i.session + ": ")
	i.wants(append([]string{"status=ok", "recovery.lost=false", "recovery.session=" + i.session}, pairs...)...)
	i.unharmed()
}

// linked makes a link, and the file in the repository that it leads to.
func (f *field) linked(link, target string) (name string) {
	f.t.Helper()
	name = filepath.Join("scripts", filepath.Base(target))
	f.write(name, "real\n")
	f.must(os.MkdirAll(filepath.Dir(f.path(link)), 0o755))
	f.must(os.Symlink(target, f.path(link)))
	return name
}

// Promise: who gives up a hooks folder that is gone keeps what its links led to.
func TestGivenUpHooksLeaveWhatTheyLedTo(t *testing.T) {
	for _, target := range []string{"../repo/scripts/real", "$ROOT/scripts/real"} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			f := newField(t)
			f.linked("../hooks/pre-commit", os.Expand(target, func(string) string { return f.repo }))
			f.git("config", "core.hooksPath", filepath.Join(f.work, "hooks"))
			i := f.interrupt(filepath.Join(f.repo, ".git"), standStill+"echo evil >>scripts/real\nmv ../hooks ../away"+murder)
			i.refusesToStart("GXT_CAGE_RECOVERY_INCOMPLETE", "folder is gone")
			i.unharmed()
			i.whole("scripts/real", "real\nevil\n")
			i.review("keep").says("2 files left as they are")
			i.stored("real\n", dotenv+"evil\n", "evil\n")
		})
	}
}

// Promise: what a link leads to by way of what no journal holds is left as it is
// while it is whole. A session does not start on it once it has changed.
func TestRecoveryByAnUnknownWay(t *testing.T) {
	newDetour := func(t *testing.T, attack string) *interrupted {
		f := newField(t)
		f.must(os.Symlink(f.repo, filepath.Join(f.work, "outside")))
		f.linked(".env.link", "../outside/scripts/real")
		return f.interrupt(filepath.Join(f.repo, ".git"), standStill+"sleep 1000 >/dev/null 2>&1 & echo $! >../detached"+attack+murder)
	}
	t.Run("whole", func(t *testing.T) {
		t.Parallel()
		newDetour(t, "").recoversBeside("recovery.restored=3")
	})
	t.Run("whole and given up", func(t *testing.T) {
		t.Parallel()
		i := newDetour(t, "")
		i.review("keep").says("3 files left as they are")
		i.stored(dotenv, workflow)
	})
	for name, attack := range map[string]string{
		"changed": "\necho evil >scripts/real", "gone": "\nrm -r scripts", "another mode": "\nchmod 755 scripts/real",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newDetour(t, attack)
			i.untrusted("scripts/real")
			i.write("scripts/real", "real\n")
			i.must(os.Chmod(i.path("scripts/real"), 0o644))
			i.recoversBeside("recovery.restored=3")
		})
	}
}

// Promise: a journal that says of a path without a link to it that it joined is
// believed no more than one that does not.
func TestForgedJoinIsRefused(t *testing.T) {
	t.Parallel()
	i := newSpoiled(t)
	i.write("main.go", "mine\n")
	i.names("root", "main.go")
	i.rewrite("baseline.json", func(record map[string]any) {
		entries := record["entries"].([]any)
		rules := record["rules"].(map[string]any)
		rules["joined"] = []any{entries[len(entries)-1].(map[string]any)["path"]}
	})
	i.untrusted("main.go")
	i.whole("main.go", "mine\n")
}
