//go:build freebsd || netbsd

package safefile

import "golang.org/x/sys/unix"

// errNoAttr is what reading an attribute that is not there fails with.
const errNoAttr = unix.ENOATTR

// attrNames lists the names of the user's extended attributes of an open file.
// The system keeps namespaces apart and lists names without them, each after
// a byte that holds its length (extattr_list_fd(2)).
func attrNames(fd int) ([]string, error) {
	list, err := whole(func(buf []byte) (int, error) {
		return unix.FlistxattrNS(fd, unix.EXTATTR_NAMESPACE_USER, buf)
	})
	if err == unix.EOPNOTSUPP || err == unix.EPERM {
		return nil, nil
	}
	var names []string
	for len(list) > 0 && int(list[0]) < len(list) {
		end := 1 + int(list[0])
		names = append(names, "user."+string(list[1:end]))
		list = list[end:]
	}
	return names, err
}

func attrValue(fd int, name string) ([]byte, error) {
	return whole(func(buf []byte) (int, error) { return unix.Fgetxattr(fd, name, buf) })
}

// whole calls a function that cuts off silently what its buffer does not hold,
// until there is room to spare.
func whole(read func([]byte) (int, error)) ([]byte, error) {
	for buf := make([]byte, 512); ; buf = make([]byte, 2*len(buf)) {
		n, err := read(buf)
		if err != nil {
			return nil, err
		}
		if n < len(buf) {
			return buf[:n:n], nil
		}
	}
}

func setAttr(fd int, attr Attr) error { return unix.Fsetxattr(fd, attr.Name, attr.Value, 0) }

func removeAttr(fd int, name string) error { return unix.Fremovexattr(fd, name) }
