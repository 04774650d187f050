package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"cage/internal/proc"
	"cage/journal"
	"cage/rules"
	"cage/snapshot"

	"github.com/google/renameio/v2"
)

// unfinished is what the state folder knows of a session that has not ended.
// It lies in the home of the password entry, whatever the environment says:
// what a command can change must not decide whether its session is missed.
type unfinished struct {
	Session   string `json:"session"`
	Root      string `json:"root"`
	CommonDir string `json:"common_dir"`
	GitDir    string `json:"git_dir"`
	// Temp is the temporary directory, which the next start may have elsewhere.
	Temp string `json:"temp"`
	// PID and Start are the cage's own.
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
}

// folder is where the session's journal lies.
func (u *unfinished) folder() string { return journal.Folder(u.layoutOf(), u.Temp) }

// runs reports whether the session's cage lives, as far as that can be told.
func (u *unfinished) runs() bool {
	return u.Start != 0 && u.cage().Alive()
}

func (u *unfinished) cage() proc.ID { return proc.ID{PID: u.PID, Start: u.Start} }

// unfinishedFile returns where the note about the session in a root lies.
func unfinishedFile(root string) (string, error) {
	entry, err := user.LookupId(strconv.Itoa(os.Geteuid()))
	if err != nil {
		return "", fmt.Errorf("find the home of the user: %w", err)
	}
	key := snapshot.IDOf([]byte(root)).String()[:16]
	return filepath.Join(entry.HomeDir, ".local/state/cage/roots", key), nil
}

// standAsNoted takes the directories of an unfinished session in the place of
// those that were found, where its journal lies in them: that git gives no
// answer, or another one, may be that session's doing. Looked at are the root
// and what lies between it and the current directory; outside git all above,
// which may have been a root.
func (s *session) standAsNoted(broken bool) bool {
	dir, err := filepath.EvalSymlinks(s.dir)
	if err != nil {
		return false
	}
	inside := broken || s.layout.CommonDir != ""
	for {
		if note, err := recall(dir); err == nil && note != nil && (dir == s.layout.Root || note.CommonDir != "") {
			if _, err := os.Lstat(note.folder()); err == nil {
				s.take(note)
				return true
			}
		}
		if inside && dir == s.layout.Root || dir == filepath.Dir(dir) {
			return false
		}
		dir = filepath.Dir(dir)
	}
}

// take stands where a session stood. Git's answers stay those of what was found
// only where that is the same.
func (s *session) take(note *unfinished) {
	s.noted = note
	if was := note.layoutOf(); was.Root != s.layout.Root || was.CommonDir != s.layout.CommonDir || was.GitDir != s.layout.GitDir {
		s.layout, s.repo = was, nil
	}
}

// journalFolder is where an earlier session's journal is looked for.
func (s *session) journalFolder() string {
	if s.noted != nil {
		return s.noted.folder()
	}
	return journal.Folder(s.layout, s.temp)
}

// recall reads the note about a root; nil where there is none.
func recall(root string) (*unfinished, error) {
	file, err := unfinishedFile(root)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what is known of an earlier session: %w", err)
	}
	var note unfinished
	if err := json.Unmarshal(data, &note); err != nil || note.Root != root {
		return nil, fmt.Errorf("the note about an earlier session in %s makes no sense", file)
	}
	return &note, nil
}

// note writes that the session has not ended, under a name that does not count
// yet, beside the caller: forcing it to disk takes as long as forcing the
// journal, and both together no longer. It counts once publish was called,
// which must not be before there is a journal.
func (s *session) note() (publish func() error, forget func()) {
	type prepared struct {
		file *renameio.PendingFile
		err  error
	}
	ready := make(chan prepared, 1)
	go func() {
		file, err := s.prepareNote()
		ready <- prepared{file, err}
	}()
	take := sync.OnceValue(func() prepared { return <-ready })
	publish = func() error {
		if note := take(); note.err != nil {
			return note.err
		}
		return take().file.CloseAtomicallyReplace()
	}
	forget = func() {
		if note := take(); note.err == nil {
			note.file.Cleanup()
		}
	}
	return publish, forget
}

// prepareNote writes the note and forces it to disk.
func (s *session) prepareNote() (*renameio.PendingFile, error) {
	file, err := unfinishedFile(s.layout.Root)
	if err != nil {
		return nil, err
	}
	self, err := proc.Self()
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(unfinished{
		Session: s.id, Root: s.layout.Root, CommonDir: s.layout.CommonDir, GitDir: s.layout.GitDir,
		Temp: s.temp, PID: self.PID, Start: self.Start,
	})
	if err != nil {
		return nil, err
	}
	const ownerOnly, ownerReadWrite = 0o700, 0o600
	if err := os.MkdirAll(filepath.Dir(file), ownerOnly); err != nil {
		return nil, err
	}
	if err := sweepPending(file); err != nil {
		return nil, err
	}
	pending, err := renameio.NewPendingFile(file, renameio.WithPermissions(ownerReadWrite), renameio.WithTempDir(filepath.Dir(file)))
	if err != nil {
		return nil, err
	}
	if _, err := pending.Write(data); err != nil {
		return nil, errors.Join(err, pending.Cleanup())
	}
	if err := pending.Sync(); err != nil {
		return nil, errors.Join(err, pending.Cleanup())
	}
	return pending, nil
}

// sweepPending removes what a cage that was killed before it published its note
// left beside the place of that. The root's lock is held: nobody else prepares
// one.
func sweepPending(file string) error {
	dir, pending := filepath.Dir(file), "."+filepath.Base(file)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), pending) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove what an earlier session left: %w", err)
		}
	}
	return nil
}

// unnote takes the note about the root back: nothing is unfinished there.
func (s *session) unnote() error {
	file, err := unfinishedFile(s.layout.Root)
	if err != nil {
		return nil // there cannot be one
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the note about the session: %w", err)
	}
	return nil
}

// layoutOf returns where the session's directories stood.
func (u *unfinished) layoutOf() rules.Layout {
	return rules.Layout{Root: u.Root, CommonDir: u.CommonDir, GitDir: u.GitDir}
}
