package safefile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"cage/internal/limittest"

	"golang.org/x/sys/unix"
)

// testAttrs are attributes of a user's file: one of the user's own and an
// access control list (acl(5): version 2; owner rwx, user 1000 r, group rx,
// mask r-x, other r).
func testAttrs() []Attr {
	var acl bytes.Buffer
	acl.Write([]byte{2, 0, 0, 0})
	for _, e := range []struct {
		tag, perm uint16
		id        uint32
	}{{1, 7, ^uint32(0)}, {2, 4, 1000}, {4, 5, ^uint32(0)}, {16, 5, ^uint32(0)}, {32, 4, ^uint32(0)}} {
		acl.Write([]byte{byte(e.tag), 0, byte(e.perm), 0, byte(e.id), byte(e.id >> 8), byte(e.id >> 16), byte(e.id >> 24)})
	}
	return []Attr{{Name: "system.posix_acl_access", Value: acl.Bytes()}, {Name: "user.note", Value: bytes.Repeat([]byte("v"), 1000)}}
}

// TestSwappedDirectory exchanges a directory with a symlink over and over
// while files are put into it: none may arrive where the symlink leads.
func TestSwappedDirectory(t *testing.T) {
	for _, target := range []string{"inside", "outside"} {
		t.Run(target, func(t *testing.T) {
			s := newScene(t)
			trap := s.abs("trap")
			if target == "outside" {
				trap = t.TempDir()
			}
			s.must(os.MkdirAll(trap, 0o755))
			s.write("p/dir/name", "old")
			s.must(os.Symlink(trap, s.abs("p/link")))
			staging := s.mkdir("stage")
			var stop atomic.Bool
			done := make(chan struct{})
			go func() {
				defer close(done)
				for !stop.Load() {
					unix.Renameat2(unix.AT_FDCWD, s.abs("p/dir"), unix.AT_FDCWD, s.abs("p/link"), unix.RENAME_EXCHANGE)
				}
			}()
			worked := 0
			for i := range 3000 {
				if put(s.root, staging, i) {
					worked++
				}
			}
			stop.Store(true)
			<-done
			if worked == 0 {
				t.Error("the directory was never met")
			}
			if entries, err := os.ReadDir(trap); err != nil || len(entries) != 0 {
				t.Errorf("%d files arrived where the symlink leads (%v)", len(entries), err)
			}
		})
	}
}

// put exchanges and places a file in p/dir, if that is a directory just now.
func put(root *Root, staging *Dir, i int) bool {
	dir, err := root.Dir("p/dir")
	if err != nil {
		return false
	}
	defer dir.Close()
	swapped, err := Stage(staging, node("new"))
	if err != nil {
		return false
	}
	defer swapped.Discard()
	displaced, err := swapped.Exchange(dir, "name")
	if err != nil {
		return false
	}
	staging.Remove(displaced)
	placed, err := Stage(staging, node("placed"))
	if err != nil {
		return false
	}
	defer placed.Discard()
	return placed.Place(dir, fmt.Sprintf("placed-%d", i)) == nil
}

// TestSpareIsUsedOnce puts entries in place with a file that was made before,
// for this entry, for a longer or for a shorter one: once, and after that as
// without it. Nothing is left of one that nobody used.
func TestSpareIsUsedOnce(t *testing.T) {
	s := newScene(t)
	staging, dir := s.mkdir("staging"), s.mkdir("dir")
	s.write("dir/name", "old")
	const content = "what shall stand there"
	same := node(content)
	other := node(content)
	other.Content, other.Perm, other.MTime = []byte(content), 0o604, 7
	other.Attrs = []Attr{{Name: "user.other", Value: []byte("x")}}
	for name, made := range map[string]Node{
		"the same": same, "a copy": other, "longer": node(content + " and more"), "shorter": node("x"), "empty": node(""),
	} {
		spare := NewSpare(staging, made)
		if spare.Used() {
			t.Skip("no unnamed files here")
		}
		for _, used := range []bool{false, true} {
			if spare.Used() != used {
				t.Errorf("%s: used: %v", name, spare.Used())
			}
			staged, err := spare.Stage(staging, same)
			s.must(err)
			displaced, err := staged.Exchange(dir, "name")
			s.must(err)
			staged.Discard()
			s.must(staging.Remove(displaced))
			s.holds("dir/name", content)
			f, info, err := dir.Open("name")
			s.must(err)
			attrs, err := f.Attrs()
			s.must(err)
			f.Close()
			if info.Perm != same.Perm || info.MTime != same.MTime || len(attrs) > 0 {
				t.Errorf("%s: %+v with %v", name, info, attrs)
			}
		}
	}
	unused := NewSpare(staging, same)
	unused.Close()
	unused.Close()
	if !unused.Used() {
		t.Error("a closed spare can be taken")
	}
	s.empty("staging")
}

