// Package rules holds the protected set: the built-in rules, `.cage.yaml`,
// the manifest's forbidden zones and a run's overrides become one immutable
// Plan, which says of any path whether a rule matches it, which one, and what
// is to be done about a change there.
//
// The package is pure: it opens no file, runs no program and asks nobody. The
// bytes of files are handed to it, and what stands in the tree is told to
// Settle. A source that is invalid in any way is refused as an *Error that
// names the line; nothing of it is used.
//
// It does not walk, watch, compare or restore.
package rules

import (
	"cmp"
	"slices"
)

// File is a file's bytes; Present is false where none stands there.
type File struct {
	Present bool
	Data    []byte
}

// Git is what git says about the root. Its zero value, with a Layout without
// git directories, stands for a root outside git.
type Git struct {
	// DotGitFile is set where `.git` at the root is a file or a link.
	DotGitFile bool
	// Hooks is the active hooks folder, as Layout.Locate names it; nil where
	// it is the common directory's own.
	Hooks *Path
	// Includes are the files that git's config includes, directly or not.
	// Those that lie neither in the root nor in a git directory are left alone.
	Includes []Path
}

// Sources are one version of the files that rules are read from.
type Sources struct {
	Config       File
	ManifestYAML File
	ManifestJSON File
}

// Inputs is everything that a plan is made of.
type Inputs struct {
	Layout       Layout
	Git          Git
	Config       File
	ManifestYAML File
	ManifestJSON File
	// Earlier are other versions of the same files whose rules hold as well, so
	// that a change of them cannot drop the rule it falls under. Their limits
	// count for nothing.
	Earlier []Sources
	// Overrides are the paths to relax, as they were spelled.
	Overrides []string
	// Approved lets overrides name what otherwise none may: `.cage.yaml` and
	// git's control files. A person has looked at the change.
	Approved bool
	// Exempt are directories of the cage itself that had to be put where
	// rules apply. Nothing in them is protected.
	Exempt []Path
	// Elsewhere are directories that another session guards: their rules hold,
	// and what happens there is only reported.
	Elsewhere []Anchor
}

// Target is a place that a rule names by its path, existing or not.
type Target struct {
	Path    Path
	Verdict Verdict
	// Tree is false for a target that is one file and nothing below it, such
	// as a hook in a folder that belongs to other programs too.
	Tree bool

	// existing marks a target that Settle drops where nothing stands there.
	existing bool
}

// Joined is a file that a protected link points to, with the link's verdict.
type Joined struct {
	Path    Path
	Verdict Verdict
}

// Plan is the protected set of one session. It is immutable and safe for
// concurrent use.
type Plan struct {
	ground    ground
	config    config
	earlier   []entry // of other versions of the configuration
	present   bool
	approved  bool
	zones     []zone
	exempt    []Path
	elsewhere []Anchor
	targets   []Target
	index     index
	requested []Path
	settled   bool
}

// New makes the draft of a plan: complete but for what depends on the tree.
// It knows every rule, so that a scan by it finds what Settle asks for;
// overrides are checked as far as they can be and not yet applied.
func New(in Inputs) (*Plan, error) {
	p := &Plan{ground: newGround(in.Layout), present: in.Config.Present, approved: in.Approved, elsewhere: in.Elsewhere}
	for _, path := range in.Exempt {
		p.exempt = append(p.exempt, p.ground.home(path))
	}
	p.addBuiltins(in)
	var err error
	var zones []zone
	if p.config, zones, err = readSources(Sources{in.Config, in.ManifestYAML, in.ManifestJSON}, p.ground); err != nil {
		return nil, err
	}
	if err := p.reportsBuiltin(); err != nil {
		return nil, err
	}
	p.zones = zones
	p.addSources(zones, p.config.entries)
	for _, sources := range in.Earlier {
		earlier, before, err := readSources(sources, p.ground)
		if err != nil {
			return nil, err
		}
		p.earlier = append(p.earlier, earlier.entries...)
		p.addSources(before, earlier.entries)
		p.addLosses(zones, before)
	}
	if p.requested, err = readOverrides(in.Overrides); err != nil {
		return nil, err
	}
	if err := p.overridesAllowed(); err != nil {
		return nil, err
	}
	p.index = newIndex(p.targets)
	return p, nil
}

