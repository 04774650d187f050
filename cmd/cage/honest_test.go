package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cage/report/reporttest"
)

// Promise: honest tools are neither disturbed nor convicted. Each works in a
// fresh repository, once without the cage and then as often as CAGE_REPEAT
// says (default 1) under it. What it leaves behind is the same both times,
// save the protected files that the cage puts back, and those are listed.

// honestTool is one tool at its everyday work.
type honestTool struct {
	name string
	// needs are programs without which it is left out.
	needs []string
	// setup prepares the repository that honestRepository makes, and work is what
	// runs under the cage; both are shell scripts that stop at an error.
	setup, work string
	// rows are all that the report lists: path, outcome, note.
	rows []string
	// slow tools take seconds of their own: they are not repeated as often.
	slow bool
}

// honestRepository has twelve workflows on main; feature changes them all,
// other changes none, and clash changes what other does. It stands beside a
// bare copy of itself called origin.
const honestRepository = `
git init -q -b main --template=
printf '.env*\n' >.gitignore
mkdir -p .github/workflows src
for i in 01 02 03 04 05 06 07 08 09 10 11 12; do
  printf 'on: push\nname: main %s\n' $i >.github/workflows/ci-$i.yml
done
echo one >src/a
printf 'KEY=1\nOTHER=2\nTHIRD=3\n' >.env
printf 'KEY=1\n' >.env.local
git add -A
git commit -q -m start
git switch -q -c feature
for i in 01 02 03 04 05 06 07 08 09 10 11 12; do
  printf 'on: push\nname: feature %s\n' $i >.github/workflows/ci-$i.yml
done
echo feature >src/f
git add -A
git commit -q -m feature
git switch -q -c other main
echo two >src/a
echo other >src/o
git add -A
git commit -q -m other
git switch -q -c clash main
echo three >src/a
git commit -q -a -m clash
git switch -q main
git clone -q --bare --template= . ../origin.git
echo untracked >src/untracked
`

// workflows are the rows of all twelve workflows, each with the same ending.
func workflows(ending string) []string {
	var rows []string
	for i := range 12 {
		rows = append(rows, fmt.Sprintf(".github/workflows/ci-%02d.yml %s", i+1, ending))
	}
	return rows
}

const (
	bookkeeping = ".git/config kept git_bookkeeping"
	switched    = "reverted branch_switch"
)