// TestLease meets a file on which somebody holds a lease: a plain open would
// wait for the holder, up to 45 seconds.
func TestLease(t *testing.T) {
	s := newScene(t)
	dir := s.mkdir("dir")
	s.write("dir/name", "x")
	holder, err := os.OpenFile(s.abs("dir/name"), os.O_RDWR, 0)
	s.must(err)
	defer holder.Close()
	if _, err := unix.FcntlInt(holder.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Skipf("no lease to be had: %v", err)
	}
	if f, _, err := dir.Open("name"); !errors.Is(err, ErrBusy) {
		if err == nil {
			f.Close()
		}
		t.Errorf("open: %v", err)
	}
	if info, err := dir.Stat("name"); err != nil || info.Kind != Regular {
		t.Errorf("stat: %+v, %v", info, err)
	}
	// It can be replaced all the same.
	staged := s.stage(dir, node("new"))
	_, err = staged.Exchange(dir, "name")
	s.must(err)
	s.holds("dir/name", "new")
}

func TestBeingWritten(t *testing.T) {
	s := newScene(t)
	dir := s.mkdir("dir")
	s.write("dir/name", "content")
	f, _, err := dir.Open("name")
	s.must(err)
	defer f.Close()
	if f.BeingWritten() {
		t.Error("nobody writes")
	}
	writer, err := os.OpenFile(s.abs("dir/name"), os.O_RDWR, 0)
	s.must(err)
	if !f.BeingWritten() {
		t.Error("a writer was not noticed")
	}
	mapped, err := unix.Mmap(int(writer.Fd()), 0, 7, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	s.must(err)
	s.must(writer.Close())
	if !f.BeingWritten() {
		t.Error("a mapping was not noticed")
	}
	s.must(unix.Munmap(mapped))
	if f.BeingWritten() {
		t.Error("nobody writes any more")
	}
	// Asking leaves no lease behind.
	again, err := os.OpenFile(s.abs("dir/name"), os.O_WRONLY|unix.O_NONBLOCK, 0)
	s.must(err)
	again.Close()
}

// TestNothingSpecialIsOpened meets what must not be opened: opening a FIFO
// would wake or wait for its other end, opening a device can have effects.
func TestNothingSpecialIsOpened(t *testing.T) {
	s := newScene(t)
	dir := s.mkdir("dir")
	s.put(FIFO, "dir/fifo")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	s.must(err)
	defer unix.Close(fd)
	s.must(unix.Bind(fd, &unix.SockaddrUnix{Name: fmt.Sprintf("/proc/self/fd/%d/socket", dir.fd)}))
	kinds := map[string]Kind{"fifo": FIFO, "socket": Socket}
	if err := unix.Mknod(s.abs("dir/device"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))); err == nil {
		kinds["device"] = Device
	}
	watch, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	s.must(err)
	defer unix.Close(watch)
	_, err = unix.InotifyAddWatch(watch, s.abs("dir"), unix.IN_OPEN)
	s.must(err)
	for name, kind := range kinds {
		for _, open := range []func(string) (*File, Info, error){dir.Open, dir.OpenWrite} {
			f, info, err := open(name)
			if err == nil {
				f.Close()
			}
			if !errors.Is(err, unix.EINVAL) || info.Kind != kind {
				t.Errorf("%s: %v, %v", name, info.Kind, err)
			}
		}
	}
	if n, err := unix.Read(watch, make([]byte, 4096)); err != unix.EAGAIN {
		t.Errorf("something was opened: %d bytes of events, %v", n, err)
	}
	entries, err := dir.ReadDir()
	s.must(err)
	for _, e := range entries {
		if e.Kind != kinds[e.Name] {
			t.Errorf("%s is a %v", e.Name, e.Kind)
		}
	}
}

