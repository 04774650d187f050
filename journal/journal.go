// Package journal is the record of a running session on disk: what it protects
// with the content to put back, who it is, and which processes it has. After a
// cage was killed, the next one finds there what it needs to end the processes
// and restore the files.
//
// It promises that there is either a whole journal or none, wherever the
// writer was killed or the power failed; that nothing it reads back is used
// before all of it was verified, and that a lock says whether the owner lives.
// It holds no absolute path, so that it can name nothing outside the
// directories of the session that finds it. The hashes beside every part show
// accidents, not a forger of the same user.
//
// It recovers nothing itself: it says what was.
package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"cage/internal/proc"
	"cage/internal/safefile"
	"cage/internal/tempdir"
	"cage/rules"
	"cage/snapshot"
)

// folderName is the name of the journal's folder in a git directory.
const folderName = "gantry-cage-journal"

// Record is what a session journals when it starts.
type Record struct {
	Session  string
	Layout   rules.Layout
	Started  time.Time
	Rules    Rules
	Manifest *snapshot.Manifest
	Store    *snapshot.Store
}

// Rules are what the session's plan was made of.
type Rules struct {
	Git          rules.Git
	Config       rules.File
	ManifestYAML rules.File
	ManifestJSON rules.File
	Overrides    []string
	Exempt       []rules.Path
	Elsewhere    []rules.Anchor
	Joined       []rules.Path
}

// ActiveError is returned where the session of a journal still runs.
type ActiveError struct {
	Folder string
	// Cage is its process; zero where the lock does not tell.
	Cage proc.ID
	// Dead says that the process that signed the lock is gone or does not hold
	// it, or none did: somebody else holds it.
	Dead bool
}

func (e *ActiveError) Error() string {
	switch {
	case e.Dead:
		return "somebody holds the lock of " + e.Folder + " whose session is gone"
	case e.Cage.PID == 0:
		return "another session runs here; it holds " + e.Folder
	}
	text := fmt.Sprintf("another session runs here: process %d", e.Cage.PID)
	// What the number is taken from can have been forged.
	if name := e.Cage.Name(); name != "" {
		text += fmt.Sprintf(" (%q)", name)
	}
	return text
}

// CorruptError is returned for a journal that cannot be trusted. Nothing of it
// was used.
type CorruptError struct {
	Folder string
	Reason string
}

// PartGone is the reason where a session is known not to have ended, and what
// it left is no whole journal.
const PartGone = "a part of it is gone"

func (e *CorruptError) Error() string {
	return fmt.Sprintf("the journal of an earlier session in %s cannot be trusted: %s", e.Folder, e.Reason)
}

// Journal is the journal of this session. One goroutine uses it at a time.
type Journal struct {
	folder string
	// held is the folder where it is this session's own, and dir the same open.
	held  *tempdir.Folder
	dir   *os.Root
	inode safefile.Inode
	lock  *os.File
	host  host

	record     Record
	anchors    map[string]uint64
	written    map[string]trace
	generation int
	// newest is what the life record of the present generation looks like on
	// disk, and signed the sign of life in it.
	newest     map[string]trace
	signed     time.Time
	amendments map[rules.Path]*snapshot.Entry
	processes  []proc.ID
	leaves     bool
	ended      bool
	// found are the places of what somebody had put where only the journal
	// belongs.
	found []string
}

// Folder returns where the journal of a session lies: in the work tree's own
// git directory, outside git in a folder of the temporary directory that is
// named after the user and the root.
func Folder(layout rules.Layout, temp string) string {
	switch {
	case layout.GitDir != "":
		return filepath.Join(layout.GitDir, folderName)
	case layout.CommonDir != "":
		return filepath.Join(layout.CommonDir, folderName)
	default:
		key := snapshot.IDOf([]byte(layout.Root)).String()[:16]
		return filepath.Join(temp, folderName+"-"+strconv.Itoa(os.Geteuid())+"-"+key)
	}
}