func honestTools() []honestTool {
	return []honestTool{
		{name: "git reset --hard", work: `touch .github/workflows/*; git reset -q --hard`},
		{name: "git checkout -f", work: `touch .github/workflows/*; git checkout -q -f`},
		{name: "git checkout of files", work: `touch .github/workflows/*; git checkout -q -- .github`},
		{name: "git stash and stash pop", work: `echo three >src/a; touch .github/workflows/*; git stash -q; git stash pop -q`},
		{name: "git stash of everything", work: `echo three >src/a; git stash -q -u; touch .github/workflows/*; git stash pop -q`},
		{name: "git merge", work: `git merge -q -m merge other`},
		{name: "git merge, fast forward to other workflows", work: `git merge -q feature`, rows: workflows(switched)},
		{name: "git merge with conflicts", setup: `git switch -q other`,
			work: `! git merge -q clash; git ls-files -u | grep -q src/a`},
		{name: "git merge with conflicts, aborted", setup: `git switch -q other`,
			work: `! git merge -q clash; git merge --abort`},
		{name: "git merge with conflicts in a workflow",
			setup: `git switch -q -c mine; echo mine >.github/workflows/ci-01.yml; git commit -q -a -m mine`,
			work:  `! git merge -q feature; git ls-files -u | grep -q ci-01.yml`,
			rows:  append([]string{".github/workflows/ci-01.yml reverted"}, workflows(switched)[1:]...)},
		{name: "git cherry-pick and revert", work: `git cherry-pick other >../out; git revert --no-edit HEAD >../out; rm ../out`},
		{name: "git am", work: `git format-patch -q -1 --stdout other >../patch; git am -q ../patch; rm ../patch`},
		{name: "git bisect", setup: `
			git switch -q other
			for i in 1 2 3 4; do echo $i >src/o; git commit -q -a -m $i; done
			git switch -q main`,
			work: `git bisect start other main >../out; git bisect run true >../out; git bisect reset >../out 2>&1; rm ../out`},
		{name: "git rebase", setup: `git switch -q other`, work: `git rebase -q clash && exit 1; git checkout --theirs src/a
			git add src/a; GIT_EDITOR=true git rebase --continue`},
		{name: "git rebase onto other workflows", setup: `git switch -q other`,
			work: `git rebase -q feature`, rows: workflows(switched)},
		{name: "git switch", work: `git switch -q other; git switch -q main; git switch -q clash; git switch -q main`},
		{name: "git switch to other workflows", work: `git switch -q feature`, rows: workflows(switched)},
		{name: "git checkout -b, tracking", setup: addOrigin,
			work: `git checkout -q -b x origin/other`, rows: []string{bookkeeping}},
		{name: "git push -u", setup: addOrigin,
			work: `git commit -q --allow-empty -m empty; git push -q -u origin main`, rows: []string{bookkeeping}},
		{name: "git branch -d", setup: addOrigin + `git branch -q --track x origin/main; git branch -q --track y origin/main`,
			work: `git branch -q -d x`, rows: []string{bookkeeping}},
		{name: "git remote add", work: `git remote add origin ../origin.git; git fetch -q`, rows: []string{bookkeeping}},
		{name: "git submodule update --init", setup: `
			git -c protocol.file.allow=always submodule --quiet add ../origin.git sub
			git commit -q -m submodule
			git submodule --quiet deinit -f sub
			rm -rf .git/modules`,
			work: `git -c protocol.file.allow=always submodule --quiet update --init`, rows: []string{bookkeeping}},
		{name: "git gc", work: `git gc -q --prune=now`},
		{name: "git worktree add", work: `git worktree add -q ../tree other; git worktree add -q tree feature; git worktree remove ../tree`},
		{name: "cp of the same", work: `cp .env ../same; cp ../same .env; for w in .github/workflows/*; do cp $w ../same; cp ../same $w; done`},
		{name: "dd of the same", work: `cp .env ../same; dd if=../same of=.env bs=1 status=none; dd if=../same of=.env conv=notrunc status=none`},
		{name: "cat of the same", work: `cp .env ../same; cat ../same >.env; tee .env <../same >/dev/null`},
		{name: "writers that cut off", work: `tamper rewrite .env; for w in .github/workflows/*; do tamper rewrite $w; done`},
		{name: "writers that cut off, slowly", work: `tamper rewrite-slowly .env 30; tamper rewrite-slowly .github/workflows/ci-01.yml 3`},
		{name: "writers that unlink", work: `tamper recreate .env; for w in .github/workflows/*; do tamper recreate $w; done`},
		{name: "atomic writers", work: `
			tamper replace .env.local .env.local.tmp123
			tamper replace .env .env.123.tmp
			tamper replace .github/workflows/ci-01.yml .github/workflows/ci-01.yml.tmp
			tamper replace .git/config .git/config.lock`},
		{name: "temporary names", work: `tamper flash .env.local.tmp123 50; tamper flash .github/workflows/tmp 1; tamper flash .git/hooks/tmp 1 || mkdir .git/hooks`},
		{name: "sed -i", work: `sed -i s/never/there/ .env .env.local .github/workflows/*; sed -i s/never/there/ .git/config`},
		{name: "perl -i", needs: []string{"perl"}, work: `perl -p -i -e 1 .env .env.local .github/workflows/*; perl -p -i~ -e 1 .env`},
		{name: "install", setup: addHook, work: `
			install -m 755 ../hook .git/hooks/pre-commit
			cp .env ../same; install -m 644 ../same .env
			for w in .github/workflows/*; do cp $w ../same; install -m 644 ../same $w; done`},
		{name: "cp -p over nothing", setup: addHook, work: `
			cp -p --remove-destination ../hook .git/hooks/pre-commit
			for w in .github/workflows/*; do cp -p $w ../same; cp -p --remove-destination ../same $w; done`},
		{name: "unlink, write, chmod", setup: addHook, work: `
			rm .git/hooks/pre-commit; cat ../hook >.git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit`},
		{name: "sed -i of a hook", setup: addHook, work: `sed -i s/never/there/ .git/hooks/pre-commit`},
		{name: "perl -i of a hook", needs: []string{"perl"}, setup: addHook, work: `perl -p -i -e 1 .git/hooks/pre-commit; perl -p -i~ -e 1 .git/hooks/pre-commit
			rm -f .git/hooks/pre-commit~`},
		{name: "rsync of a hook", needs: []string{"rsync"}, setup: addHook, work: `
			rsync -a -I ../hook .git/hooks/pre-commit; rsync -a -I --inplace ../hook .git/hooks/pre-commit`},
		{name: "tar over a hook", setup: addHook + `(cd .git; tar cf ../../hooks.tar hooks)`, work: `
			tar xf ../hooks.tar -C .git; tar xf ../hooks.tar -C .git --unlink-first hooks/pre-commit; tar xf ../hooks.tar -C .git --overwrite`},
		{name: "python, modes last", needs: []string{"python3"}, setup: addHook, work: `python3 -c '
import os, shutil, time
hook, temp = ".git/hooks/pre-commit", ".git/hook"
for how in shutil.copy, shutil.copy2:
    os.remove(hook)
    how("../hook", hook)
    time.sleep(0.1)
    how("../hook", hook)
    time.sleep(0.1)
shutil.copyfile("../hook", temp)
os.replace(temp, hook)
os.chmod(hook, 0o755)
'`},
		{name: "vim, writing a hook by renaming", needs: []string{"vim"}, setup: addHook,
			work: vim(".git/hooks/pre-commit", "set backupcopy=no | wq") + vim(".git/hooks/pre-commit", "set backupcopy=yes | wq")},
		{name: "patch of a hook, there and back", needs: []string{"patch"}, setup: addHook + patchHook,
			work: `cp ../other ../new; patch -s -R ../new ../patch; mv ../new .git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit`},
		{name: "node", needs: []string{"node"}, work: `node -e '
			const fs = require("fs")
			for (const path of [".env", ".env.local", ".github/workflows/ci-01.yml"]) {
				fs.writeFileSync(path, fs.readFileSync(path))
				fs.writeFileSync(path + ".tmp", fs.readFileSync(path))
				fs.renameSync(path + ".tmp", path)
			}'`},
		{name: "python", needs: []string{"python3"}, work: `python3 -c '
import os, tempfile
for path in ".env", ".env.local":
    text = open(path).read()
    open(path, "w").write(text)
    fd, temp = tempfile.mkstemp(dir=".")
    os.write(fd, text.encode())
    os.fchmod(fd, 0o644)
    os.replace(temp, path)
'`},
		{name: "vim, looking", needs: []string{"vim"}, work: vim(".env", "q") + vim(".github/workflows/ci-01.yml", "q")},
		{name: "vim, writing the same", needs: []string{"vim"}, work: vim(".env", "wq") + vim(".github/workflows/ci-01.yml", "wq")},
		{name: "vim, writing the same by renaming", needs: []string{"vim"},
			work: vim(".env", "set backupcopy=no | wq") + vim(".github/workflows/ci-01.yml", "set backupcopy=no | wq")},
		{name: "vim, writing the same with a backup", needs: []string{"vim"}, work: vim(".env", "set backup | wq")},
		{name: "backups in a protected tree", work: `cp .github/workflows/ci-01.yml .github/workflows/ci-01.yml~; cp .env .env~`,
			rows: []string{".github/workflows/ci-01.yml~ removed"}},
		{name: "lock files", work: `printf '{}\n' >package-lock.json; tamper rewrite package-lock.json`,
			rows: []string{"package-lock.json kept"}},
		{name: "git switch, there and back again, five times", slow: true, rows: workflows("reverted"), work: `
			for i in 1 2 3 4 5; do
				git checkout -q -f feature; sleep 1.1
				git checkout -q -f main; sleep 0.2
			done`},
	}
}