// insideEnv is set in test binaries that run again somewhere special.
const insideEnv = "SAFEFILE_TEST_INSIDE"

// again is a command that runs only this test again, with words before it.
func again(t *testing.T, before ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	words := append(before, self, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = append(os.Environ(), insideEnv+"=1")
	return cmd
}

// inNamespaces runs the test again where it may mount what it likes. It
// returns true there.
func inNamespaces(t *testing.T) bool {
	t.Helper()
	if os.Getenv(insideEnv) != "" {
		if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			t.Skipf("mounts cannot be made: %v", err)
		}
		return true
	}
	cmd := again(t)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EACCES) {
		t.Skipf("no user namespace to be had: %v", err)
	}
	if err != nil {
		t.Errorf("in the namespaces: %v\n%s", err, out)
	}
	if bytes.Contains(out, []byte("--- SKIP")) {
		t.Skipf("in the namespaces:\n%s", out)
	}
	return false
}

// bind mounts one entry over another until the test ends.
func (s *scene) bind(from, over string) {
	s.Helper()
	s.must(unix.Mount(s.abs(from), s.abs(over), "", unix.MS_BIND, ""))
	s.Cleanup(func() { unix.Unmount(s.abs(over), unix.MNT_DETACH) })
}

func TestMountPoint(t *testing.T) {
	for line, want := range map[string]string{
		"21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw":           "/",
		`30 21 0:40 / /my\040work\134\011\012 rw - 9p host rw`:            "/my work\\\t\n",
		"30 21 0:40 / /a\u00a0b\rc\u2003d rw - ext4 /dev/sdb1 rw":         "/a\u00a0b\rc\u2003d",
		`30 21 0:40 /sub\040tree /not\04 rw master:1 - ext4 /dev/sdb1 rw`: `/not\04`,
		"broken line": "",
	} {
		if got, ok := MountPoint(line); got != want || ok != (want != "") {
			t.Errorf("%q names %q, want %q", line, got, want)
		}
	}
}

// The root itself is covered by the same directory on another mount: what is
// mounted beneath it from then on is not to be seen from the old one.
func TestRootMountedOver(t *testing.T) {
	if !inNamespaces(t) {
		return
	}
	s := newScene(t)
	s.mkdir("root")
	root, err := OpenRoot(s.abs("root"))
	s.must(err)
	defer root.Close()
	if root.mount == 0 {
		t.Skip("this kernel does not tell mounts apart")
	}
	s.bind("root", "root")
	if moved, err := root.Moved(); !moved || err != nil {
		t.Errorf("moved %v, %v", moved, err)
	}
	s.must(unix.Unmount(s.abs("root"), 0))
	if moved, err := root.Moved(); moved || err != nil {
		t.Errorf("the mount is gone: moved %v, %v", moved, err)
	}
}

// A directory above that nobody may search says nothing about the root.
func TestRootBehindAClosedDirectory(t *testing.T) {
	s := newScene(t)
	s.mkdir("above/root")
	root, err := OpenRoot(s.abs("above/root"))
	s.must(err)
	defer root.Close()
	s.must(os.Chmod(s.abs("above"), 0o600))
	defer os.Chmod(s.abs("above"), 0o755)
	if os.Geteuid() == 0 {
		// Of this thread alone, which ends with the test (setfsuid(2)).
		runtime.LockOSThread()
		s.must(unix.Setfsuid(65534))
	}
	moved, err := root.Moved()
	if os.Geteuid() == 0 {
		s.must(unix.Setfsuid(0))
	}
	if moved || !errors.Is(err, unix.EACCES) {
		t.Errorf("moved %v, %v", moved, err)
	}
}

