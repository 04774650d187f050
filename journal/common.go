package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// CommonLockName is the name of the lock in git's common directory that says
// which session guards the files the work trees share.
const CommonLockName = "gantry-cage-common.lock"

// CommonLock is held by the session that guards the common files.
type CommonLock struct {
	file *os.File
	path string
}

// LockCommon takes the lock of a common directory; nil where another session
// holds it.
func LockCommon(dir string) (*CommonLock, error) {
	const ownerReadWrite = 0o600
	path := filepath.Join(dir, CommonLockName)
	h, err := thisHost()
	if err != nil {
		return nil, err
	}
	for range lockAttempts {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, ownerReadWrite)
		if err != nil {
			return nil, fmt.Errorf("open the lock of the common files: %w", err)
		}
		held, _, err := h.lock(file)
		if err == nil && !held && isAt(file, path) {
			return &CommonLock{file: file, path: path}, nil
		}
		file.Close()
		if err != nil || held {
			return nil, err
		}
	}
	return nil, fmt.Errorf("lock the common files: %w", errReplaced)
}

// Release lets go of the lock and removes its file.
func (l *CommonLock) Release() error {
	var err error
	if isAt(l.file, l.path) {
		if err = os.Remove(l.path); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	return errors.Join(err, l.file.Close())
}
