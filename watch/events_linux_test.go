package watch

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"cage/rules"
	"cage/snapshot"

	"golang.org/x/sys/unix"
)

// appendTo writes to a file through the name given.
func (s *scene) appendTo(abs string) {
	s.Helper()
	f, err := os.OpenFile(abs, os.O_WRONLY|os.O_APPEND, 0)
	s.must(err)
	_, err = f.WriteString("more\n")
	s.must(err)
	s.must(f.Close())
}

// tellsByInode proves that the inode at the name is watched: a write through a
// hard link that lies elsewhere gives no event to any directory.
func (s *scene) tellsByInode(name string) {
	s.Helper()
	link := filepath.Join(s.TempDir(), "link")
	s.must(os.Link(s.abs(name), link))
	s.settle()
	s.appendTo(link)
	s.hinted(name)
	s.settle()
}

func (s *scene) exchange(a, b string) {
	s.Helper()
	s.must(unix.Renameat2(unix.AT_FDCWD, s.abs(a), unix.AT_FDCWD, s.abs(b), unix.RENAME_EXCHANGE))
}

func (s *scene) rename(from, to string) {
	s.Helper()
	s.must(os.Rename(s.abs(from), s.abs(to)))
}

// TestEventHints does to protected files, through the real kernel, what can be
// done to them, and expects the hint.
func TestEventHints(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(s *scene)
		want []string
	}{
		{"pwrite", func(s *scene) {
			f, err := os.OpenFile(s.abs(".env"), os.O_WRONLY, 0)
			s.must(err)
			defer f.Close()
			_, err = f.WriteAt([]byte("x"), 1)
			s.must(err)
		}, []string{".env"}},
		{"truncate", func(s *scene) { s.must(os.Truncate(s.abs("src/.env"), 0)) }, []string{"src/.env"}},
		{"chmod", func(s *scene) { s.must(os.Chmod(s.abs(".env"), 0o600)) }, []string{".env"}},
		{"setxattr", func(s *scene) { s.must(unix.Setxattr(s.abs(".env"), "user.cage", []byte("1"), 0)) }, []string{".env"}},
		{"unlink", func(s *scene) { s.must(os.Remove(s.abs(".env"))) }, []string{".env"}},
		{"symlink in its place", func(s *scene) {
			s.must(os.Remove(s.abs(".env")))
			s.must(os.Symlink("/etc/passwd", s.abs(".env")))
		}, []string{".env"}},
		{"directory in its place", func(s *scene) {
			s.must(os.Remove(s.abs(".env")))
			s.must(os.Mkdir(s.abs(".env"), 0o755))
		}, []string{".env"}},
		{"chmod of a directory above", func(s *scene) { s.must(os.Chmod(s.abs("infra"), 0o700)) }, []string{"infra/prod/main.tf"}},
		{"git config", func(s *scene) { s.write(".git/config", "[x]\n") }, []string{".git/config"}},
		{"git directory moved away", func(s *scene) { s.rename(".git", "git") }, []string{".git/config", ".git/hooks/pre-commit"}},
		{"new hook", func(s *scene) { s.write(".git/hooks/post-commit", "#!/bin/sh\n") }, []string{".git/hooks/post-commit"}},
		{"new file in a tree", func(s *scene) { s.write(".github/workflows/x.yml", "x") }, []string{".github/workflows/x.yml"}},
		{"new name", func(s *scene) { s.write("src/.env.local", "x") }, []string{"src/.env.local"}},
		{"new match of a glob", func(s *scene) { s.write("src/b.pem", "x") }, []string{"src/b.pem"}},
		{"target that was absent", func(s *scene) { s.write(".gitlab-ci.yml", "x") }, []string{".gitlab-ci.yml"}},
		{"tree that was absent", func(s *scene) { s.write(".circleci/a/b.yml", "x") }, []string{".circleci/a/b.yml"}},
		{"file behind new directories", func(s *scene) { s.write("a/b/c/.env", "x") }, []string{"a/b/c/.env"}},
		{"newline and invalid UTF-8", func(s *scene) { s.write("new\nline\xff/.env.\xfe\n", "x") }, []string{"new\nline\xff/.env.\xfe\n"}},
		{"directory of three dots", func(s *scene) {
			s.write("src/.../x", "x")
			s.settle()
			s.write("src/.../.env", "x")
		}, []string{"src/.../.env"}},
		{"root moved away", func(s *scene) {
			s.must(os.Rename(s.root, s.root+".moved"))
			s.Cleanup(func() { os.RemoveAll(s.root + ".moved") })
		}, []string{".env", "infra/prod/main.tf", ".git/config"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			tt.do(s)
			s.hinted(tt.want...)
		})
	}
}

