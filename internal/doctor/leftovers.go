// Package doctor looks at what earlier sessions left behind in a root. It
// changes nothing; what it finds it says with the way to clean it up.
package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"cage/internal/kept"
	"cage/journal"
	"cage/rules"
)

// Kind says what a leftover is.
type Kind string

// The kinds of leftovers.
const (
	// Running is a session that has not ended: nothing to clean.
	Running Kind = "running"
	// Interrupted is the journal of a session that was killed.
	Interrupted Kind = "interrupted"
	// Corrupt is a journal that cannot be trusted.
	Corrupt Kind = "corrupt"
	// Lost is a session that did not end and whose journal is gone.
	Lost Kind = "lost"
	// Quarantine is a folder with displaced versions that were not copied.
	Quarantine Kind = "quarantine"
)

// Leftover is one thing that an earlier session left, or a running one holds.
type Leftover struct {
	Kind Kind `json:"kind"`
	// Place is an absolute path.
	Place string `json:"place"`
	// Text says what it is, Fix what to do about it; Fix is empty where nothing
	// is to be done.
	Text string `json:"text"`
	Fix  string `json:"fix"`
}

// Leftovers looks for what sessions left in the directories of a layout and in
// the folder of their journal. Missed names a session that is known not to have
// ended; it is empty where none is.
func Leftovers(layout rules.Layout, folder, missed string) ([]Leftover, error) {
	var found []Leftover
	left, err := inJournal(folder, missed)
	if err != nil {
		return nil, err
	}
	running := ""
	if left != nil {
		found = append(found, *left)
		if left.Kind == Running {
			running = left.Place
		}
	}
	for _, dir := range []string{layout.CommonDir, layout.GitDir} {
		if dir == "" {
			continue
		}
		quarantined, err := inQuarantine(filepath.Join(dir, kept.QuarantineName), running != "")
		if err != nil {
			return nil, err
		}
		found = append(found, quarantined...)
	}
	return found, nil
}

// inJournal looks at the journal's folder without making one.
func inJournal(folder, missed string) (*Leftover, error) {
	if _, err := os.Lstat(folder); errors.Is(err, fs.ErrNotExist) {
		return lost(folder, missed), nil
	}
	j, left, err := journal.Acquire(folder)
	var active *journal.ActiveError
	var corrupt *journal.CorruptError
	switch {
	case errors.As(err, &active):
		return &Leftover{Kind: Running, Place: folder, Text: active.Error()}, nil
	case errors.As(err, &corrupt):
		return untrusted(corrupt), nil
	case err != nil:
		return nil, err
	case left == nil && missed != "" && j.Remains():
		return untrusted(&journal.CorruptError{Folder: folder, Reason: journal.PartGone}), j.Close()
	case left == nil:
		return lost(folder, missed), j.Close() // or a writer was killed before there was a journal
	}
	return &Leftover{
		Kind: Interrupted, Place: folder,
		Text: fmt.Sprintf("session %s was interrupted; it last lived at %s", left.Session, left.LastSign.Format("2006-01-02 15:04:05")),
		Fix:  "the next session here puts its files back; or decide with: cage review --recover restore|keep",
	}, j.Close()
}

func untrusted(corrupt *journal.CorruptError) *Leftover {
	return &Leftover{
		Kind: Corrupt, Place: corrupt.Folder, Text: corrupt.Error(),
		Fix: "look into the folder, put back by hand what you need, then remove it",
	}
}

func lost(folder, missed string) *Leftover {
	if missed == "" {
		return nil
	}
	return &Leftover{
		Kind: Lost, Place: folder,
		Text: fmt.Sprintf("session %s did not end and its journal is gone: nothing it protected can be put back", missed),
		Fix:  "look at the protected files; the next session here says so once more and goes on",
	}
}

// inQuarantine lists sessions whose displaced versions still lie in the git
// directory.
func inQuarantine(folder string, running bool) ([]Leftover, error) {
	sessions, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look into the quarantine: %w", err)
	}
	var found []Leftover
	for _, session := range sessions {
		place := filepath.Join(folder, session.Name())
		versions, err := os.ReadDir(place)
		if err != nil || running {
			continue
		}
		found = append(found, Leftover{
			Kind: Quarantine, Place: place,
			Text: fmt.Sprintf("%d displaced versions of session %s lie here, not in the state folder", len(versions), session.Name()),
			Fix:  "look at them, then remove the folder",
		})
	}
	return found, nil
}
