package session

import (
	"strings"

	"cage/journal"
	"cage/rules"
)

// Guarded reports whether a session guards the root of a layout or the files
// that it shares with other work trees, or the caller, whose environment that
// is, runs inside a session.
func Guarded(layout rules.Layout, env []string) (bool, error) {
	for _, entry := range env {
		if strings.HasPrefix(entry, sessionVariable+"=") {
			return true, nil
		}
	}
	// What the state folder knows stands also where the lock has been removed.
	if note, err := recall(layout.Root); err == nil && note != nil && note.runs() {
		return true, nil
	}
	temp := choosePlaces(layout, variables(env)).temp
	return journal.Guarded(journal.Folder(layout, temp), layout.CommonDir)
}