// TestInodeHints changes protected files behind the back of every directory.
func TestInodeHints(t *testing.T) {
	t.Run("hard link made elsewhere", func(t *testing.T) {
		t.Parallel()
		newScene(t).tellsByInode(".env")
	})
	t.Run("descriptor opened through a hard link", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		link := filepath.Join(t.TempDir(), "link")
		s.must(os.Link(s.abs(".env"), link))
		f, err := os.OpenFile(link, os.O_WRONLY, 0)
		s.must(err)
		defer f.Close()
		s.must(os.Remove(link))
		s.settle()
		_, err = f.WriteString("X")
		s.must(err)
		s.hinted(".env")
	})
	t.Run("mapping", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		f, err := os.OpenFile(s.abs(".env"), os.O_RDWR, 0)
		s.must(err)
		mapped, err := unix.Mmap(int(f.Fd()), 0, 4, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		s.must(err)
		s.must(f.Close())
		s.settle()
		mapped[0] = 'Z'
		s.must(unix.Munmap(mapped))
		s.hinted(".env")
	})
	t.Run("two protected names of one file", func(t *testing.T) {
		t.Parallel()
		s := newSceneWith(t, systemLimits(), func(s *scene) { s.must(os.Link(s.abs(".env"), s.abs("src/.env.twin"))) })
		s.tellsByInode(".env")
		link := filepath.Join(t.TempDir(), "link")
		s.must(os.Link(s.abs(".env"), link))
		s.settle()
		s.appendTo(link)
		s.hinted(".env", "src/.env.twin")
		s.must(os.Remove(s.abs(".env")))
		s.hinted(".env")
		s.settle()
		s.appendTo(link)
		s.hinted("src/.env.twin")
	})
}

// TestWatchesComeBack replaces what is watched and expects the watch on what
// stands there then.
func TestWatchesComeBack(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(s *scene)
		file string // protected, with another inode after do
	}{
		{"rename over", func(s *scene) {
			s.write("src/tmp", "new\n")
			s.rename("src/tmp", ".env")
		}, ".env"},
		{"unlink and create", func(s *scene) {
			s.must(os.Remove(s.abs(".env")))
			s.write(".env", "new\n")
		}, ".env"},
		{"exchange", func(s *scene) {
			s.write("src/tmp", "new\n")
			s.exchange("src/tmp", ".env")
		}, ".env"},
		{"exchange of directories", func(s *scene) {
			s.write("other/prod/main.tf", "new\n")
			s.settle()
			s.exchange("other", "infra")
		}, "infra/prod/main.tf"},
		{"directory removed and made again", func(s *scene) {
			s.must(os.RemoveAll(s.abs("infra")))
			s.write("infra/prod/main.tf", "new\n")
		}, "infra/prod/main.tf"},
		{"directory moved away and back", func(s *scene) {
			s.rename("infra", "infra2")
			s.hinted("infra/prod/main.tf")
			s.appendTo(s.abs("infra2/prod/main.tf"))
			s.settle()
			s.rename("infra2", "infra")
		}, "infra/prod/main.tf"},
		{"ancestor moved away and back", func(s *scene) {
			s.rename("dir", "dir2")
			s.hinted("dir/deep/file.conf")
			s.settle()
			s.rename("dir2", "dir")
		}, "dir/deep/file.conf"},
		{"directory replaced by a symlink and back", func(s *scene) {
			s.rename("infra", "aside")
			s.must(os.Symlink(s.TempDir(), s.abs("infra")))
			s.hinted("infra/prod/main.tf")
			s.settle()
			s.must(os.Remove(s.abs("infra")))
			s.rename("aside", "infra")
		}, "infra/prod/main.tf"},
		{"directory replaced by a file and back", func(s *scene) {
			s.must(os.RemoveAll(s.abs("infra")))
			s.write("infra", "x")
			s.settle()
			s.must(os.Remove(s.abs("infra")))
			s.write("infra/prod/main.tf", "new\n")
		}, "infra/prod/main.tf"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			tt.do(s)
			s.hinted(tt.file)
			s.tellsByInode(tt.file)
			beside := filepath.Join(filepath.Dir(tt.file), ".env.beside")
			s.write(beside, "x")
			s.hinted(beside)
		})
	}
}

