package pushguard

import (
	"fmt"
	"os"
)

// short names the socket in an open folder.
func short(dir *os.File) string { return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), socketName) }
