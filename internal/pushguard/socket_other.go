//go:build !linux

package pushguard

import (
	"os"
	"path/filepath"
)

// short names the socket in an open folder. Here there is no shorter name, and
// the system says what it thinks of this one.
func short(dir *os.File) string { return filepath.Join(dir.Name(), socketName) }
