package safefile

import "golang.org/x/sys/unix"

// errNoAttr is what reading an attribute that is not there fails with.
const errNoAttr = unix.ENOATTR
