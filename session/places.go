package session

import (
	"path/filepath"

	"cage/internal/kept"
	"cage/report"
	"cage/rules"
)

// places are where the cage's own files go: never into the root, whatever the
// environment says, unless the system's default lies there too.
type places struct {
	temp  string // for the session log
	state string // for displaced versions
	// exempt are the places that had to lie where rules apply.
	exempt []rules.Path
	// warnings say which settings were not followed.
	warnings []string
}

// choosePlaces decides on the cage's own folders in an environment.
func choosePlaces(layout rules.Layout, env map[string]string) places {
	var p places
	p.temp = p.choose(layout, "TMPDIR", env["TMPDIR"], "/tmp")
	home := env["HOME"]
	if home == "" || !filepath.IsAbs(home) {
		home = p.temp
	}
	p.state = filepath.Join(p.choose(layout, "XDG_STATE_HOME", env["XDG_STATE_HOME"], filepath.Join(home, ".local/state")), "cage")
	p.spare(layout, p.state)
	return p
}

// choose takes a folder from the environment, or the system's default where
// that is unset, relative or inside a guarded directory. A default that lies
// inside too is used: what else is there.
func (p *places) choose(layout rules.Layout, name, set, standard string) string {
	if filepath.IsAbs(set) {
		physical := resolve(set)
		if !guarded(layout, physical) {
			return physical
		}
		p.warnings = append(p.warnings,
			name+" points into the protected directory and is not used for the cage's own files; "+report.Quote(standard)+" is")
	}
	return resolve(standard)
}

// spare exempts a file or folder of the cage's own from the rules, where it
// had to be put where they apply. Nothing around it is.
func (p *places) spare(layout rules.Layout, own string) {
	if guarded(layout, own) {
		p.exempt = append(p.exempt, layout.Locate(own))
	}
}

// guarded reports whether a path lies in a directory that is the session's. A
// hooks folder elsewhere is not: it belongs to other programs too.
func guarded(layout rules.Layout, physical string) bool {
	switch layout.Locate(physical).Anchor {
	case rules.Outside, rules.HooksDir:
		return false
	default:
		return true
	}
}

// resolve returns a path without symlinks, as far as it exists.
func resolve(path string) string {
	path = filepath.Clean(path)
	if physical, err := filepath.EvalSymlinks(path); err == nil {
		return physical
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(resolve(parent), filepath.Base(path))
}

// refuge is the folder for displaced versions of a session that have no other
// place and that the state folder cannot take.
func refuge(temp, session string) string {
	return filepath.Join(temp, kept.QuarantineName+"-"+session)
}