// readSources reads what one version of the files says.
func readSources(in Sources, g ground) (c config, zones []zone, err error) {
	if in.Config.Present {
		if c, err = readConfig(in.Config.Data, g); err != nil {
			return c, nil, err
		}
	}
	zones, err = readManifest(in.ManifestYAML, in.ManifestJSON, g)
	return c, zones, err
}

// addSources takes in the places that one version of the files names.
func (p *Plan) addSources(zones []zone, entries []entry) {
	for _, zone := range zones {
		p.add(Path{Root, zone.rel}, Verdict{Rule: ForbiddenZone, Source: Manifest, Mode: Revert}, true)
	}
	for _, e := range entries {
		if !e.isGlob {
			p.add(Path{Root, e.rel}, Verdict{Rule: Protect, Source: CageYAML, Mode: e.mode}, true)
		}
	}
}

// addLosses protects the manifest itself where it does not hold a zone any more
// that an earlier one did: who takes a zone away changes what is protected.
func (p *Plan) addLosses(present, earlier []zone) {
	lost := func(was zone) bool {
		return !slices.ContainsFunc(present, func(is zone) bool { return relWithin(was.rel, is.rel) })
	}
	if !slices.ContainsFunc(earlier, lost) {
		return
	}
	for _, file := range []string{ManifestYAML, ManifestJSON} {
		p.add(Path{Root, file}, Verdict{Rule: ForbiddenZone, Source: Manifest, Mode: Revert}, true)
	}
}

func (p *Plan) addBuiltins(in Inputs) {
	builtin := func(path Path, rule Rule, tree bool) {
		p.add(path, Verdict{Rule: rule, Source: Builtin, Mode: Revert}, tree)
	}
	for _, rel := range ciPlaces() {
		builtin(Path{Root, rel}, CIConfig, true)
	}
	builtin(Path{Root, ConfigFile}, CageConfig, true)
	for _, anchor := range []Anchor{CommonDir, GitDir} {
		if in.Layout.Dir(anchor) == "" {
			continue
		}
		for _, rel := range gitPlaces() {
			builtin(Path{anchor, rel}, GitControl, true)
		}
	}
	if in.Git.DotGitFile {
		builtin(Path{Root, dotGit}, GitControl, false)
	}
	if in.Git.Hooks != nil {
		p.addHooks(*in.Git.Hooks)
	}
	for _, path := range in.Git.Includes {
		if path.Anchor != Outside && path.Anchor != HooksDir {
			builtin(path, GitControl, false)
		}
	}
}

// addHooks protects the active hooks folder: as a tree where it is a folder
// for itself inside the root or a git directory. Elsewhere it belongs to other
// programs too, and only the hooks that stand in it are taken.
func (p *Plan) addHooks(folder Path) {
	verdict := Verdict{Rule: GitControl, Source: Builtin, Mode: Revert}
	folder = p.ground.home(folder)
	if folder.Rel != "" && folder.Anchor != HooksDir && folder.Anchor != Outside {
		p.add(folder, verdict, true)
		return
	}
	for _, name := range GitHooks() {
		p.addTarget(Target{Path: folder.Join(name), Verdict: verdict, existing: true})
	}
}

func (p *Plan) add(path Path, verdict Verdict, tree bool) {
	p.addTarget(Target{Path: path, Verdict: verdict, Tree: tree})
}

// addTarget takes a target in, by its one name. An anchor itself is none: a
// hooks folder around the root may well hold it under a hook's name.
func (p *Plan) addTarget(t Target) {
	if t.Path = p.ground.home(t.Path); t.Path.Rel != "" {
		p.targets = append(p.targets, t)
	}
}

