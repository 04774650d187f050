package watch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// inNamespaces runs the test again in user and mount namespaces of its own,
// where limits and mounts can be changed without concerning anybody. It
// returns true there.
func inNamespaces(t *testing.T) bool {
	t.Helper()
	if os.Getenv(insideEnv) != "" {
		return true
	}
	again(t, &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	})
	return false
}

// asOrdinaryUser runs the test again without root's power to read everything.
// It returns true there.
func asOrdinaryUser(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return true
	}
	again(t, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}})
	return false
}

// again runs the test again in a process with other attributes.
func again(t *testing.T, attr *syscall.SysProcAttr) {
	t.Helper()
	attr.Pdeathsig = syscall.SIGKILL
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), insideEnv+"=1")
	cmd.SysProcAttr = attr
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EACCES) {
		t.Skipf("no such process to be had: %v", err)
	}
	if err != nil {
		t.Errorf("in the other process: %v\n%s", err, out)
	}
	if strings.Contains(string(out), "--- SKIP") {
		t.Skipf("in the other process:\n%s", out)
	}
}

// allow sets a limit of the own user namespace (namespaces(7)).
func allow(t *testing.T, name string, n int) {
	t.Helper()
	if err := os.WriteFile("/proc/sys/user/"+name, []byte(strconv.Itoa(n)), 0); err != nil {
		t.Skipf("the limit cannot be set: %v", err)
	}
}

func manyDirectories(s *scene) {
	for i := range 40 {
		s.write(fmt.Sprintf("many/%02d/x", i), "x")
	}
}

func TestWatchesExhausted(t *testing.T) {
	if !inNamespaces(t) {
		return
	}
	for _, limit := range []int{30, 6, 0} {
		t.Run(strconv.Itoa(limit), func(t *testing.T) {
			allow(t, "max_inotify_watches", limit)
			s := newSceneWith(t, systemLimits(), manyDirectories)
			got := s.w.Status()
			if len(got.Degraded) == 0 {
				t.Error("not degraded")
			}
			for _, lack := range got.Degraded {
				// The namespace's limit is the smaller one.
				if !strings.HasPrefix(lack.Setting, fmt.Sprintf("raise user.max_inotify_watches, now %d", limit)) {
					t.Errorf("degraded: %v", lack)
				}
			}
			if got.Events != (limit > 0) || got.WatchedDirs+got.WatchedFiles > limit {
				t.Errorf("status %+v", got)
			}
			if limit != 30 {
				return
			}
			// What matters is watched: others gave way.
			s.appendTo(s.abs("dir/deep/file.conf"))
			s.write("infra/prod/new.tf", "x")
			s.hinted("dir/deep/file.conf", "infra/prod/new.tf")
			for _, p := range *s.w.protected.Load() {
				if !s.w.inodes.armed(p) {
					t.Errorf("%v is not watched", p)
				}
			}
			// More can be had again.
			allow(t, "max_inotify_watches", 1000)
			s.w.Refresh()
			s.w.Scan()
			s.write("many/39/.env", "x")
			s.hinted("many/39/.env")
		})
	}
}

func TestInstancesExhausted(t *testing.T) {
	if !inNamespaces(t) {
		return
	}
	for _, limit := range []int{1, 0} { // the kernel may hold a closed instance a moment longer
		t.Run(strconv.Itoa(limit), func(t *testing.T) {
			allow(t, "max_inotify_instances", limit)
			s := newScene(t)
			got := s.w.Status()
			if len(got.Degraded) != 1 || !strings.Contains(got.Degraded[0].Setting, "user.max_inotify_instances") {
				t.Errorf("degraded: %q", got.Degraded)
			}
			if got.Events != (limit > 0) || got.WatchedFiles != 0 {
				t.Errorf("status %+v", got)
			}
			allow(t, "max_inotify_instances", 128)
			s.w.Refresh()
			s.w.Scan()
			if !s.w.Status().Events {
				t.Error("still no events")
			}
			s.tellsByInode(".env")
			s.write("src/.env.new", "x")
			s.hinted("src/.env.new")
		})
	}
}

// TestClosedInstancesAreReleased has room for the instances of one watcher: the
// kernel releases those of the last one at once, or a moment after Close.
func TestClosedInstancesAreReleased(t *testing.T) {
	if !inNamespaces(t) {
		return
	}
	allow(t, "max_inotify_instances", 2)
	for range 10 {
		s := newScene(t)
		for deadline := time.Now().Add(patience); len(s.w.Status().Degraded) > 0 && time.Now().Before(deadline); {
			s.must(s.w.Close())
			s.w = open(Options{Plan: s.plan, Trees: s.trees}, systemLimits())
		}
		if got := s.w.Status(); len(got.Degraded) > 0 {
			t.Fatalf("degraded: %q", got.Degraded)
		}
		s.w.Protect(s.w.Scan().Found)
		s.tellsByInode(".env")
		s.must(s.w.Close())
	}
}

