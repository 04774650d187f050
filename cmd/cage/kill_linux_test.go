package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// tamperer changes protected files all the time, from three processes: the
// command, a daemon in a session of its own and a child that ignores SIGTERM.
// All end by themselves.
const tamperer = `
tamper() {
  n=0
  while [ $n -lt 300 ]; do
    n=$((n + 1))
    echo "evil $1 $n" >.env
    echo "evil $1 $n" >>.github/workflows/ci.yml
    echo new >".env.$1"
    git config core.hooksPath /dev/null
    rm -f .git/hooks/pre-commit
    sleep 0.05
  done
}
setsid sh -c "$(printf '%s' "$0"); tamper daemon" "$0" >/dev/null 2>&1 &
(trap '' TERM; tamper deaf) >/dev/null 2>&1 &
tamper command
`

// TestKilledCage kills the cage at random times of its life, while its command
// tampers all the time, and starts it again; now and then that one is killed in
// the middle of its recovery too. In the end there is never a wrong byte, a
// survivor or a stuck state. CAGE_REPEAT says how often.
func TestKilledCage(t *testing.T) {
	recovered := 0
	for n := range repeats(t, 8) {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			if killOnce(t, rand.New(rand.NewPCG(uint64(n), 7))) {
				recovered++
			}
		})
	}
	t.Logf("%d sessions were recovered", recovered)
	if recovered == 0 {
		t.Error("no session was killed in time to be recovered")
	}
}

// killOnce reports whether the last start had a session to recover.
func killOnce(t *testing.T, random *rand.Rand) (recovered bool) {
	k := newKilled(t)
	before := k.listing()
	k.kill(random.IntN(400), "sh", "-c", tamperer, tamperBody())
	for random.IntN(3) == 0 {
		k.kill(random.IntN(60), "true")
	}
	out, err := k.command("true").CombinedOutput()
	if err != nil {
		t.Fatalf("the next session: %v\n%s", err, out)
	}
	if left := k.survivors(); len(left) > 0 {
		t.Errorf("survivors: %v\n%s", left, out)
	}
	if after := k.listing(); after != before {
		t.Errorf("not as before:\n%s\n--- want\n%s\n--- the next session said\n%s", after, before, out)
	}
	for _, name := range []string{"gantry-cage-journal", "gantry-cage-common.lock"} {
		if _, err := os.Lstat(filepath.Join(k.repo, ".git", name)); err == nil {
			t.Errorf("%s is left", name)
		}
	}
	return bytes.Contains(out, []byte("recovered an interrupted session"))
}

// tamperBody is the part of the tamperer that defines what it does.
func tamperBody() string {
	body, _, _ := strings.Cut(tamperer, "setsid")
	return body
}

type killed struct {
	*testing.T
	dir, repo, self, marker string
}

func newKilled(t *testing.T) *killed {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	k := &killed{T: t, dir: dir, repo: filepath.Join(dir, "repo"), self: self, marker: "CAGE_TEST_MARK=" + filepath.Base(dir) + strconv.Itoa(os.Getpid())}
	for _, folder := range []string{"home", "state", "tmp", "bin", "repo/.github/workflows", "repo/.git"} {
		k.must(os.MkdirAll(filepath.Join(dir, folder), 0o700))
	}
	k.must(os.Symlink(self, filepath.Join(dir, "bin", "cage")))
	git := exec.Command("git", "init", "-q", "--template=", k.repo)
	git.Env = k.environment()
	k.must(git.Run())
	for name, content := range map[string]string{
		".env": "A=1\n", ".github/workflows/ci.yml": "on: push\n", ".git/hooks/pre-commit": "#!/bin/sh\n",
	} {
		k.must(os.MkdirAll(filepath.Dir(filepath.Join(k.repo, name)), 0o755))
		k.must(os.WriteFile(filepath.Join(k.repo, name), []byte(content), 0o755))
	}
	t.Cleanup(func() { forgetNotes(dir); k.sweepUp() })
	return k
}

func (k *killed) must(err error) {
	k.Helper()
	if err != nil {
		k.Fatal(err)
	}
}

func (k *killed) environment() []string {
	return append(os.Environ(), k.marker,
		"HOME="+filepath.Join(k.dir, "home"), "XDG_STATE_HOME="+filepath.Join(k.dir, "state"), "TMPDIR="+filepath.Join(k.dir, "tmp"),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
}

// command calls the cage by its name: the test binary is the program under it.
func (k *killed) command(args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(k.dir, "bin", "cage"), append([]string{"--contest-limit", "0", "--grace", "100ms", "--"}, args...)...)
	c.Dir, c.Env = k.repo, k.environment()
	return c
}

