package gitrepo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"cage/internal/physical"
)

// DotGitAbove returns the nearest entry called `.git`, of whatever type, in dir
// or a directory above it, and whether there is one. No git is run. A directory
// that cannot be looked into is an error: what it holds is not known.
func DotGitAbove(dir string) (string, bool, error) {
	if !filepath.IsAbs(dir) {
		return "", false, fmt.Errorf("look for .git above %q: not an absolute path", dir)
	}
	at, err := physical.Path(dir)
	if err != nil {
		return "", false, fmt.Errorf("look for .git above %q: %w", dir, err)
	}
	for {
		candidate := join(at, ".git")
		_, err := os.Lstat(candidate)
		if err == nil {
			return candidate, true, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return "", false, fmt.Errorf("look for .git above %q: %w", dir, err)
		}
		if at == "/" {
			return "", false, nil
		}
		at = filepath.Dir(at)
	}
}
