// Package safefile opens, reads, exchanges and removes files beneath a
// directory without following a symlink in any component and without crossing
// a mount that was not there when the directory was opened. It is the only
// code of the program that replaces a file in a protected tree.
//
// Every name is resolved by the kernel in one step (openat2 on Linux, a walk
// by component elsewhere) and the work is done in the descriptor that came out,
// so that a component swapped afterwards redirects nothing. Names are bytes.
//
// It promises that nothing it replaces is destroyed: what stood at a name is
// moved to the name the caller gives, whatever it is. It does not decide what
// to replace, and it does not prove afterwards that the directory is still
// where it was: callers resolve again and compare.
package safefile

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"syscall"
)

// Kind is the type of a directory entry.
type Kind uint8

// The kinds. None stands for nothing at all.
const (
	None Kind = iota
	Regular
	Symlink
	Directory
	FIFO
	Socket
	Device
)

func (k Kind) String() string {
	return [...]string{"nothing", "file", "symlink", "directory", "fifo", "socket", "device"}[k]
}

// Inode identifies a file on this machine for as long as it exists; inode
// numbers are reused at once, so equality proves nothing about the past.
type Inode struct{ Dev, Ino uint64 }

// Attr is one extended attribute.
type Attr struct {
	Name  string
	Value []byte
}

// OwnerAttr stands for user and group among the attributes that the system
// refused to set.
const OwnerAttr = "owner"

// SameAttrs reports whether two sorted attribute lists are equal.
func SameAttrs(a, b []Attr) bool {
	return slices.EqualFunc(a, b, func(x, y Attr) bool {
		return x.Name == y.Name && string(x.Value) == string(y.Value)
	})
}

// Info is what the kernel says of an entry, without its content.
type Info struct {
	Kind  Kind
	Perm  uint32 // permission bits with setuid, setgid and sticky
	UID   uint32
	GID   uint32
	Size  int64 // bytes
	MTime int64 // nanoseconds since 1970
	Nlink uint64
	Inode Inode
}

// Node is everything a restore writes: the entry as it shall stand.
type Node struct {
	Kind    Kind // Regular or Symlink
	Perm    uint32
	UID     uint32
	GID     uint32
	MTime   int64 // nanoseconds since 1970
	Attrs   []Attr
	Link    string // target of a symlink
	Content []byte // of a regular file
}

// ErrMounted is returned where a mount that was not there at the start covers
// a component of the path.
var ErrMounted = errors.New("a mount covers it")

// ErrBusy is returned for a file that cannot be opened without waiting for
// somebody: a lease is held on it.
var ErrBusy = errors.New("a lease is held on it")

// Obstructed reports whether err says that a component of the path is
// something else than a directory: a symlink, a file.
func Obstructed(err error) bool {
	return errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENOTDIR)
}

// Missing reports whether err says that nothing stands at the path.
func Missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// Absent reports whether err says that nothing can stand at the path: it is
// missing, or obstructed on the way.
func Absent(err error) bool { return Missing(err) || Obstructed(err) }

// UnlessAbsent drops an error that only says that nothing stands at the path.
func UnlessAbsent(err error) error {
	if Absent(err) {
		return nil
	}
	return err
}

// Hidden reports whether err says that what stands at the path cannot be seen.
func Hidden(err error) bool {
	return errors.Is(err, ErrMounted) || errors.Is(err, fs.ErrPermission)
}

// Unseen reports whether err says nothing about what stands at the path, not
// even that nothing does or that it is hidden: the look itself failed, and has
// to be repeated.
func Unseen(err error) bool {
	return err != nil && !Absent(err) && !Hidden(err) && !errors.Is(err, ErrBusy)
}

// Exhausted reports whether err says that this program or the machine ran out
// of something it needs to look, or was kept from it for the moment: nothing
// was seen, so nothing is known.
func Exhausted(err error) bool {
	for _, errno := range []error{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS, syscall.EINTR, syscall.EAGAIN,
	} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// ErrnoName returns the symbolic name of the error number in err, such as
// "EACCES", and "ERROR" where there is none.
func ErrnoName(err error) string {
	if errors.Is(err, ErrMounted) {
		return "EXDEV"
	}
	if errors.Is(err, ErrBusy) {
		return "EAGAIN"
	}
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return "ERROR"
	}
	return errnoName(errno)
}

// KeepsAttr says which extended attributes belong to a file's state: the
// user's own and the access control lists. Security labels are the system's.
func KeepsAttr(name string) bool {
	return strings.HasPrefix(name, "user.") ||
		name == "system.posix_acl_access" || name == "system.posix_acl_default"
}

// Token returns a random name that nobody has guessed: 128 bits in hex.
func Token() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
