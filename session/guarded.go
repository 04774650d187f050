package session

import (
	"cage/internal/program"
	"cage/journal"
	"cage/rules"
)

// Guarded reports whether a session guards the root of a layout or the files
// that it shares with other work trees, or the caller, whose environment that
// is, runs inside a session.
func Guarded(layout rules.Layout, env []string) (bool, error) {
	set := program.Variables(env)
	if _, inside := set[sessionVariable]; inside || knownToRun(layout.Root) {
		return true, nil
	}
	return journal.Guarded(journal.Folder(layout, choosePlaces(layout, set).temp), layout.CommonDir)
}

// knownToRun reports whether the state folder knows of a session that runs in a
// root. That stands also where its lock has been removed.
func knownToRun(root string) bool {
	note, err := recall(root)
	return err == nil && note != nil && note.runs()
}