func TestMounts(t *testing.T) {
	if !inNamespaces(t) {
		return
	}
	s := newScene(t)
	s.write("start \u00a0dir/beneath", "beneath")
	s.write("start-file", "beneath")
	s.write("a/file", "a")
	s.write("b/sub/file", "b")
	s.bind("b", "start \u00a0dir")
	s.bind("a/file", "start-file")
	s.reopen()

	// Mounts of the start are layout.
	if got := strings.Join(s.root.Mounts(), ","); got != "start \u00a0dir,start-file" {
		t.Errorf("mounts: %q", got)
	}
	f, _, err := s.dir("start \u00a0dir/sub").Open("file")
	s.must(err)
	f.Close()
	top := s.dir("")
	f, _, err = top.Open("start-file")
	s.must(err)
	f.Close()
	if s.root.MountedOver("start \u00a0dir") || s.root.MountedOver("start-file") || s.root.MountedOver("a") {
		t.Error("a mount of the start is told as a later one")
	}

	// Later ones cover what was there.
	s.bind("a", "b/sub")
	s.bind("start-file", "a/file")
	s.bind("a", "start \u00a0dir")
	for _, rel := range []string{"b/sub", "start \u00a0dir", "start \u00a0dir/sub"} {
		if _, err := s.root.Dir(rel); !errors.Is(err, ErrMounted) {
			t.Errorf("%s: %v", rel, err)
		}
	}
	a := s.dir("a")
	if _, err := a.Stat("file"); !errors.Is(err, ErrMounted) {
		t.Errorf("stat of a covered file: %v", err)
	}
	if _, _, err := a.Open("file"); !errors.Is(err, ErrMounted) {
		t.Errorf("open of a covered file: %v", err)
	}
	if _, err := s.dir("b").Dir("sub"); !errors.Is(err, ErrMounted) {
		t.Errorf("open of a covered directory: %v", err)
	}
	for _, rel := range []string{"b/sub", "start \u00a0dir", "a/file"} {
		if !s.root.MountedOver(rel) {
			t.Errorf("%s counts as not covered", rel)
		}
	}
	if _, err := s.stage(a, node("new")).Exchange(a, "file"); !errors.Is(err, unix.EBUSY) {
		t.Errorf("exchange with a mount point: %v", err)
	}

	// Detaching takes away the later ones only, also a pile of them.
	s.bind("b", "a/../b/sub")
	s.bind("start-file", "a/file")
	for _, rel := range []string{"b/sub", "a/file", "start \u00a0dir"} {
		s.must(s.root.Detach(rel))
		if s.root.MountedOver(rel) {
			t.Errorf("%s is still covered", rel)
		}
	}
	s.holds("b/sub/file", "b")
	s.holds("a/file", "a")
	s.holds("start \u00a0dir/sub/file", "b")
	system, err := OpenSystem()
	s.must(err)
	defer system.Close()
	dir, err := system.Dir(strings.TrimPrefix(s.abs("start \u00a0dir/sub"), "/"))
	s.must(err)
	dir.Close()
}

// TestFullDisk writes in place where there is no room.
func TestFullDisk(t *testing.T) {
	if !inNamespaces(t) {
		return
	}
	s := newScene(t)
	s.must(os.Mkdir(s.abs("disk"), 0o755))
	s.must(unix.Mount("tmpfs", s.abs("disk"), "tmpfs", 0, "size=64k"))
	s.Cleanup(func() { unix.Unmount(s.abs("disk"), unix.MNT_DETACH) })
	s.write("disk/name", "original")
	s.reopen()
	dir := s.dir("disk")
	fill, err := os.Create(s.abs("disk/fill"))
	s.must(err)
	for {
		if _, err := fill.Write(make([]byte, 4096)); err != nil {
			break
		}
	}
	s.must(fill.Close())
	info, err := dir.Stat("name")
	s.must(err)
	big := node(strings.Repeat("x", 20_000))
	if _, _, err := Overwrite(dir, "name", big, info.Inode, 1); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("written without room: %v", err)
	}
	s.holds("disk/name", "original")
	if _, err := Stage(dir, big); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("staged without room: %v", err)
	}
	// What fits in the room that the file has is written.
	_, _, err = Overwrite(dir, "name", node("fits"), info.Inode, 1)
	s.must(err)
	s.holds("disk/name", "fits")
}

