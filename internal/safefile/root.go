//go:build linux || darwin || freebsd || netbsd || openbsd

package safefile

import (
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Root is an open directory beneath which all work is done.
type Root struct {
	fd    int
	path  string
	inode Inode
	// mount tells the mount that the directory lies on from others that show the
	// same directory; 0 where the kernel does not tell.
	mount uint64
	// mounts maps the relative paths of mount points that stood beneath the
	// root when it was opened to what tells them from later ones. They are
	// layout.
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
	fd, err := openTop(name)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, &os.PathError{Op: "stat", Path: name, Err: err}
	}
	return &Root{fd: fd, path: name, inode: inodeOf(&st), mount: topMount(fd)}, nil
}

// Close releases the root.
func (r *Root) Close() error { return unix.Close(r.fd) }

// Path returns the path the root was opened by.
func (r *Root) Path() string { return r.path }

// Inode returns the identity of the directory itself.
func (r *Root) Inode() Inode { return r.inode }

// Moved reports whether another directory, or none, now stands at the path the
// root was opened by, or the same one on another mount: what is mounted beneath
// it there is not seen from here. An error says that nobody can tell.
func (r *Root) Moved() (bool, error) {
	again, err := openRoot(r.path)
	if err != nil {
		return Absent(err), UnlessAbsent(err)
	}
	defer again.Close()
	remounted := again.mount != r.mount && again.mount != 0 && r.mount != 0
	return again.inode != r.inode || remounted, nil
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

// Dir opens the directory at rel; an empty rel is the root itself.
func (r *Root) Dir(rel string) (*Dir, error) {
	fd, err := r.open(rel, directoryFlags)
	if err != nil {
		return nil, &os.PathError{Op: "open directory", Path: r.name(rel), Err: err}
	}
	return &Dir{fd: fd, root: r, rel: rel}, nil
}

func (r *Root) name(rel string) string { return path.Join(r.path, rel) }

// Mounts returns the mount points of the start beneath the root, sorted.
func (r *Root) Mounts() []string {
	points := make([]string, 0, len(r.mounts))
	for point := range r.mounts {
		points = append(points, point)
	}
	slices.Sort(points)
	return points
}

func parent(rel string) string {
	if i := strings.LastIndexByte(rel, '/'); i >= 0 {
		return rel[:i]
	}
	return ""
}

func inodeOf(st *unix.Stat_t) Inode { return Inode{Dev: uint64(st.Dev), Ino: uint64(st.Ino)} }

func infoOf(st *unix.Stat_t) Info {
	return Info{
		Kind: kindOf(uint32(st.Mode)), Perm: uint32(st.Mode) & 0o7777, UID: st.Uid, GID: st.Gid,
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

func errnoName(e unix.Errno) string {
	if name := unix.ErrnoName(e); name != "" {
		return name
	}
	return "ERROR"
}