// TestMovedTreeIsNamedByItsNewPlace moves a directory that no target lies in:
// its old watches would go on to name the old place.
func TestMovedTreeIsNamedByItsNewPlace(t *testing.T) {
	s := newSceneWith(t, systemLimits(), func(s *scene) { s.write("lib/sub/deep/x", "x") })
	s.rename("lib", "lib2")
	s.settle()
	s.write("lib2/sub/deep/.env", "x")
	s.hinted("lib2/sub/deep/.env")
	s.rename("lib2/sub", "src/sub")
	s.settle()
	s.write("src/sub/deep/.env.x", "x")
	s.hinted("src/sub/deep/.env.x")
}

// TestNewDirectoriesRace makes directories and what lies in them faster than
// any watch can be set.
func TestNewDirectoriesRace(t *testing.T) {
	s := newScene(t)
	var names []string
	for i := range 200 {
		name := fmt.Sprintf("n%d/a/b/c/.env", i)
		s.write(name, "x")
		names = append(names, name)
	}
	s.hinted(names...)
}

// TestSwappingDirectoryRace exchanges a directory of a target with a symlink
// while watches are being set, and expects the last state to be watched.
func TestSwappingDirectoryRace(t *testing.T) {
	s := newScene(t)
	elsewhere := t.TempDir()
	s.must(os.Symlink(elsewhere, s.abs("link")))
	for range 200 {
		s.exchange("link", "infra")
	}
	s.hinted("infra/prod/main.tf")
	s.tellsByInode("infra/prod/main.tf")
	s.write("infra/prod/new.tf", "x")
	s.hinted("infra/prod/new.tf")
}

func TestPathTooLong(t *testing.T) {
	name := strings.Repeat("d", 200)
	deep := func(s *scene) int {
		fd, err := unix.Open(s.root, unix.O_PATH, 0)
		s.must(err)
		for range 25 {
			unix.Mkdirat(fd, name, 0o755)
			next, err := unix.Openat(fd, name, unix.O_PATH, 0)
			s.must(err)
			unix.Close(fd)
			fd = next
		}
		return fd
	}
	s := newSceneWith(t, systemLimits(), func(s *scene) { unix.Close(deep(s)) })
	if got := s.w.Status().Degraded; len(got) != 1 || !strings.Contains(got[0].Reason, "longer than the system takes") {
		t.Errorf("degraded: %q", got)
	}
	fd := deep(s)
	defer unix.Close(fd)
	file, err := unix.Openat(fd, ".env", unix.O_CREAT|unix.O_WRONLY, 0o600)
	s.must(err)
	unix.Close(file)
	want := s.path(strings.Repeat(name+"/", 25) + ".env")
	for _, found := range s.w.Scan().Found {
		if found == want {
			return
		}
	}
	t.Error("the walk did not find the file")
}

// TestOverflow has more events than the kernel keeps, while nobody reads, and
// names that come to be in the meantime.
func TestOverflow(t *testing.T) {
	s := newScene(t)
	var files [2]*os.File
	for i, name := range []string{".env", "src/.env"} {
		f, err := os.OpenFile(s.abs(name), os.O_WRONLY, 0)
		s.must(err)
		defer f.Close()
		files[i] = f
	}
	s.w.hints.mu.Lock() // nobody reads events from here
	for i := range 40_000 {
		_, err := files[i%2].WriteAt([]byte("x"), 0)
		s.must(err)
	}
	s.rename("src", "moved")
	s.write("src/sub/.env", "x")
	s.w.hints.mu.Unlock()
	var all Batch
	s.until(func(b Batch) bool {
		all.Rescan, all.Walk = all.Rescan || b.Rescan, all.Walk || b.Walk
		return all.Rescan && all.Walk && s.w.Status().Overflows == 2
	}, func() { t.Errorf("%+v, %+v", all, s.w.Status()) })
	s.w.Refresh()
	found := s.w.Scan().Found
	if !newPathSetOf(found).contains(s.path("src/sub/.env")) || !newPathSetOf(found).contains(s.path("moved/.env")) {
		t.Errorf("the walk found %v", found)
	}
	s.settle()
	s.write("src/sub/.env.new", "x")
	s.write("moved/.env.new", "x")
	s.hinted("src/sub/.env.new", "moved/.env.new")
	s.tellsByInode(".env")
}

func newPathSetOf(paths []rules.Path) *pathSet {
	set := newPathSet(paths)
	return &set
}

func TestFloodOfPathsBecomesARescan(t *testing.T) {
	l := systemLimits()
	l.pending = 8
	s := newSceneWith(t, l, nil)
	for i := range 100 {
		s.write(fmt.Sprintf(".env.%d", i), "x")
	}
	// Whoever takes them as they come is not flooded.
	flooded := func() bool {
		s.w.hints.mu.Lock()
		defer s.w.hints.mu.Unlock()
		return s.w.hints.flooded
	}
	for deadline := time.Now().Add(patience); !flooded(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("100 paths are no flood")
		}
	}
	if b := s.w.Take(); !b.Rescan || !b.Walk || len(b.Paths) > 0 {
		t.Errorf("a flood comes to %+v", b)
	}
}

// TestBudget has fewer watches than directories: those that matter are set.
func TestBudget(t *testing.T) {
	l := systemLimits()
	l.watches = 4
	s := newSceneWith(t, l, func(s *scene) {
		for i := range 30 {
			s.write(fmt.Sprintf("many/%d/x", i), "x")
		}
	})
	if got := s.w.Status(); !got.Events || len(got.Degraded) != 1 || !strings.Contains(got.Degraded[0].Setting, "fs.inotify.max_user_watches") {
		t.Errorf("status %+v", got)
	}
	s.write("infra/prod/new.tf", "x")
	s.write(".github/workflows/new.yml", "x")
	s.appendTo(s.abs("dir/deep/file.conf"))
	s.hinted("infra/prod/new.tf", ".github/workflows/new.yml", "dir/deep/file.conf")
	s.write("many/7/.env", "x")
	if !newPathSetOf(s.w.Scan().Found).contains(s.path("many/7/.env")) {
		t.Error("the walk did not find the new name")
	}
}

// kernelWatches counts the watches of every inotify instance of this process.
func kernelWatches(t testing.TB) int {
	t.Helper()
	files, err := filepath.Glob("/proc/self/fdinfo/*")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, name := range files {
		info, err := os.ReadFile(name)
		if err == nil {
			count += bytes.Count(info, []byte("inotify wd:"))
		}
	}
	return count
}

