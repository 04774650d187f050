package safefile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// directoryFlags open a directory to work in.
const directoryFlags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW

const confined = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

func openTop(name string) (int, error) { return unix.Open(name, directoryFlags|unix.O_CLOEXEC, 0) }

// topMount returns the number of the mount that an open directory lies on, and 0
// before Linux 5.8, which has no STATX_MNT_ID (statx(2)).
func topMount(fd int) uint64 {
	id, err := mountOf(fd)
	if err != nil {
		return 0
	}
	return id
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
		point, _ := MountPoint(string(line))
		rel, ok := strings.CutPrefix(point, prefix)
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

// MountPoint returns where something is mounted by a line of
// proc_pid_mountinfo(5).
func MountPoint(line string) (string, bool) {
	// Other white space than what is escaped is part of a name.
	fields := strings.Split(line, " ")
	const point = 4
	if len(fields) <= point {
		return "", false
	}
	return unescapeMount(fields[point]), true
}

// unescapeMount undoes the octal escapes of the table.
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

// open resolves rel beneath the root.
func (r *Root) open(rel string, flags int) (int, error) {
	if rel == "" {
		// Resolving "." would take the right to search the directory, which
		// somebody may have taken away.
		fd, err := unix.FcntlInt(uintptr(r.fd), unix.F_DUPFD_CLOEXEC, 0)
		if err == unix.EINVAL { // so it says that no descriptor at all is allowed
			err = unix.EMFILE
		}
		return fd, err
	}
	if r.anyMount {
		return resolve(r.fd, rel, flags, confined)
	}
	mount, ok := r.startMount(rel)
	if !ok {
		return resolve(r.fd, rel, flags, confined|unix.RESOLVE_NO_XDEV)
	}
	if mount == rel {
		fd, err := resolve(r.fd, rel, flags, confined)
		return r.onMount(fd, err, mount)
	}
	top, err := resolve(r.fd, mount, unix.O_PATH|unix.O_NOFOLLOW, confined)
	if top, err = r.onMount(top, err, mount); err != nil {
		return -1, err
	}
	defer unix.Close(top)
	return resolve(top, rel[len(mount)+1:], flags, confined|unix.RESOLVE_NO_XDEV)
}

// resolve is openat2 for paths of any length: what the kernel takes at once is
// bounded (PATH_MAX with the final NUL), the depth of a tree is not.
func resolve(at int, rel string, flags int, how uint64) (int, error) {
	if len(rel) < unix.PathMax {
		return openat2(at, rel, flags, how)
	}
	cut := strings.LastIndexByte(rel[:unix.PathMax], '/')
	if cut < 0 {
		return -1, unix.ENAMETOOLONG
	}
	next, err := openat2(at, rel[:cut], directoryFlags, how)
	if err != nil {
		return -1, err
	}
	defer unix.Close(next)
	return resolve(next, rel[cut+1:], flags, how)
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
// EAGAIN when something was renamed while it looked, and EXDEV, as a mount does
// every time, when what it found was moved out of dir before it was done. A
// write lease answers EAGAIN to a non-blocking open for as long as it is held
// (fcntl(2)).
func openat2(dir int, name string, flags int, resolve uint64) (int, error) {
	how := unix.OpenHow{Flags: uint64(flags) | unix.O_CLOEXEC, Resolve: resolve}
	mounted := false
	for range 16 {
		fd, err := unix.Openat2(dir, name, &how)
		mounted = err == unix.EXDEV
		switch {
		case mounted, err == unix.EINTR, err == unix.EAGAIN && flags&unix.O_PATH != 0:
			continue
		case err == unix.EAGAIN:
			return -1, ErrBusy
		}
		return fd, err
	}
	if mounted {
		return -1, ErrMounted
	}
	return -1, unix.EAGAIN
}

// MountedOver reports whether a mount that was not there at the start covers
// the entry at rel itself.
func (r *Root) MountedOver(rel string) bool {
	fd, err := r.open(rel, unix.O_PATH|unix.O_NOFOLLOW)
	if err == nil {
		unix.Close(fd)
	}
	return errors.Is(err, ErrMounted)
}

// Detach unmounts what covers the entry at rel, however many mounts lie on
// each other there. It needs CAP_SYS_ADMIN.
func (r *Root) Detach(rel string) error {
	dir, err := r.Dir(parent(rel))
	if err != nil {
		return err
	}
	defer dir.Close()
	target := selfFD(dir.fd) + "/" + path.Base(rel)
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

// selfFD names an open descriptor by a path that system calls without a
// descriptor form accept. The program stays allowed to follow it when it is
// undumpable: the kernel exempts a thread group from the check on itself.
func selfFD(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }
