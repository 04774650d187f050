package rules

import (
	"slices"
	"strings"
)

// index finds the targets on the way to a path, one table per anchor.
type index [Outside + 1]struct {
	// at holds what the targets at a path say together.
	at map[string]place
	// above holds the directories that have a target below them.
	above map[string]struct{}
	// depth is the number of segments of the deepest target.
	depth int
}

// place is what the targets at one path say: about a file there, and about
// what lies below it. A verdict without a rule says nothing.
type place struct{ self, tree Verdict }

func newIndex(targets []Target) index {
	var x index
	for _, t := range targets {
		table := &x[t.Path.Anchor]
		if table.at == nil {
			table.at, table.above = make(map[string]place), make(map[string]struct{})
		}
		here := table.at[t.Path.Rel]
		here.self = here.self.or(t.Verdict)
		if t.Tree {
			here.tree = here.tree.or(t.Verdict)
		}
		table.at[t.Path.Rel] = here
		table.depth = max(table.depth, 1+strings.Count(t.Path.Rel, "/"))
		for dir := t.Path; dir.Rel != ""; {
			dir = dir.Dir()
			table.above[dir.Rel] = struct{}{}
		}
	}
	return x
}

// visit calls f for each target on the way from the anchor to rel; rest is
// what of rel lies below it.
func (x *index) visit(path Path, f func(here place, rest string)) {
	table := &x[path.Anchor]
	rel, end := path.Rel, -1
	for range table.depth {
		next := strings.IndexByte(rel[end+1:], '/')
		if next < 0 {
			end = len(rel)
		} else {
			end += 1 + next
		}
		if here, ok := table.at[rel[:end]]; ok {
			f(here, strings.TrimPrefix(rel[end:], "/"))
		}
		if end == len(rel) {
			return
		}
	}
}

// Classify says what the plan has to say about a file, a link or anything else
// but a directory at path; false where no rule matches it. Revert beats
// report; between equals the order of the rules decides.
func (p *Plan) Classify(path Path) (Verdict, bool) {
	path = p.ground.home(path)
	verdict := p.yield(path, p.override(path, p.match(path)))
	return verdict, verdict.Rule != ""
}

// match is Classify without overrides, for a path in its innermost anchor.
func (p *Plan) match(path Path) Verdict {
	if path.Rel == "" || p.exempted(path) {
		return Verdict{}
	}
	name := path.Base()
	var direct, around Verdict
	p.index.visit(path, func(here place, rest string) {
		switch {
		case rest == "":
			direct = direct.or(here.self)
		case !entersGit(rest):
			around = around.or(here.tree)
		}
	})
	if path.Anchor == Root && name != dotGit && scanned(path.Dir().Rel) {
		direct = direct.or(p.byName(path.Rel, name))
	}
	best := direct.or(around)
	best.Transient = best.Mode == Revert && direct.Mode != Revert && transient(name)
	return best
}

// byName asks the rules that know a file by its name, wherever it lies.
func (p *Plan) byName(rel, name string) Verdict {
	if secret(name) {
		return Verdict{Rule: Secrets, Source: Builtin, Mode: Revert}
	}
	var best Verdict
	if lockfile(name) {
		best = Verdict{Rule: Lockfile, Source: Builtin, Mode: Report}
	}
	for _, entries := range [2][]entry{p.config.entries, p.earlier} {
		for i := range entries {
			e := &entries[i]
			verdict := Verdict{Rule: Protect, Source: CageYAML, Mode: e.mode}
			if e.isGlob && verdict.beats(best) && e.glob.match(rel) {
				best = verdict
			}
		}
	}
	return best
}

// yield downgrades a verdict on a path that another session guards.
func (p *Plan) yield(path Path, verdict Verdict) Verdict {
	if verdict.Mode == Revert && slices.Contains(p.elsewhere, path.Anchor) {
		verdict.Mode, verdict.Elsewhere, verdict.Transient = Report, true, false
	}
	return verdict
}

// override downgrades a verdict on a path that a settled plan overrides.
func (p *Plan) override(path Path, verdict Verdict) Verdict {
	if !p.settled || verdict.Mode != Revert || verdict.fixed() && !p.approved {
		return verdict
	}
	for _, o := range p.requested {
		if path.Within(o) {
			verdict.Mode, verdict.Overridden, verdict.Transient = Report, true, false
			return verdict
		}
	}
	return verdict
}

func (p *Plan) exempted(path Path) bool {
	for _, dir := range p.exempt {
		if path.Within(dir) {
			return true
		}
	}
	return false
}