// Acquire takes the lock of a folder, which it makes where there is none. Where
// an earlier session did not end, what it left is returned beside the journal:
// it stays on disk until Write or Remove. An error is an *ActiveError, a
// *CorruptError, or says why the folder cannot be used.
func Acquire(folder string) (*Journal, *Interrupted, error) {
	j := &Journal{folder: folder, amendments: make(map[rules.Path]*snapshot.Entry)}
	var err error
	if j.host, err = thisHost(); err != nil {
		return nil, nil, err
	}
	if err := j.open(); err != nil {
		return nil, nil, err
	}
	left, err := j.load()
	if err != nil {
		j.Close()
		return nil, nil, err
	}
	return j, left, nil
}

// Peek reads what an earlier session left in a folder whose lock somebody holds
// who is no cage. It changes nothing.
func Peek(folder string) (*Interrupted, error) {
	j, err := view(folder)
	if err != nil {
		return nil, err
	}
	defer j.dir.Close()
	return j.load()
}

// Inspect reads what an earlier session left in a folder, and reports whether
// anything lies there at all; fs.ErrNotExist says that there is no folder. It
// changes nothing, and a session that starts meanwhile waits for its end. Other
// errors are as those of Acquire.
func Inspect(folder string) (left *Interrupted, remains bool, err error) {
	j, err := view(folder)
	if err != nil {
		return nil, false, err
	}
	defer j.dir.Close()
	lock, err := j.shareLock()
	if err != nil {
		return nil, false, err
	}
	if lock != nil {
		defer lock.Close()
	}
	if left, err = j.load(); err != nil {
		return nil, false, err
	}
	return left, j.Remains(), nil
}

// view opens a folder to be read. Of the journal only what reads it may be
// called.
func view(folder string) (*Journal, error) {
	j := &Journal{folder: folder}
	var err error
	if j.host, err = thisHost(); err != nil {
		return nil, err
	}
	if err := private(folder); err != nil {
		return nil, err
	}
	if j.dir, err = os.OpenRoot(folder); err != nil {
		return nil, fmt.Errorf("open the journal's folder: %w", err)
	}
	if j.inode, err = inodeOf(j.dir); err != nil {
		j.dir.Close()
		return nil, err
	}
	return j, nil
}

// shareLock keeps sessions from starting until it is closed; nil where there is
// no lock.
func (j *Journal) shareLock() (*os.File, error) {
	lock, err := openFile(j.dir, lockName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, &CorruptError{Folder: j.folder, Reason: err.Error()}
	}
	held, by, err := j.host.lock(lock, shareLock)
	if err == nil && held {
		err = &ActiveError{Folder: j.folder, Cage: by.id, Dead: !by.lives}
	}
	if err != nil {
		lock.Close()
		return nil, err
	}
	return lock, nil
}

// Remains reports whether parts of a journal lie in the folder.
func (j *Journal) Remains() bool {
	names, err := j.names()
	return err != nil || slices.ContainsFunc(names, func(name string) bool { return name != lockName })
}

// lockAttempts bounds how often the lock is tried anew because its folder was
// removed by a session that ended meanwhile.
const lockAttempts = 16

// open makes the folder and takes its lock.
func (j *Journal) open() error {
	for range lockAttempts {
		err := j.tryOpen()
		if !errors.Is(err, errReplaced) {
			return err
		}
	}
	return fmt.Errorf("lock %s: %w", j.folder, errReplaced)
}

var errReplaced = errors.New("it was removed meanwhile")

func (j *Journal) tryOpen() error {
	const ownerOnly = 0o700
	if err := os.Mkdir(j.folder, ownerOnly); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the journal's folder: %w", err)
	}
	err := private(j.folder)
	if errors.Is(err, fs.ErrNotExist) {
		return errReplaced
	}
	if err != nil {
		return err
	}
	held, err := tempdir.Hold(j.folder)
	if errors.Is(err, fs.ErrNotExist) {
		return errReplaced
	}
	if err != nil {
		return fmt.Errorf("open the journal's folder: %w", err)
	}
	dir := held.Dir()
	inode, err := inodeOf(dir)
	var lock *os.File
	if err == nil {
		lock, err = j.takeLock(dir)
	}
	if err != nil {
		held.Close()
		return err
	}
	j.held, j.dir, j.lock, j.inode = held, dir, lock, inode
	return nil
}

