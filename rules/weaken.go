package rules

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

// covers reports whether the entry matches a root-relative file.
func (e *entry) covers(rel string) bool {
	if e.isGlob {
		return e.glob.match(rel) && scanned(Path{Rel: rel}.Dir().Rel)
	}
	return relWithin(rel, e.rel)
}