// injected runs the test again under a tracer that makes system calls fail. It
// returns true there.
func injected(t *testing.T, faults ...string) bool {
	t.Helper()
	if os.Getenv(insideEnv) != "" {
		return true
	}
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	trace := filepath.Join(t.TempDir(), "trace")
	words := []string{strace, "-f", "-qq", "-o", trace}
	for _, fault := range faults {
		words = append(words, "-e", "inject="+fault)
	}
	out, err := again(t, words...).CombinedOutput()
	log, readErr := os.ReadFile(trace)
	if readErr != nil || bytes.Contains(out, []byte("PTRACE_")) {
		t.Skipf("nothing can be traced here: %v, %s", readErr, out)
	}
	if err != nil {
		t.Errorf("under the tracer: %v\n%s", err, out)
	}
	if !bytes.Contains(log, []byte("(INJECTED)")) {
		t.Error("no fault was injected")
	}
	return false
}

// TestWithoutRenameFlags works on a kernel whose renames know no flags.
func TestWithoutRenameFlags(t *testing.T) {
	if !injected(t, "renameat2:error=EINVAL") {
		return
	}
	for _, old := range []Kind{Regular, Symlink, Directory, FIFO} {
		for _, next := range []Node{node("new"), link("new-target")} {
			s := newScene(t)
			staging, dir := s.mkdir("stage"), s.mkdir("dir")
			s.put(old, "dir/name")
			staged := s.stage(staging, next)
			displaced, err := staged.Exchange(dir, "name")
			staged.Discard()
			s.must(err)
			s.is("dir", "name", next.Kind)
			s.is("stage", displaced, old)
			if old == Regular {
				s.holds("stage/"+displaced, "old")
			}
			if entries, _ := os.ReadDir(s.abs("stage")); len(entries) != 1 {
				t.Errorf("%d entries are left in the staging directory", len(entries))
			}
			again := s.stage(staging, next)
			if err := again.Place(dir, "name"); err == nil {
				t.Error("something was replaced")
			}
			s.is("dir", "name", next.Kind)
			s.must(Move(dir, "name", staging, "moved"))
			s.is("stage", "moved", next.Kind)
		}
	}
}

// TestPlacingFailsAfterMovingAside loses nothing when the second step of an
// exchange without rename flags fails.
func TestPlacingFailsAfterMovingAside(t *testing.T) {
	if !injected(t, "renameat2:error=ENOSYS", "linkat:error=ENOSPC:when=2+") {
		return
	}
	// The tracer counts the calls of each thread for itself.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s := newScene(t)
	staging, dir := s.mkdir("stage"), s.mkdir("dir")
	s.put(Regular, "dir/name")
	staged := s.stage(staging, node("new"))
	displaced, err := staged.Exchange(dir, "name")
	if err == nil || displaced == "" {
		t.Fatalf("%q, %v", displaced, err)
	}
	staged.Discard()
	s.holds("stage/"+displaced, "old")
	s.empty("dir")
}

// TestWithoutUnnamedFiles stages under a name where the file system has no
// others.
func TestWithoutUnnamedFiles(t *testing.T) {
	s := newScene(t)
	staging, dir := s.mkdir("stage"), s.mkdir("dir")
	s.put(Regular, "dir/name")
	s.write("stage/kept", "kept")
	named := &Staged{node: node("new"), dir: staging, fd: -1, name: Token()}
	fd, err := unix.Openat(staging.fd, named.name, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	s.must(err)
	named.fd = fd
	s.must(named.fill())
	if err := named.Place(dir, "name"); err == nil {
		t.Error("something was replaced")
	}
	displaced, err := named.Exchange(dir, "name")
	s.must(err)
	named.Discard()
	s.holds("dir/name", "new")
	s.holds("stage/"+displaced, "old")
	s.holds("stage/kept", "kept")
}

// Promise: of somebody else's file everything that cannot be set is named, and
// none of it is an error.
func TestDressOfSomebodyElses(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may set everything")
	}
	root, err := OpenRoot("/etc")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	dir, err := root.Dir("")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	file, info, err := dir.Open("passwd")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unset, err := file.Dress(Node{Perm: info.Perm, UID: info.UID + 1, GID: info.GID})
	if err != nil || len(unset) == 0 || unset[0].Name != OwnerAttr {
		t.Errorf("unset are %v, %v", unset, err)
	}
}

