package safefile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const confined = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

// Root is an open directory beneath which all work is done.
type Root struct {
	fd    int
	path  string
	inode Inode
	// mounts maps the relative paths of mount points that stood beneath the
	// root when it was opened to their mount ids. They are layout.
	mounts map[string]uint64
	// anyMount lifts the confinement to the mounts of the start.
	anyMount bool
}

// OpenRoot opens the directory at an absolute path without symlinks and notes
// which mounts stand beneath it.
func OpenRoot(name string) (*Root, error) {
	r, err := openRoot(name)
	if err != nil {
		return nil, err
	}
	if err := r.noteMounts(); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// OpenSystem opens the file system's root for reading wherever mounts lead.
func OpenSystem() (*Root, error) {
	r, err := openRoot("/")
	if err != nil {
		return nil, err
	}
	r.anyMount = true
	return r, nil
}

func openRoot(name string) (*Root, error) {
	fd, err := unix.Open(name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, &os.PathError{Op: "stat", Path: name, Err: err}
	}
	return &Root{fd: fd, path: name, inode: inodeOf(&st)}, nil
}

// Close releases the root.
func (r *Root) Close() error { return unix.Close(r.fd) }

// Path returns the path the root was opened by.
func (r *Root) Path() string { return r.path }

// Inode returns the identity of the directory itself.
func (r *Root) Inode() Inode { return r.inode }

// Moved reports whether another directory, or none, now stands at the path the
// root was opened by.
func (r *Root) Moved() bool {
	again, err := openRoot(r.path)
	if err != nil {
		return true
	}
	defer again.Close()
	return again.inode != r.inode
}

// noteMounts reads the mount table once: mount points beneath the root become
// layout that paths may cross.
func (r *Root) noteMounts() error {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("read the mount table: %w", err)
	}
	prefix := strings.TrimSuffix(r.path, "/") + "/"
	for line := range bytes.Lines(table) {
		fields := strings.Fields(string(line))
		if len(fields) < 5 {
			continue
		}
		rel, ok := strings.CutPrefix(unescapeMount(fields[4]), prefix)
		if !ok {
			continue
		}
		id, err := r.mountID(rel)
		if err != nil {
			continue // shadowed by a later mount: not reachable by this path
		}
		if r.mounts == nil {
			r.mounts = make(map[string]uint64)
		}
		r.mounts[rel] = id
	}
	return nil
}

// unescapeMount undoes the octal escapes of proc_pid_mountinfo(5).
func unescapeMount(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+4 <= len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func (r *Root) mountID(rel string) (uint64, error) {
	fd, err := openat2(r.fd, rel, unix.O_PATH|unix.O_NOFOLLOW, confined)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	return mountOf(fd)
}

func mountOf(fd int) (uint64, error) {
	var st unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &st); err != nil {
		return 0, err
	}
	return st.Mnt_id, nil
}

// startMount returns the innermost mount point of the start that rel is or
// lies beneath.
func (r *Root) startMount(rel string) (string, bool) {
	if len(r.mounts) == 0 {
		return "", false
	}
	for dir := rel; dir != "." && dir != "/"; dir = path.Dir(dir) {
		if _, ok := r.mounts[dir]; ok {
			return dir, true
		}
	}
	return "", false
}

// open resolves rel beneath the root.
func (r *Root) open(rel string, flags uint64) (int, error) {
	if rel == "" {
		rel = "."
	}
	if r.anyMount {
		return openat2(r.fd, rel, flags, confined)
	}
	mount, ok := r.startMount(rel)
	if !ok {
		return openat2(r.fd, rel, flags, confined|unix.RESOLVE_NO_XDEV)
	}
	if mount == rel {
		fd, err := openat2(r.fd, rel, flags, confined)
		return r.onMount(fd, err, mount)
	}
	top, err := openat2(r.fd, mount, unix.O_PATH|unix.O_NOFOLLOW, confined)
	if top, err = r.onMount(top, err, mount); err != nil {
		return -1, err
	}
	defer unix.Close(top)
	return openat2(top, rel[len(mount)+1:], flags, confined|unix.RESOLVE_NO_XDEV)
}

