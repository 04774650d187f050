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
// holds it. Something else under its name, which may be a link to a file of
// git's, is no lock: it loses that name and nothing is written into it.
func LockCommon(dir string) (*CommonLock, error) {
	path := filepath.Join(dir, CommonLockName)
	h, err := thisHost()
	if err != nil {
		return nil, err
	}
	for range lockAttempts {
		lock, held, err := tryCommon(path, h)
		if err != nil {
			return nil, fmt.Errorf("lock the common files: %w", err)
		}
		if held || lock != nil {
			return lock, nil
		}
	}
	return nil, fmt.Errorf("lock the common files: %w", errReplaced)
}

// tryCommon returns no lock where its file was replaced meanwhile, or was none
// and has been removed.
func tryCommon(path string, h host) (lock *CommonLock, held bool, err error) {
	const ownerReadWrite = 0o600
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, ownerReadWrite)
	if err != nil {
		return nil, false, removeForeign(path, err)
	}
	held, _, err = h.lock(file, tryLock)
	if err == nil && !held && isAt(file, path) {
		if info, err := file.Stat(); err == nil && privateFile(info) == nil {
			h.sign(file)
			return &CommonLock{file: file, path: path}, false, nil
		}
		err = os.Remove(path)
	}
	return nil, held, errors.Join(err, file.Close())
}

// removeForeign takes the name from what cannot be opened because it is no
// file; other errors it returns.
func removeForeign(path string, failed error) error {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().IsRegular() {
		return failed
	}
	return os.Remove(path)
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
