//go:build darwin || freebsd || netbsd || openbsd

package safefile

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// directoryFlags open a directory to work in: no kernel here has descriptors
// that need no right to read.
const directoryFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_NONBLOCK

func openTop(name string) (int, error) { return openAt(unix.AT_FDCWD, name, directoryFlags) }

// topMount returns 0: the device number, which is in the inode, tells mounts
// apart.
func topMount(int) uint64 { return 0 }

// noteMounts asks for the mounts once: those beneath the root become layout
// that paths may cross. They are known by their device numbers.
func (r *Root) noteMounts() error {
	points, err := mountPoints()
	if err != nil {
		return fmt.Errorf("list the mounts: %w", err)
	}
	prefix := strings.TrimSuffix(r.path, "/") + "/"
	for _, point := range points {
		rel, ok := strings.CutPrefix(point, prefix)
		if !ok {
			continue
		}
		var st unix.Stat_t
		if err := unix.Lstat(point, &st); err != nil {
			continue // shadowed by a later mount: not reachable by this path
		}
		if r.mounts == nil {
			r.mounts = make(map[string]uint64)
		}
		r.mounts[rel] = uint64(st.Dev)
	}
	return nil
}

// device returns the number of the device that rel lay on at the start.
func (r *Root) device(rel string) uint64 {
	if mount, ok := r.startMount(rel); ok {
		return r.mounts[mount]
	}
	return r.inode.Dev
}

// open resolves rel beneath the root, one component after the other.
func (r *Root) open(rel string, flags int) (int, error) {
	if rel == "" {
		return r.step(r.fd, "", ".", flags)
	}
	at := r.fd
	for from := 0; ; {
		length := strings.IndexByte(rel[from:], '/')
		if length < 0 {
			fd, err := r.step(at, rel, rel[from:], flags)
			r.leave(at)
			return fd, err
		}
		next, err := r.step(at, rel[:from+length], rel[from:from+length], directoryFlags)
		r.leave(at)
		if err != nil {
			return -1, err
		}
		at, from = next, from+length+1
	}
}

// leave closes a directory on the way, which the root itself is not.
func (r *Root) leave(fd int) {
	if fd != r.fd {
		unix.Close(fd)
	}
}

// step opens one name, which is rel beneath the root, if it lies on the device
// of the start. No name leads upwards.
func (r *Root) step(at int, rel, name string, flags int) (int, error) {
	if name == ".." {
		return -1, unix.EINVAL
	}
	fd, err := openAt(at, name, flags)
	if err != nil || r.anyMount {
		return fd, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return -1, err
	}
	if uint64(st.Dev) != r.device(rel) {
		unix.Close(fd)
		return -1, ErrMounted
	}
	return fd, nil
}

// openAt follows no symlink at the end of name. The systems differ in how they
// say that one stands there.
func openAt(dir int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		switch err {
		case unix.EINTR:
			continue
		case unix.EMLINK, unix.EFTYPE:
			return -1, unix.ELOOP
		}
		return fd, err
	}
}

// MountedOver reports whether a mount that was not there at the start covers
// the entry at rel itself.
func (r *Root) MountedOver(rel string) bool {
	dir, err := r.Dir(parent(rel))
	if err != nil {
		return errors.Is(err, ErrMounted)
	}
	defer dir.Close()
	_, err = dir.Stat(path.Base(rel))
	return errors.Is(err, ErrMounted)
}

// Detach fails: an unmount here takes a path, which somebody could lead
// elsewhere in between.
func (r *Root) Detach(rel string) error {
	return &os.PathError{Op: "unmount", Path: r.name(rel), Err: unix.ENOTSUP}
}