// TestNoWatchLeaks replaces files and directories over and over.
func TestNoWatchLeaks(t *testing.T) {
	s := newScene(t)
	s.settle()
	before, status := kernelWatches(t), s.w.Status()
	if before != status.WatchedDirs+status.WatchedFiles {
		t.Errorf("%d watches in the kernel, %+v", before, status)
	}
	s.write("src/tmp", "x")
	s.write("other/prod/main.tf", "x")
	for i := range 100_000 {
		s.exchange("src/tmp", ".env")
		if i%100 == 0 {
			s.exchange("other", "infra")
			s.rename("infra", "away")
			s.must(os.Mkdir(s.abs("infra"), 0o755))
			s.must(os.Remove(s.abs("infra")))
			s.rename("away", "infra")
		}
		if i%1000 == 0 {
			s.w.Take()
		}
	}
	s.must(os.RemoveAll(s.abs("other")))
	s.settle()
	// The kernel may have dropped events on the way.
	s.w.Refresh()
	s.w.Scan()
	if after, now := kernelWatches(t), s.w.Status(); after != before || now.WatchedDirs != status.WatchedDirs || now.WatchedFiles != status.WatchedFiles {
		t.Errorf("%d watches in the kernel, %+v; at first %d, %+v", after, now, before, status)
	}
	s.tellsByInode(".env")
	s.tellsByInode("infra/prod/main.tf")
}

func TestRefreshSetsWatchesAgain(t *testing.T) {
	s := newScene(t)
	// As if the kernel's word that they died had been lost.
	s.w.inodes.mu.Lock()
	for wd := range s.w.inodes.paths {
		_, err := unix.InotifyRmWatch(s.w.inodes.fd, uint32(wd))
		s.must(err)
	}
	s.w.inodes.mu.Unlock()
	s.w.lose(true)
	if b := s.w.Take(); !b.Rescan || !b.Walk {
		t.Errorf("batch %+v", b)
	}
	s.w.Refresh()
	s.w.Scan()
	s.tellsByInode(".env")
	s.write("src/.env.new", "x")
	s.hinted("src/.env.new")
}

func TestProtectAgainGivesUpTheOthers(t *testing.T) {
	s := newScene(t)
	s.w.Protect([]rules.Path{s.path(".env")})
	if got := s.w.Status().WatchedFiles; got != 1 {
		t.Errorf("%d files watched", got)
	}
	s.tellsByInode(".env")
}

func TestCloseWhileEverythingMoves(t *testing.T) {
	s := newScene(t)
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				os.MkdirAll(s.abs(fmt.Sprintf("w%d/a/b", i%50)), 0o755)
				os.WriteFile(s.abs(fmt.Sprintf("w%d/a/b/.env", i%50)), []byte("x"), 0o600)
				os.RemoveAll(s.abs(fmt.Sprintf("w%d", (i+25)%50)))
			}
		}
	}()
	scanned := make(chan struct{})
	go func() {
		defer close(scanned)
		for range 5 {
			s.w.Scan()
			s.w.Refresh()
			s.w.Status()
		}
	}()
	s.until(func(b Batch) bool { return len(b.Paths) > 0 }, func() { t.Error("no hint") })
	s.must(s.w.Close())
	s.must(s.w.Close())
	<-scanned
	s.w.Take()
	s.write(".env", "after the end")
	if b := s.w.Take(); !reflect.DeepEqual(b, Batch{}) {
		t.Errorf("a hint after Close: %+v", b)
	}
	close(stop)
	<-done
	if s.w.Status().Events {
		t.Error("a closed watcher says that it watches")
	}
}

// TestScanReportsWhatItMet compares a scan with the tree.
func TestScanReportsWhatItMet(t *testing.T) {
	s := newScene(t)
	scan := s.w.Scan()
	if scan.Directories < 11 {
		t.Errorf("%d directories", scan.Directories)
	}
	covered := newPathSet(scan.Covered)
	for _, name := range []string{"infra", "infra/prod", ".github/workflows", ".git/hooks"} {
		if !covered.contains(s.path(name)) {
			t.Errorf("%s is not covered", name)
		}
	}
	if covered.contains(s.path("src")) {
		t.Error("src is covered")
	}
	var walked int
	snapshot.Walk(s.trees, s.plan, snapshot.Visitor{Enter: func(rules.Path) { walked++ }})
	if walked != scan.Directories {
		t.Errorf("%d directories, walked %d", scan.Directories, walked)
	}
}