// onMount keeps fd only if it still lies on the mount noted for the point.
func (r *Root) onMount(fd int, err error, point string) (int, error) {
	if err != nil {
		return -1, err
	}
	if id, err := mountOf(fd); err != nil || id != r.mounts[point] {
		unix.Close(fd)
		return -1, ErrMounted
	}
	return fd, nil
}

// openat2 retries what the kernel asks to retry: RESOLVE_BENEATH answers
// EAGAIN when something was renamed while it looked, and a write lease answers
// EAGAIN to a non-blocking open for as long as it is held (fcntl(2)).
func openat2(dir int, name string, flags, resolve uint64) (int, error) {
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: resolve}
	for range 16 {
		fd, err := unix.Openat2(dir, name, &how)
		switch {
		case err == unix.EINTR, err == unix.EAGAIN && flags&unix.O_PATH != 0:
			continue
		case err == unix.EAGAIN:
			return -1, ErrBusy
		case err == unix.EXDEV:
			return -1, ErrMounted
		}
		return fd, err
	}
	return -1, unix.EAGAIN
}

// Dir opens the directory at rel; an empty rel is the root itself.
func (r *Root) Dir(rel string) (*Dir, error) {
	fd, err := r.open(rel, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return nil, &os.PathError{Op: "open directory", Path: r.name(rel), Err: err}
	}
	return &Dir{fd: fd, root: r, rel: rel}, nil
}

func (r *Root) name(rel string) string { return path.Join(r.path, rel) }

// MountedOver reports whether a mount that was not there at the start covers
// the entry at rel itself.
func (r *Root) MountedOver(rel string) bool {
	fd, err := r.open(rel, unix.O_PATH|unix.O_NOFOLLOW)
	if err == nil {
		unix.Close(fd)
	}
	return errors.Is(err, ErrMounted)
}

// Mounts returns the mount points of the start beneath the root, sorted.
func (r *Root) Mounts() []string {
	points := make([]string, 0, len(r.mounts))
	for point := range r.mounts {
		points = append(points, point)
	}
	slices.Sort(points)
	return points
}

// Detach unmounts what covers the entry at rel, however many mounts lie on
// each other there. It needs CAP_SYS_ADMIN.
func (r *Root) Detach(rel string) error {
	dir, err := r.Dir(parent(rel))
	if err != nil {
		return err
	}
	defer dir.Close()
	target := "/proc/self/fd/" + strconv.Itoa(dir.fd) + "/" + path.Base(rel)
	for range 64 {
		if !r.MountedOver(rel) {
			return nil
		}
		if err := unix.Unmount(target, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			return &os.PathError{Op: "unmount", Path: r.name(rel), Err: err}
		}
	}
	return &os.PathError{Op: "unmount", Path: r.name(rel), Err: unix.EBUSY}
}

func parent(rel string) string {
	if i := strings.LastIndexByte(rel, '/'); i >= 0 {
		return rel[:i]
	}
	return ""
}

func inodeOf(st *unix.Stat_t) Inode { return Inode{Dev: uint64(st.Dev), Ino: st.Ino} }

func infoOf(st *unix.Stat_t) Info {
	return Info{
		Kind: kindOf(st.Mode), Perm: st.Mode & 0o7777, UID: st.Uid, GID: st.Gid,
		Size: st.Size, MTime: st.Mtim.Nano(), Nlink: uint64(st.Nlink), Inode: inodeOf(st),
	}
}

func kindOf(mode uint32) Kind {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return Regular
	case unix.S_IFLNK:
		return Symlink
	case unix.S_IFDIR:
		return Directory
	case unix.S_IFIFO:
		return FIFO
	case unix.S_IFSOCK:
		return Socket
	default:
		return Device
	}
}

// selfFD names an open descriptor by a path that system calls without a
// descriptor form accept. The program stays allowed to follow it when it is
// undumpable: the kernel exempts a thread group from the check on itself.
func selfFD(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

func errnoName(e unix.Errno) string {
	if name := unix.ErrnoName(e); name != "" {
		return name
	}
	return "ERROR"
}