// Settle completes a draft with what the tree holds: found are the paths that
// exist and that the draft classifies, gone those that did before a change that
// is judged. It fixes the hooks taken in a folder of others, refuses what the
// tree shows to be wrong, and applies the overrides.
func (p *Plan) Settle(found []Path, gone ...Path) (*Plan, error) {
	known := p.homes(found)
	if err := p.reportsBuiltinAt(known); err != nil {
		return nil, err
	}
	known = append(known, p.homes(gone)...)
	stands := make(map[Path]bool, len(known))
	for _, path := range known {
		stands[path] = true
	}
	settled := *p
	settled.settled = true
	settled.targets = slices.DeleteFunc(slices.Clone(p.targets), func(t Target) bool {
		return t.existing && !stands[t.Path]
	})
	settled.index = newIndex(settled.targets)
	if err := settled.overridesAllowed(); err != nil {
		return nil, err
	}
	if err := settled.overridesMatch(known); err != nil {
		return nil, err
	}
	return &settled, nil
}

// homes returns paths by their one name, sorted, each once.
func (p *Plan) homes(paths []Path) []Path {
	homes := make([]Path, len(paths))
	for i, path := range paths {
		homes[i] = p.ground.home(path)
	}
	slices.SortFunc(homes, Path.Compare)
	return slices.Compact(homes)
}

// With returns the plan with files added that protected links point to.
func (p *Plan) With(joined []Joined) *Plan {
	with := *p
	with.targets = slices.Clone(p.targets)
	for _, j := range joined {
		with.add(j.Path, j.Verdict, false)
	}
	with.index = newIndex(with.targets)
	return &with
}

// Sparing returns the plan without directories that nobody could look into:
// what appears in them later may have been there all the time.
func (p *Plan) Sparing(dirs []Path) *Plan {
	sparing := *p
	sparing.exempt = slices.Clone(p.exempt)
	for _, dir := range dirs {
		sparing.exempt = append(sparing.exempt, p.ground.home(dir))
	}
	return &sparing
}

// Targets returns the places that rules name by their path, sorted by path,
// where several rules name one the one that counts first. A target that lies in
// an overridden path is overridden itself; one that merely holds such a path is
// not.
func (p *Plan) Targets() []Target {
	targets := slices.Clone(p.targets)
	for i := range targets {
		targets[i].Verdict = p.override(targets[i].Path, targets[i].Verdict)
	}
	slices.SortStableFunc(targets, func(a, b Target) int {
		return cmp.Or(a.Path.Compare(b.Path), cmp.Compare(b.Verdict.weight(), a.Verdict.weight()))
	})
	return slices.Compact(targets)
}

// Zones counts the manifest's forbidden zones, each once.
func (p *Plan) Zones() int { return len(p.zones) }

// ConfigPresent reports whether there is a `.cage.yaml`.
func (p *Plan) ConfigPresent() bool { return p.present }

// ConfigEntries counts the entries of `.cage.yaml`.
func (p *Plan) ConfigEntries() int { return len(p.config.entries) }

// ContestLimit returns the limit that `.cage.yaml` sets for a path.
func (p *Plan) ContestLimit() (limit int, ok bool) { return optional(p.config.contest) }

// RuleContestLimit returns the limit that `.cage.yaml` sets for a rule.
func (p *Plan) RuleContestLimit() (limit int, ok bool) { return optional(p.config.ruleContest) }

func optional(n *int) (int, bool) {
	if n == nil {
		return 0, false
	}
	return *n, true
}

// Overrides returns the overridden paths relative to the root, sorted, each
// once.
func (p *Plan) Overrides() []string {
	names := make([]string, len(p.requested))
	for i, path := range p.requested {
		names[i] = path.Rel
	}
	return names
}
