package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"cage/internal/kept"
	"cage/internal/pushguard"
	"cage/internal/tempdir"
	"cage/journal"
	"cage/report"
	"cage/session"
)

// leftovers looks for what sessions left where one would stand: in its
// directories, in the folder of its journal and in the temporary directory.
func leftovers(at session.Place) ([]report.Leftover, error) {
	var found []report.Leftover
	left, interrupted, err := inJournal(at.Journal, at.Missed)
	if err != nil {
		return nil, err
	}
	// What belongs to a session that the next start cleans up after goes with it.
	running := left != nil && left.Kind == report.LeftoverRunning
	if left != nil {
		found = append(found, *left)
	}
	for _, dir := range []string{at.Layout.CommonDir, at.Layout.GitDir} {
		if dir == "" {
			continue
		}
		quarantined, err := inQuarantine(filepath.Join(dir, kept.QuarantineName), running, interrupted)
		if err != nil {
			return nil, err
		}
		found = append(found, quarantined...)
	}
	hooks, err := ofPushGuards(at.Temp, interrupted, at.Missed)
	if err != nil {
		return nil, err
	}
	temps, err := ofPrivateTmps(at.Temp, interrupted)
	return slices.Concat(found, hooks, temps), err
}

// ofPrivateTmps lists temporary directories whose runs are gone, but for that of
// a session that the next start cleans up after.
func ofPrivateTmps(temp, but string) ([]report.Leftover, error) {
	left, err := tempdir.Left(temp)
	if err != nil {
		return nil, err
	}
	var found []report.Leftover
	for _, dir := range left {
		if dir == tempdir.Path(temp, but) {
			continue
		}
		found = append(found, report.Leftover{
			Kind: report.LeftoverPrivateTmp, Place: dir,
			Text: "the temporary directory of a run that did not end, in whatever repository",
			Fix:  "the next session there removes it, or remove the directory",
		})
	}
	return found, nil
}

// ofPushGuards lists folders of hooks whose sessions are gone, but for some.
func ofPushGuards(temp string, but ...string) ([]report.Leftover, error) {
	folders, err := pushguard.Leftovers(temp)
	if err != nil {
		return nil, err
	}
	var found []report.Leftover
	for _, folder := range folders {
		if slices.ContainsFunc(but, func(id string) bool { return folder == pushguard.Folder(temp, id) }) {
			continue
		}
		found = append(found, report.Leftover{
			Kind: report.LeftoverPushGuard, Place: folder,
			Text: "hooks of a session that did not end, in whatever repository; git runs them no more",
			Fix:  "the next session there removes them, or remove the folder",
		})
	}
	return found, nil
}

// inJournal looks at the journal's folder. Interrupted names the session that
// left one.
func inJournal(folder, missed string) (found *report.Leftover, interrupted string, err error) {
	left, remains, err := journal.Inspect(folder)
	var active *journal.ActiveError
	var corrupt *journal.CorruptError
	switch {
	case errors.As(err, &active):
		return &report.Leftover{Kind: report.LeftoverRunning, Place: folder, Text: active.Error()}, "", nil
	case errors.As(err, &corrupt):
		return untrusted(corrupt), "", nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, "", err
	case left == nil && missed != "" && remains:
		return untrusted(&journal.CorruptError{Folder: folder, Reason: journal.PartGone}), "", nil
	case left == nil:
		return lost(folder, missed), "", nil // or a writer was killed before there was a journal
	}
	return &report.Leftover{
		Kind: report.LeftoverInterrupted, Place: folder,
		Text: fmt.Sprintf("session %s was interrupted; it last lived at %s", left.Session, report.Timestamp(left.LastSign)),
		Fix:  "the next session here puts its files back, or refuses where somebody has worked on them since; decide with: cage review --recover restore|keep",
	}, left.Session, nil
}

func untrusted(corrupt *journal.CorruptError) *report.Leftover {
	return &report.Leftover{
		Kind: report.LeftoverCorrupt, Place: corrupt.Folder, Text: corrupt.Error(),
		Fix: "look into the folder, put back by hand what you need, then remove it",
	}
}

func lost(folder, missed string) *report.Leftover {
	if missed == "" {
		return nil
	}
	return &report.Leftover{
		Kind: report.LeftoverLost, Place: folder,
		Text: fmt.Sprintf("session %s did not end and its journal is gone: nothing it protected can be put back", missed),
		Fix:  "look at the protected files; the next session here says so once more and goes on",
	}
}

// inQuarantine lists sessions whose displaced versions still lie in the git
// directory, but for one that the next start cleans up after.
func inQuarantine(folder string, running bool, but string) ([]report.Leftover, error) {
	sessions, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look into the quarantine: %w", err)
	}
	var found []report.Leftover
	for _, session := range sessions {
		place := filepath.Join(folder, session.Name())
		versions, err := os.ReadDir(place)
		if err != nil || running || session.Name() == but {
			continue
		}
		found = append(found, report.Leftover{
			Kind: report.LeftoverQuarantine, Place: place,
			Text: quarantinedText(len(versions), session.Name()),
			Fix:  "look at them (cage review names those it knows) once nobody writes them any more, then remove the folder",
		})
	}
	return found, nil
}

func quarantinedText(versions int, session string) string {
	what := fmt.Sprintf("%d displaced versions of session %s lie", versions, session)
	if versions == 1 {
		what = "1 displaced version of session " + session + " lies"
	}
	return what + " here, not in the state folder"
}