// scanned reports whether the scan for names and globs enters a directory of
// the root.
func scanned(dir string) bool {
	for segment := range strings.SplitSeq(dir, "/") {
		if skipped(segment) {
			return false
		}
	}
	return true
}

// entersGit reports whether a way below a tree leads to or through a `.git`.
func entersGit(rest string) bool {
	if !strings.Contains(rest, dotGit) {
		return false
	}
	for segment := range strings.SplitSeq(rest, "/") {
		if segment == dotGit {
			return true
		}
	}
	return false
}

// Tops returns the directories that a walk for the protected set starts from.
// Each anchor that lies in another one is a top of its own, which Enter keeps
// the walk of the outer one out of.
func (p *Plan) Tops() []Path {
	var tops []Path
	for _, anchor := range Anchors() {
		top := Path{Anchor: anchor}
		if p.ground.layout.Dir(anchor) != "" && p.Enter(top) {
			tops = append(tops, top)
		}
	}
	return tops
}

// Enter reports whether a walk has to list the directory dir: names are
// looked for there, it lies in a target that is a tree, or a target lies below
// it. A directory that is an anchor of its own is not entered from outside.
func (p *Plan) Enter(dir Path) bool {
	if p.ground.home(dir) != dir || p.exempted(dir) {
		return false
	}
	if dir.Anchor == Root && scanned(dir.Rel) {
		return true
	}
	if _, ok := p.index[dir.Anchor].above[dir.Rel]; ok {
		return true
	}
	in := false
	p.index.visit(dir, func(here place, rest string) {
		in = in || here.tree.Rule != "" && !entersGit(rest)
	})
	return in
}

// Leads reports whether a place that a revert rule names by its path lies in
// dir.
func (p *Plan) Leads(dir Path) bool {
	dir = p.ground.home(dir)
	return slices.ContainsFunc(p.targets, func(t Target) bool {
		return t.Path.Within(dir) && p.override(t.Path, t.Verdict).Mode == Revert
	})
}

// Leading returns the verdict on the places below path that revert rules name
// by their path, the one that counts first: what stands at path itself decides
// whether anything can stand there.
func (p *Plan) Leading(path Path) (Verdict, bool) {
	path = p.ground.home(path)
	table := &p.index[path.Anchor]
	if _, ok := table.above[path.Rel]; !ok || path.Rel == "" || p.exempted(path) {
		return Verdict{}, false
	}
	var best Verdict
	for _, t := range p.targets {
		if t.Path != path && t.Path.Within(path) && t.Verdict.Mode == Revert {
			best = best.or(p.override(t.Path, t.Verdict))
		}
	}
	return p.yield(path, best), best.Rule != ""
}

// ClassifyRecorded says what the plan has to say about an entry that git records
// at path, such as a symlink: what Classify says, or what a rule says of a place
// below it, at which nothing can stand while the entry stands here.
func (p *Plan) ClassifyRecorded(path Path) (Verdict, bool) {
	verdict, ok := p.Classify(path)
	if ok && verdict.Mode == Revert {
		return verdict, true
	}
	if leading, leads := p.Leading(path); leads && (!ok || leading.Mode == Revert) {
		return leading, true
	}
	return verdict, ok
}

// Covers reports whether dir is or lies in a tree under a revert rule.
func (p *Plan) Covers(dir Path) bool {
	dir = p.ground.home(dir)
	if dir.Rel == "" || p.exempted(dir) {
		return false
	}
	var tree Verdict
	p.index.visit(dir, func(here place, rest string) {
		if !entersGit(rest) {
			tree = tree.or(here.tree)
		}
	})
	return p.yield(dir, p.override(dir, tree)).Mode == Revert
}

// WantsFile reports whether a built-in rule in revert mode names path as that of
// a file. Programs that look for the file fail on a directory.
func (p *Plan) WantsFile(path Path) bool {
	path = p.ground.home(path)
	var files []string
	switch path.Anchor {
	case Root:
		files = append(ciFiles(), ConfigFile)
	case CommonDir, GitDir:
		files = gitFiles()
	}
	return slices.Contains(files, path.Rel) && p.Covers(path)
}

// Scans reports whether rules that know a file by its name look for it in the
// directory dir of the root.
func (p *Plan) Scans(dir Path) bool {
	return dir.Anchor == Root && p.ground.home(dir) == dir && !p.exempted(dir) && scanned(dir.Rel)
}
