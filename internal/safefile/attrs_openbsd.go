package safefile

import "golang.org/x/sys/unix"

// errNoAttr is what reading an attribute that is not there fails with.
const errNoAttr = unix.ENOATTR

// attrNames lists nothing: the system has no extended attributes.
func attrNames(int) ([]string, error) { return nil, nil }

func attrValue(int, string) ([]byte, error) { return nil, errNoAttr }

func setAttr(int, Attr) error { return unix.EOPNOTSUPP }

func removeAttr(int, string) error { return unix.EOPNOTSUPP }
