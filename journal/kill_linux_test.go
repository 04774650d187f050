package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"cage/internal/proc"
	"cage/journal"
	"cage/rules"
)

// writerRoot, when set, turns the test binary into a session that journals
// itself in the scene of that folder and ends.
const writerRoot = "CAGE_TEST_JOURNAL_ROOT"

func TestMain(m *testing.M) {
	if root := os.Getenv(writerRoot); root != "" {
		runtime.LockOSThread() // strace counts the calls of each thread
		if err := journalOnce(root); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// journalOnce is the life of a journal, from the lock to its removal.
func journalOnce(root string) error {
	s := &scene{TB: panics{}, root: root, temp: filepath.Join(filepath.Dir(root), "temp"), layout: rules.Layout{Root: root}}
	j, _, err := journal.Acquire(s.folder())
	if err != nil {
		return err
	}
	r := s.record()
	if err := j.Write(r); err != nil {
		return err
	}
	for i := range 3 {
		if _, err := j.Refresh([]proc.ID{{PID: 100 + i, Start: 7}}); err != nil {
			return err
		}
	}
	e, _ := r.Manifest.Entry(rules.Path{Rel: ".env"})
	if err := j.Amend(e); err != nil {
		return err
	}
	return j.Remove()
}

// panics stands for a test in the writer, which has none.
type panics struct{ testing.TB }

func (panics) Helper()           {}
func (panics) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// TestKilledAtEveryStep kills the writer at every system call that changes the
// disk, in turn, once in an empty folder and once over the journal of an
// earlier session. What is left is a whole journal or none.
func TestKilledAtEveryStep(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, earlier := range []bool{false, true} {
		t.Run("over an earlier journal: "+strconv.FormatBool(earlier), func(t *testing.T) {
			whole, none := 0, 0
			for _, call := range []string{"mkdirat,mkdir", "openat,openat2", "write,pwrite64", "renameat,renameat2,rename", "unlinkat,unlink,rmdir", "fsync"} {
				for n := 1; ; n++ {
					s := newScene(t)
					if earlier {
						s.write()
					}
					killed, err := killAt(strace, self, s.root, call, n)
					if err != nil {
						t.Fatal(err)
					}
					if !killed {
						break
					}
					_, left, err := journal.Acquire(s.folder())
					if err != nil {
						t.Fatalf("killed at %s number %d: %v", call, n, err)
					}
					if left == nil {
						none++
						continue
					}
					whole++
					if _, _, err := left.Build(s.layout, nil); err != nil {
						t.Fatalf("killed at %s number %d: %v", call, n, err)
					}
				}
			}
			t.Logf("killed %d times: %d whole journals, %d times none", whole+none, whole, none)
			if whole < 10 || none < 10 {
				t.Errorf("%d whole, %d none: the faults did not fire where they should", whole, none)
			}
		})
	}
}

// killAt runs the writer and kills it when it enters the n-th of these calls.
// It reports false where there were not so many.
func killAt(strace, self, root, calls string, n int) (killed bool, err error) {
	// Only calls that touch the journal count: the runtime makes others, at no
	// fixed number.
	folder := journal.Folder(rules.Layout{Root: root}, filepath.Join(filepath.Dir(root), "temp"))
	c := exec.Command(strace, "-f", "-qqq", "-o", "/dev/null", "-P", folder, "-P", folder+"/lock",
		"-e", "trace="+calls, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", calls, n), self)
	c.Env = append(os.Environ(), writerRoot+"="+root)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err = c.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if exit.ExitCode() == 1 {
			return false, fmt.Errorf("the writer failed: %s", out.String())
		}
		return true, nil
	}
	return false, err
}