// Promise: a directory is made also where the system refuses to set its owner
// for another reason than that it is not allowed, and gets its mode even so.
func TestMkdirOfAGroupThatIsNotMapped(t *testing.T) {
	if !inNamespaces(t) {
		return
	}
	s := newScene(t)
	dir := s.mkdir("dir")
	const unmapped = 65534 // as which every other group shows
	s.must(dir.Mkdir("made", 0o750, 0, unmapped))
	made := s.dir("dir/made")
	if info, err := made.Info(); err != nil || info.Perm != 0o750 {
		t.Errorf("%+v, %v", info, err)
	}
	if unowned, err := made.Own(0o710, 0, unmapped); !errors.Is(unowned, unix.EINVAL) || err != nil {
		t.Errorf("the owner is set: %v, %v", unowned, err)
	}
	if info, err := made.Info(); err != nil || info.Perm != 0o710 {
		t.Errorf("%+v, %v", info, err)
	}
}

// Promise: a directory is made also where neither its owner nor its mode can be
// set, for its owner alone.
func TestMkdirWithoutModes(t *testing.T) {
	if !injected(t, "fchownat:error=ENOSYS", "fchmodat:error=EOPNOTSUPP") {
		return
	}
	s := newScene(t)
	dir := s.mkdir("dir")
	s.must(dir.Mkdir("made", 0o750, 4711, 4711))
	if info, err := s.dir("dir/made").Info(); err != nil || info.Perm != 0o700 {
		t.Errorf("%+v, %v", info, err)
	}
}

// Promise: a directory that was made and cannot be opened is removed again.
func TestMkdirWithoutDescriptors(t *testing.T) {
	s := newScene(t)
	dir := s.mkdir("dir")
	restored := limittest.NoFiles(t)
	err := dir.Mkdir("made", 0o750, 0, 0)
	restored()
	if !errors.Is(err, unix.EMFILE) {
		t.Errorf("it is made: %v", err)
	}
	s.empty("dir")
}

// Promise: an entry that cannot be looked at hides none of the others, where the
// file system tells no kinds. It is named itself, and what has gone is not.
func TestEntriesOfNoKind(t *testing.T) {
	s := newScene(t)
	s.write("dir/first", "1")
	s.write("dir/last/file", "2")
	var records []byte
	tooLong := strings.Repeat("n", 256) // as no file system has it: ENAMETOOLONG
	for _, name := range []string{".", "first", tooLong, "gone", "last"} {
		record := make([]byte, 19, 19+len(name)+1)
		record = append(append(record, name...), 0)
		binary.NativeEndian.PutUint16(record[16:], uint16(len(record)))
		record[18] = unix.DT_UNKNOWN
		records = append(records, record...)
	}
	var list listing
	list.decode(s.dir("dir"), records)
	if list.hidden != nil || len(list.entries) != 3 {
		t.Fatalf("%+v", list)
	}
	if first, last := list.entries[0], list.entries[2]; first != (DirEntry{Name: "first", Kind: Regular}) || last != (DirEntry{Name: "last", Kind: Directory}) {
		t.Errorf("%+v, %+v", first, last)
	}
	if blind := list.entries[1]; blind.Name != tooLong || blind.Kind != None || !errors.Is(blind.Err, unix.ENAMETOOLONG) {
		t.Errorf("%+v", blind)
	}
}

// Promise: where no entry can be looked at because the directory cannot be
// searched, that is the error of the directory.
func TestEntriesThatAreHidden(t *testing.T) {
	if !injected(t, "openat2:error=EACCES") {
		return
	}
	var list listing
	list.look(&Dir{fd: unix.AT_FDCWD, root: &Root{}}, "file")
	if !Hidden(list.hidden) || len(list.entries) > 0 {
		t.Errorf("%+v", list)
	}
}
