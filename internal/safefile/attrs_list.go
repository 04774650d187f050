//go:build linux || darwin

package safefile

import (
	"strings"

	"golang.org/x/sys/unix"
)

// attrNames lists the names of the extended attributes of an open file. A file
// system without them has none.
func attrNames(fd int) ([]string, error) {
	var small [512]byte
	names := small[:]
	n, err := unix.Flistxattr(fd, names)
	for err == unix.ERANGE {
		names = make([]byte, 2*len(names))
		n, err = unix.Flistxattr(fd, names)
	}
	if err == unix.EOPNOTSUPP || err == unix.ENOTSUP || err == unix.EPERM || n == 0 && err == nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(names[:n]), "\x00"), "\x00"), nil
}

func attrValue(fd int, name string) ([]byte, error) {
	value := make([]byte, 256)
	for {
		n, err := unix.Fgetxattr(fd, name, value)
		if err == nil {
			return value[:n:n], nil
		}
		if err != unix.ERANGE {
			return nil, err
		}
		// 64 KiB is the kernel's limit for one value (xattr(7)).
		if len(value) > 64<<10 {
			return nil, err
		}
		value = make([]byte, 4*len(value))
	}
}

func setAttr(fd int, attr Attr) error { return unix.Fsetxattr(fd, attr.Name, attr.Value, 0) }

func removeAttr(fd int, name string) error { return unix.Fremovexattr(fd, name) }