// addHook makes a hook, and a copy of it to write it from.
const addHook = `
mkdir .git/hooks
printf '#!/bin/sh\nexit 0\n' >.git/hooks/pre-commit
chmod 755 .git/hooks/pre-commit
cp -p .git/hooks/pre-commit ../hook
`

// patchHook makes a patch of the hook.
const patchHook = `
sed s/0/1/ ../hook >../other
diff -u ../hook ../other >../patch || true
`

const addOrigin = `git remote add origin ../origin.git; git fetch -q;`

// vim opens a file, looks at it for a while and leaves with a command. It
// fails where there was no swap file.
func vim(file, leave string) string {
	return `vim -T dumb --not-a-term -i NONE -u NONE -N -c 'sleep 100m' \
		-c 'if !filereadable(swapname("%")) | cquit | endif' -c '` + leave + `' ` + file + " </dev/null >/dev/null 2>&1\n"
}

func TestHonestTools(t *testing.T) {
	repeat := repeats(t, 1)
	original := newHonestOriginal(t)
	for _, tool := range honestTools() {
		t.Run(tool.name, func(t *testing.T) {
			for _, program := range tool.needs {
				if _, err := exec.LookPath(program); err != nil {
					t.Skipf("no %s", program)
				}
			}
			times := repeat
			if tool.slow {
				times = (repeat + 9) / 10
			}
			w := newHonestWork(t, tool)
			w.prepare(t, original)
			before := w.state(t)
			w.plain(t)
			alone := w.state(t)
			var failed, shown int
			for range times {
				w.fresh(t)
				faults := w.judge(t, w.caged(t), before, alone)
				if len(faults) == 0 {
					continue
				}
				if failed++; shown < maxShown {
					shown++
					t.Errorf("%s\n%s", strings.Join(faults, "\n"), w.said)
				}
			}
			t.Logf("%d of %d failed", failed, times)
		})
	}
}

