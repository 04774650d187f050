package rules

import (
	"slices"
	"strings"
)

func refuseOverride(path, reason, hint string) error {
	return &Error{Code: CodeOverride, Message: "--allow-override " + quote(path) + " " + reason, Hint: hint}
}

// readOverrides checks how the overrides are spelled and returns them sorted,
// each once. A shell's leading "./" is dropped.
func readOverrides(words []string) ([]Path, error) {
	var paths []Path
	for _, word := range words {
		spelled := word
		if len(word) > 2 {
			spelled = strings.TrimPrefix(word, "./")
		}
		rel, reason := literal(spelled)
		if reason != "" {
			return nil, refuseOverride(word, reason, rootRelative)
		}
		paths = append(paths, Path{Root, rel})
	}
	slices.SortFunc(paths, Path.Compare)
	return slices.Compact(paths), nil
}

// overridesAllowed refuses an override that touches what none may relax. Of
// a folder that git shares with other programs only what Settle left counts.
func (p *Plan) overridesAllowed() error {
	for _, path := range p.requested {
		for _, t := range p.targets {
			if !t.Verdict.fixed() || t.existing && !p.settled || !p.ground.overlap(path, t.Path) {
				continue
			}
			return refuseOverride(path.Rel, "overlaps "+quote(p.ground.layout.Display(t.Path))+
				", which "+string(t.Verdict.Rule)+" protects without exception", "leave it out")
		}
	}
	return nil
}

// overridesMatch refuses an override that relaxes nothing: neither it nor
// anything below it is under a revert rule.
func (p *Plan) overridesMatch(found []Path) error {
	for _, path := range p.requested {
		below := func(q Path) bool { return q.Within(path) && p.match(q).Mode == Revert }
		named := func(t Target) bool { return t.Verdict.Mode == Revert && t.Path.Within(path) }
		if p.match(path).Mode != Revert && !slices.ContainsFunc(p.targets, named) && !slices.ContainsFunc(found, below) {
			return refuseOverride(path.Rel, "matches no rule that reverts", "leave it out")
		}
	}
	return nil
}

// reportsBuiltin refuses an entry in report mode for what a built-in rule
// reverts, as far as that can be told from names alone.
func (p *Plan) reportsBuiltin() error {
	for i := range p.config.entries {
		e := &p.config.entries[i]
		if e.mode != Report {
			continue
		}
		if name, yes := p.namesBuiltin(e); yes {
			return weakens(e, name)
		}
	}
	return nil
}

func weakens(e *entry, name string) error {
	return source{CodeConfig, ConfigFile}.refuse(e.line, "to relax a built-in rule for one run, pass --allow-override <path>",
		"mode: report on %s would weaken the built-in rule for %s", quote(e.text()), quote(name))
}

// namesBuiltin returns the built-in's file that an entry names. The targets
// are the built-ins' only, since it runs before any others join them.
func (p *Plan) namesBuiltin(e *entry) (string, bool) {
	fixed, name := e.rel, Path{Rel: e.rel}.Base()
	if e.isGlob {
		fixed, name = e.glob.fixedPart(), e.glob.fixedName()
		if e.glob.match(secretFile) {
			return secretFile, true
		}
	}
	if secret(name) && scanned(fixed) {
		return name, true
	}
	for _, t := range p.targets {
		if t.Path.Anchor != Root || t.existing {
			continue
		}
		inside := fixed != "" && relWithin(fixed, t.Path.Rel)
		if inside || e.isGlob && e.glob.match(t.Path.Rel) || !e.isGlob && relWithin(t.Path.Rel, e.rel) {
			return t.Path.Rel, true
		}
	}
	return "", false
}

// reportsBuiltinAt does the same for the files that stand in the tree.
func (p *Plan) reportsBuiltinAt(found []Path) error {
	for i := range p.config.entries {
		e := &p.config.entries[i]
		if e.mode != Report {
			continue
		}
		for _, path := range found {
			if path.Anchor != Root || !e.covers(path.Rel) {
				continue
			}
			if verdict := p.match(path); verdict.Source == Builtin && verdict.Mode == Revert {
				return weakens(e, path.Rel)
			}
		}
	}
	return nil
}

func (e *entry) covers(rel string) bool {
	if e.isGlob {
		return e.glob.match(rel)
	}
	return relWithin(rel, e.rel)
}