// takeLock opens and locks the lock file. A session that ended removes it while
// others may already have it open, so what was locked must still be there. It is
// signed only once it is known to be a file of its own: to write into a link
// would be to write into what it leads to.
func (j *Journal) takeLock(dir *os.Root) (*os.File, error) {
	lock, err := j.openLock(dir)
	if err != nil {
		return nil, err
	}
	held, by, err := j.host.lock(lock, tryLock)
	if err == nil && held {
		err = &ActiveError{Folder: j.folder, Cage: by.id, Dead: !by.lives}
	}
	if err == nil && !isAt(lock, filepath.Join(j.folder, lockName)) {
		err = errReplaced
	}
	if err == nil {
		err = j.plainLock(lock.Stat())
	}
	if err != nil {
		lock.Close()
		return nil, err
	}
	j.host.sign(lock)
	return lock, nil
}

func (j *Journal) openLock(dir *os.Root) (*os.File, error) {
	// An os.Root follows links that stay within it, O_NOFOLLOW or not.
	if info, err := dir.Lstat(lockName); err == nil {
		if err := j.plainLock(info, nil); err != nil {
			return nil, err
		}
	}
	const ownerReadWrite = 0o600
	lock, err := dir.OpenFile(lockName, os.O_RDWR|os.O_CREATE|syscall.O_NONBLOCK, ownerReadWrite)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errReplaced
	}
	if err != nil {
		return nil, fmt.Errorf("open the journal's lock: %w", err)
	}
	return lock, nil
}

// plainLock refuses a lock that is not a file of this user's alone.
func (j *Journal) plainLock(info os.FileInfo, err error) error {
	if err != nil {
		return fmt.Errorf("look at the journal's lock: %w", err)
	}
	if err := privateFile(info); err != nil {
		return &CorruptError{Folder: j.folder, Reason: lockName + " " + err.Error()}
	}
	return nil
}

func isAt(file *os.File, path string) bool {
	mine, errMine := file.Stat()
	there, errThere := os.Lstat(path)
	return errMine == nil && errThere == nil && os.SameFile(mine, there)
}

// Close lets go of the lock and leaves the journal where it is.
func (j *Journal) Close() error { return errors.Join(j.held.Close(), j.lock.Close()) }

// Found returns the places of what somebody had put where only the journal
// belongs: it was moved out of there.
func (j *Journal) Found() []string { return j.found }

// Discard removes what an earlier session left in the folder and keeps the
// lock.
func (j *Journal) Discard() error {
	if err := j.clear(); err != nil {
		return fmt.Errorf("remove the journal of the earlier session: %w", err)
	}
	return nil
}

// Remove removes the journal: the session has ended. What makes it one goes
// first, so that a kill on the way leaves none. It goes by the folder that the
// session holds, wherever that lies by now. What somebody put in its place goes
// too where it can only be a journal, or the next session would refuse it; of
// anything else there the error says that it stays.
func (j *Journal) Remove() error {
	err := j.remove()
	var active *ActiveError
	if errors.As(err, &active) {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("remove the journal: %w", err)
	}
	return errors.Join(err, j.Close())
}

func (j *Journal) remove() error {
	if err := j.held.MakePrivate(); err != nil {
		return err
	}
	if j.held.Stands() {
		if err := j.retake(); err != nil {
			return err
		}
		return j.vanish()
	}
	var own error
	if j.holdsLock() {
		own = j.vanish()
	}
	return errors.Join(own, j.removeReplacement())
}

// vanish removes what the folder holds of a journal, its lock, and the folder,
// which stays where it holds something else or was moved away.
func (j *Journal) vanish() error {
	if err := j.clear(); err != nil {
		return err
	}
	for _, remove := range []func() error{
		func() error { return j.dir.Remove(lockName) },
		j.held.Remove,
	} {
		// Between its lock and the folder the next session may have come.
		err := remove()
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, syscall.EEXIST) {
			return err
		}
	}
	return nil
}

// holdsLock reports whether the lock in the folder is this session's, or gone.
func (j *Journal) holdsLock() bool {
	there, err := j.dir.Lstat(lockName)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	mine, errMine := j.lock.Stat()
	return err == nil && errMine == nil && os.SameFile(mine, there)
}