// maxShown is how many failures of one tool are told in full.
const maxShown = 3

// honestWork is the place where one tool works: always the same, so that no
// path that git notes down differs.
type honestWork struct {
	tool          honestTool
	base, dir     string
	prepared      string
	env           []string
	repo, report  string
	index, output string
	// exit and said are what the last session exited with and printed.
	exit int
	said string
}

// newHonestOriginal makes the repository that every tool gets a copy of, and
// returns the directory that holds it and its origin.
func newHonestOriginal(t *testing.T) string {
	t.Helper()
	w := newHonestWork(t, honestTool{})
	if err := os.MkdirAll(w.repo, 0o755); err != nil {
		t.Fatal(err)
	}
	if code := w.run(t, "sh", "-e", "-c", honestRepository); code != 0 {
		t.Fatalf("making the repository exited %d:\n%s", code, w.output)
	}
	return w.dir
}

func newHonestWork(t *testing.T, tool honestTool) *honestWork {
	t.Helper()
	base := t.TempDir()
	w := &honestWork{
		tool: tool, base: base, dir: filepath.Join(base, "work"), prepared: filepath.Join(base, "prepared"),
		repo: filepath.Join(base, "work", "repo"), report: filepath.Join(base, "report.json"),
		index: filepath.Join(base, "index"),
	}
	w.env = append(os.Environ(),
		"HOME="+filepath.Join(base, "home"), "XDG_STATE_HOME="+filepath.Join(base, "state"), "TMPDIR="+filepath.Join(base, "tmp"),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_EDITOR=true",
		"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.invalid", "GIT_AUTHOR_DATE=2020-01-01T00:00:00Z",
		"GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.invalid", "GIT_COMMITTER_DATE=2020-01-01T00:00:00Z",
		"INDEX="+w.index)
	for _, name := range []string{"home", "state", "tmp"} {
		if err := os.Mkdir(filepath.Join(base, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// run runs a program in the repository and returns its exit code.
func (w *honestWork) run(t *testing.T, program string, args ...string) int {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = w.repo, w.env
	out, err := cmd.CombinedOutput()
	w.output = string(out)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", program, err)
	}
	return cmd.ProcessState.ExitCode()
}

// git returns what git says about the repository, without changing it.
func (w *honestWork) git(t *testing.T, args ...string) string {
	t.Helper()
	if code := w.run(t, "git", append([]string{"--no-optional-locks"}, args...)...); code != 0 {
		t.Fatalf("git %q exited %d:\n%s", args, code, w.output)
	}
	return w.output
}

// prepare prepares a copy of the original for the tool.
func (w *honestWork) prepare(t *testing.T, original string) {
	t.Helper()
	w.copy(t, original, w.dir)
	if code := w.run(t, "sh", "-e", "-c", refresh+w.tool.setup); code != 0 {
		t.Fatalf("the setup exited %d:\n%s", code, w.output)
	}
	w.copy(t, w.dir, w.prepared)
}

// fresh puts a fresh copy of what was prepared in its place.
func (w *honestWork) fresh(t *testing.T) {
	t.Helper()
	if err := os.RemoveAll(w.dir); err != nil {
		t.Fatal(err)
	}
	w.copy(t, w.prepared, w.dir)
	if code := w.run(t, "sh", "-c", refresh); code != 0 {
		t.Fatalf("git exited %d:\n%s", code, w.output)
	}
}

// refresh has the index know the copies by their inodes.
const refresh = "git update-index -q --refresh\n"

func (w *honestWork) copy(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v\n%s", err, out)
	}
}

// script is the tool's work; at its end it puts the index aside as it is then.
func (w *honestWork) script() []string {
	const keep = `
cp "$(git rev-parse --git-path index)" "$INDEX"`
	return []string{"sh", "-e", "-c", w.tool.work + keep}
}

func (w *honestWork) plain(t *testing.T) {
	t.Helper()
	script := w.script()
	if code := w.run(t, script[0], script[1:]...); code != 0 {
		t.Fatalf("without the cage the tool exited %d:\n%s", code, w.output)
	}
}

// caged lets the tool work under the cage and returns the report.
func (w *honestWork) caged(t *testing.T) map[string]any {
	t.Helper()
	args := append([]string{"--report-file", w.report, "--"}, w.script()...)
	w.exit = w.run(t, "cage", args...)
	w.said = w.output
	data, err := os.ReadFile(w.report)
	if err != nil {
		t.Fatalf("cage exited %d without a report: %v\n%s", w.exit, err, w.said)
	}
	if err := reporttest.Validate(data); err != nil {
		t.Fatalf("the report is not valid: %v", err)
	}
	var doc map[string]any
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

func (w *honestWork) wantExit() int {
	for _, row := range w.tool.rows {
		if !strings.Contains(row, " kept") {
			return 3
		}
	}
	return 0
}

// judge says what is wrong with what is there and with what is listed.
func (w *honestWork) judge(t *testing.T, doc map[string]any, before, alone map[string]string) (faults []string) {
	t.Helper()
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if w.exit != w.wantExit() || doc["command_exit_code"] != float64(0) {
		fault("cage exited %d, want %d; the tool exited %v", w.exit, w.wantExit(), doc["command_exit_code"])
		return faults
	}
	rows, back := listed(doc)
	if want := slices.Sorted(slices.Values(w.tool.rows)); !slices.Equal(rows, want) {
		fault("rows %q, want %q", rows, want)
	}
	if restores := doc["watch"].(map[string]any)["live_restores"]; len(back) == 0 && restores != float64(0) {
		fault("%v live restores of nothing that is listed", restores)
	}
	now, want := w.state(t), maps.Clone(alone)
	for _, path := range back {
		if now[path] != before[path] {
			fault("%s is not as it was: %q, was %q", path, now[path], before[path])
		}
		delete(now, path)
		delete(want, path)
	}
	faults = append(faults, differences(now, want)...)
	if !sameFile(t, w.index, filepath.Join(w.repo, ".git", "index")) {
		fault("the index is not as git left it")
	}
	return faults
}

// listed returns the rows of a report, and the paths that were put back.
func listed(doc map[string]any) (rows, back []string) {
	changes, _ := doc["changes"].([]any)
	for _, change := range changes {
		row := change.(map[string]any)
		text := fmt.Sprint(row["path"], " ", row["outcome"])
		if note, ok := row["note"]; ok {
			text += fmt.Sprint(" ", note)
		}
		rows = append(rows, text)
		if row["outcome"] != "kept" {
			back = append(back, fmt.Sprint(row["path"]))
		}
	}
	slices.Sort(rows)
	return rows, back
}

func differences(got, want map[string]string) (faults []string) {
	names := maps.Clone(got)
	maps.Copy(names, want)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if got[name] != want[name] {
			faults = append(faults, fmt.Sprintf("%s under the cage: %q, without: %q", name, got[name], want[name]))
		}
	}
	return faults
}

// sameFile reports whether two files hold the same bytes.
func sameFile(t *testing.T, a, b string) bool {
	t.Helper()
	first, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(b)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Equal(first, second)
}

// state says of every file what it is: HEAD, references, their logs and
// configuration among them. The index holds times and inode numbers, so what it
// means is taken; objects are left to fsck.
func (w *honestWork) state(t *testing.T) map[string]string {
	t.Helper()
	state := map[string]string{
		"(index)": w.git(t, "ls-files", "--stage", "-v"),
		"(fsck)":  w.git(t, "fsck", "--strict", "--no-dangling", "--no-progress"),
	}
	err := filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(w.repo, path)
		if err != nil || filepath.Base(path) == "index" && strings.Contains(name, ".git/") {
			return err
		}
		if d.IsDir() && filepath.Base(path) == "objects" {
			return filepath.SkipDir
		}
		state[name], err = content(path, d)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func content(path string, d fs.DirEntry) (string, error) {
	info, err := d.Info()
	if err != nil {
		return "", err
	}
	text := info.Mode().String()
	switch {
	case info.Mode().IsRegular():
		data, err := os.ReadFile(path)
		return text + " " + string(data), err
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		return text + " -> " + target, err
	}
	return text, nil
}
