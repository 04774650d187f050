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
	if p.approved {
		return nil
	}
	for _, path := range p.requested {
		for _, t := range p.targets {
			if !t.Verdict.fixed() || t.existing && !p.settled || !p.ground.layout.Overlap(path, t.Path) {
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
