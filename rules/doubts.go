package rules

import (
	"fmt"
	"slices"
	"strings"
)

// Doubts returns a sentence for each entry of `.cage.yaml` and each zone of the
// manifest that is valid, covers nothing in the tree, and is spelled as if it
// were meant to: names with such characters may well come to exist, so that it is
// no fault. Of a glob that reaches less deep than it looks it always says so.
// Found are the paths that exist and that the plan classifies, dirs the
// directories that are Doubtful.
func (p *Plan) Doubts(found, dirs []Path) []string {
	t := told{p, p.homes(found), p.homes(dirs)}
	var doubts []string
	doubt := func(file string, line int, text string) {
		if text != "" {
			doubts = append(doubts, fmt.Sprintf("%s:%d: %s", file, line, text))
		}
	}
	for i := range p.config.entries {
		e := &p.config.entries[i]
		if e.isGlob {
			doubt(ConfigFile, e.line, t.onGlob(&e.glob))
		} else {
			doubt(ConfigFile, e.line, t.onPath("path", e.rel, ""))
		}
	}
	for _, zone := range p.zones {
		doubt(zone.file, zone.line, t.onPath("zone", zone.rel, " in "+ConfigFile))
	}
	return doubts
}

// Doubtful reports whether a directory is what an entry seems to mean that is
// about files of that name, or shows that a name which looks like a pattern is
// one.
func (p *Plan) Doubtful(dir Path) bool {
	if dir.Anchor != Root || dir.Rel == "" {
		return false
	}
	for i := range p.config.entries {
		switch e := &p.config.entries[i]; {
		case !e.isGlob:
			if e.rel == dir.Rel && patterned(e.rel) {
				return true
			}
		case !e.glob.anyName() && e.glob.match(dir.Rel):
			return true
		}
	}
	return slices.ContainsFunc(p.zones, func(zone zone) bool { return zone.rel == dir.Rel && patterned(zone.rel) })
}

// patterned reports whether a path has what means something only in a pattern.
func patterned(rel string) bool { return wildcard(rel) < len(rel) || alternatives(rel) }

// alternatives reports whether a text has what elsewhere stands for one of
// several words.
func alternatives(text string) bool {
	for {
		inside, rest, closed := strings.Cut(text, "}")
		if !closed {
			return false
		}
		_, inside, opened := strings.Cut(inside, "{")
		if opened && (strings.Contains(inside, ",") || strings.Contains(inside, "..")) {
			return true
		}
		text = rest
	}
}

// class reports whether a text has what elsewhere stands for one of several
// characters.
func class(text string) bool {
	_, rest, _ := strings.Cut(text, "[")
	return strings.IndexByte(rest, ']') > 0
}

// glued reports whether a pattern has stars for any depth that are none, because
// something else stands in their part.
func glued(text string) bool {
	return slices.ContainsFunc(strings.Split(text, "/"), func(part string) bool {
		return part != "**" && strings.Contains(part, "**")
	})
}

// unglued spells a pattern as it is likely meant, or says how that is done.
func unglued(text string) string {
	parts := strings.Split(text, "/")
	for i, part := range parts {
		if rest, stars := strings.CutPrefix(part, "**"); stars && rest != "" {
			parts[i] = "**/*" + strings.TrimLeft(rest, "*")
		}
	}
	if meant := strings.Join(parts, "/"); !glued(meant) {
		return quote(meant)
	}
	return "it between slashes"
}

// anyName reports whether the pattern ends in what stands for any name at any
// depth: whoever writes that means files.
func (g *glob) anyName() bool {
	return strings.HasSuffix(g.text, "**") || strings.HasSuffix(g.text, "**/*")
}

// told is what stands in the tree, as far as a plan was told.
type told struct {
	plan        *Plan
	found, dirs []Path
}

// onPath takes where a pattern can be written instead.
func (t told) onPath(what, rel, where string) string {
	at := Path{Root, rel}
	stands := func(path Path) bool { return path.Within(at) }
	if !patterned(rel) || slices.ContainsFunc(t.found, stands) || slices.ContainsFunc(t.dirs, stands) {
		return ""
	}
	fix := "for a pattern write glob: " + quote(rel) + where
	if alternatives(rel) {
		fix = "write one entry for each"
	}
	return fmt.Sprintf("%s %s names one file of that very name; %s", what, quote(rel), fix)
}

func (t told) onGlob(g *glob) string {
	if glued(g.text) {
		return fmt.Sprintf("glob %s has ** beside other characters, where it is no more than *; for any depth write %s", quote(g.text), unglued(g.text))
	}
	var odd string
	switch {
	case alternatives(g.text):
		odd = "braces"
	case class(g.text):
		odd = "brackets"
	}
	dir := slices.IndexFunc(t.dirs, func(dir Path) bool {
		return !g.anyName() && g.match(dir.Rel) && !t.covered(dir)
	})
	if dir < 0 && odd == "" {
		return ""
	}
	if slices.ContainsFunc(t.found, func(path Path) bool { return path.Anchor == Root && g.match(path.Rel) }) {
		return ""
	}
	if dir < 0 {
		return fmt.Sprintf("glob %s takes %s as they stand, and no file matches it; write one entry for each", quote(g.text), odd)
	}
	return fmt.Sprintf("glob %s matches files only, and %s is a directory; write %s", quote(g.text), quote(t.dirs[dir].Rel), inDirectory(g.text))
}

// inDirectory spells the entries that cover what lies in a directory.
func inDirectory(text string) string {
	below := "glob: " + quote(text+"/**")
	if wildcard(text) < len(text) {
		return below
	}
	return "path: " + quote(text+"/") + " or " + below
}

// covered reports whether rules cover a file in a directory whatever its name.
func (t told) covered(dir Path) bool {
	_, covered := t.plan.Classify(dir.Join("x"))
	return covered
}
