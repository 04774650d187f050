package restore

import (
	"cage/internal/safefile"
	"cage/rules"
)

// Displaced is what stood in the way of a restore. Quarantined or Beside says
// where it lies now, Content what a write in place replaced. A regular file is
// held open where that was possible, and is nowhere else if it has no name any
// more. What has none of these could not be held.
type Displaced struct {
	Path rules.Path
	Info safefile.Info
	// Quarantined is its name in the quarantine directory.
	Quarantined string
	// File holds a regular file open.
	File *safefile.File
	// Beside is where it was set aside on its own mount.
	Beside rules.Path
	// Content is what a write in place replaced.
	Content []byte
}

// quarantined takes charge of what was displaced into the quarantine.
func (result *Result) quarantined(dir *safefile.Dir, name string, p rules.Path) {
	d := Displaced{Path: p, Quarantined: name}
	// Held open, it survives somebody who empties the quarantine. What cannot
	// be opened is no regular file, or lies there by its name only.
	if file, info, err := dir.Open(name); err == nil {
		d.File, d.Info = file, info
	} else {
		d.Info = info
	}
	result.Displaced = append(result.Displaced, d)
}

// beside takes charge of what was displaced on its own mount: a regular file
// loses its name and is held by its descriptor, anything else stays there.
func (result *Result) beside(dir *safefile.Dir, name string, at, p rules.Path) {
	if info, err := dir.Stat(name); err == nil && info.Size <= heldBytes {
		if file, info, err := safefile.Unname(dir, name); err == nil {
			result.Displaced = append(result.Displaced, Displaced{Path: p, Info: info, File: file})
			return
		}
	}
	result.setAside(dir, name, at, p)
}

// heldBytes bounds the size of a file that is held without a name: 64 MiB. It
// has to be copied to be kept.
const heldBytes = 64 << 20

func (result *Result) setAside(dir *safefile.Dir, name string, at, p rules.Path) {
	info, err := dir.Stat(name)
	if safefile.Missing(err) {
		at = rules.Path{} // somebody took it away
	}
	result.Displaced = append(result.Displaced, Displaced{Path: p, Info: info, Beside: at})
}