// TestOldInstanceStays has a loss and no new instance for it.
func TestOldInstanceStays(t *testing.T) {
	if !inNamespaces(t) {
		return
	}
	s := newScene(t)
	allow(t, "max_inotify_instances", 2)
	s.w.lose(true)
	s.w.Refresh()
	if got := s.w.Status(); !got.Events || len(got.Degraded) != 1 {
		t.Errorf("status %+v", got)
	}
	s.write("src/.env.new", "x")
	s.hinted("src/.env.new")
}

func TestMountsAreNoticed(t *testing.T) {
	if !inNamespaces(t) {
		return
	}
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Skipf("mounts cannot be made: %v", err)
	}
	remounted := func(s *scene, what string) {
		t.Helper()
		s.until(func(b Batch) bool { return b.Remounted && b.Rescan && b.Walk },
			func() { t.Errorf("not noticed: %s", what) })
	}
	s := newScene(t)
	for _, name := range []string{"infra", ".env"} {
		t.Cleanup(func() { unix.Unmount(s.abs(name), unix.MNT_DETACH) })
	}
	s.write("src/other", "x")
	s.must(unix.Mount(s.abs("src/other"), s.abs(".env"), "", unix.MS_BIND, ""))
	remounted(s, "a mount over a file")
	s.must(unix.Mount(s.abs("src"), s.abs("infra"), "", unix.MS_BIND, ""))
	remounted(s, "a mount over a directory")
	s.must(unix.Unmount(s.abs("infra"), unix.MNT_DETACH))
	remounted(s, "the end of a mount")
	s.must(unix.Unmount(s.abs(".env"), unix.MNT_DETACH))
	remounted(s, "the end of a mount")
	s.w.Refresh()
	s.w.Scan()
	s.tellsByInode(".env")
	s.write("infra/prod/new.tf", "x")
	s.hinted("infra/prod/new.tf")
}

// TestUnmountedDirectories ends a mount of the start, whose watches go with it.
func TestUnmountedDirectories(t *testing.T) {
	if !inNamespaces(t) {
		return
	}
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Skipf("mounts cannot be made: %v", err)
	}
	s := newSceneWith(t, systemLimits(), func(s *scene) {
		s.must(unix.Mount("tmpfs", s.abs("infra"), "tmpfs", 0, ""))
		s.Cleanup(func() { unix.Unmount(s.abs("infra"), unix.MNT_DETACH) })
		s.write("infra/prod/main.tf", "mounted\n")
	})
	s.appendTo(s.abs("infra/prod/main.tf"))
	s.hinted("infra/prod/main.tf")
	s.must(unix.Unmount(s.abs("infra"), unix.MNT_DETACH))
	s.until(func(b Batch) bool { return b.Remounted }, func() { t.Error("not noticed") })
	s.w.Refresh()
	s.w.Scan()
	for _, abs := range s.w.dirs.list() {
		if p := s.trees.Layout().Locate(abs); p.Within(s.path("infra")) {
			t.Errorf("%q counts as watched", abs)
		}
	}
	if s.w.inodes.armed(s.path("infra/prod/main.tf")) {
		t.Error("a file that is gone counts as watched")
	}
}

// TestDeniedDirectory has a directory that may not be entered, and a protected
// file that may not be read any more.
func TestDeniedDirectory(t *testing.T) {
	if !asOrdinaryUser(t) {
		return
	}
	s := newSceneWith(t, systemLimits(), func(s *scene) {
		s.write("closed/x", "x")
		s.must(os.Chmod(s.abs("closed"), 0))
	})
	s.Cleanup(func() { os.Chmod(s.abs("closed"), 0o755) })
	if got := s.w.Scan().Denied; len(got) != 1 || got[0] != s.path("closed") {
		t.Errorf("denied: %v", got)
	}
	if got := s.w.Status(); len(got.Degraded) != 0 {
		t.Errorf("degraded: %q", got.Degraded)
	}
	s.settle()
	s.must(os.Chmod(s.abs(".env"), 0))
	s.hinted(".env")
	s.w.Refresh()
	s.must(os.Chmod(s.abs("closed"), 0o755))
	s.settle()
	s.w.Scan()
	s.write("closed/.env", "x")
	s.hinted("closed/.env")
}
