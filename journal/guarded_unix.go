//go:build unix

package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Guarded reports whether a session holds the lock in a journal's folder, or
// the one that says who guards the common files of commonDir; that is empty
// outside git. It makes nothing and leaves the locks as they are.
func Guarded(folder, commonDir string) (bool, error) {
	locks := []string{filepath.Join(folder, lockName)}
	if commonDir != "" {
		locks = append(locks, filepath.Join(commonDir, CommonLockName))
	}
	for _, lock := range locks {
		held, err := locked(lock)
		if err != nil {
			return false, fmt.Errorf("find out whether a session runs: %w", err)
		}
		if held {
			return true, nil
		}
	}
	return false, nil
}

// GuardedElsewhere reports whether a session guards the common files of
// commonDir and none holds the lock in a journal's folder: it runs in another
// work tree. Like Guarded it makes nothing.
func GuardedElsewhere(folder, commonDir string) (bool, error) {
	here, err := locked(filepath.Join(folder, lockName))
	if err != nil || here {
		return false, err
	}
	return locked(filepath.Join(commonDir, CommonLockName))
}

// locked asks for a shared lock, which is gone with the file.
func locked(path string) (bool, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	return shareLock(f)
}