// kill runs the cage and kills it after so many milliseconds.
func (k *killed) kill(after int, args ...string) {
	k.Helper()
	c := k.command(args...)
	k.must(c.Start())
	timer := time.AfterFunc(time.Duration(after)*time.Millisecond, func() { c.Process.Kill() })
	defer timer.Stop()
	_ = c.Wait() // killed, or it was faster
}

// listing describes the protected files.
func (k *killed) listing() string {
	k.Helper()
	var b strings.Builder
	for _, name := range []string{".env", ".env.command", ".env.daemon", ".env.deaf", ".github/workflows/ci.yml", ".git/hooks/pre-commit", ".git/config"} {
		path := filepath.Join(k.repo, name)
		info, err := os.Lstat(path)
		if os.IsNotExist(err) {
			fmt.Fprintf(&b, "%s absent\n", name)
			continue
		}
		k.must(err)
		data, err := os.ReadFile(path)
		k.must(err)
		fmt.Fprintf(&b, "%s %v %q\n", name, info.Mode(), data)
	}
	return b.String()
}

// survivors lists processes that carry the marker of the test.
func (k *killed) survivors() []int {
	names, err := filepath.Glob("/proc/[0-9]*/environ")
	k.must(err)
	var pids []int
	for _, name := range names {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil {
			continue
		}
		if environ, err := os.ReadFile(name); err == nil && bytes.Contains(environ, []byte(k.marker)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// sweepUp ends what a failed test left running.
func (k *killed) sweepUp() {
	for _, pid := range k.survivors() {
		_ = syscall.Kill(pid, syscall.SIGKILL) // gone by itself
	}
}

// saboteur spoils the journal and its locks in every way, all the time, beside
// the files. It ends by itself.
const saboteur = `
journal=.git/gantry-cage-journal
n=0
while [ $n -lt 300 ]; do
  n=$((n + 1))
  echo "evil $n" >.env
  case $((n % 7)) in
  0) rm -rf $journal ;;
  1) touch $journal/x ;;
  2) ln -f .git/config $journal/lock ;;
  3) ln -f .git/config .git/gantry-cage-common.lock ;;
  4) mv $journal ../journal-$n; ln -s ../../journal-$n $journal ;;
  5) chmod 777 $journal; touch $journal/life-99.json ;;
  6) rm -f $journal/session.json ;;
  esac
  sleep 0.05
done 2>/dev/null
`

// TestKilledWithItsJournalSpoiled kills the cage while its journal is under
// attack: the next start puts everything right or says aloud that it cannot, and
// writes into nothing that it was led to.
func TestKilledWithItsJournalSpoiled(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 7))
	for n := range repeats(t, 5) {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			k := newKilled(t)
			before := k.listing()
			config, err := os.ReadFile(filepath.Join(k.repo, ".git/config"))
			k.must(err)
			k.kill(100+random.IntN(900), "sh", "-c", saboteur)
			out, err := k.command("true").CombinedOutput()
			told := bytes.Contains(out, []byte("its journal is gone")) || bytes.Contains(out, []byte("[GXT_CAGE_JOURNAL_CORRUPT]"))
			if err == nil && !told && k.listing() != before {
				t.Errorf("not as before, and nothing is said of it:\n%s\n--- want\n%s\n--- the next session said\n%s", k.listing(), before, out)
			}
			if err != nil && !told {
				t.Errorf("the next session: %v\n%s", err, out)
			}
			if after, err := os.ReadFile(filepath.Join(k.repo, ".git/config")); !bytes.Equal(after, config) {
				t.Errorf("git's config holds %q (%v)", after, err)
			}
			if bytes.Contains(out, []byte("its journal is gone")) {
				k.helpersEnd()
			}
			if left := k.survivors(); len(left) > 0 && err == nil {
				t.Errorf("survivors: %v\n%s", left, out)
			}
		})
	}
}

// helpersEnd waits until what the saboteur's shell had started for a moment has
// ended: no journal names it any more. The shell itself is not waited for.
func (k *killed) helpersEnd() {
	k.Helper()
	isHelper := func(pid int) bool {
		cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return err == nil && !bytes.Contains(cmdline, []byte(saboteur))
	}
	for end := time.Now().Add(10 * time.Second); slices.ContainsFunc(k.survivors(), isHelper) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}
