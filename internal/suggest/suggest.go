// Package suggest looks through a tree for files that are worth protecting and
// proposes entries of `.cage.yaml` for them, each with its reason.
//
// It promises that what it proposes depends on the names in the tree and on
// the rules alone, not on the machine, its locale or the order of a directory;
// that the loader takes every entry and reads back the very path that was
// found; and that no file is opened and no link followed. It enforces nothing
// and writes nothing.
package suggest

import (
	"bytes"
	"cmp"
	"slices"

	"cage/internal/safefile"
	"cage/rules"
)

// Kind says how an entry names files.
type Kind string

// The kinds: the two keys that an entry of `.cage.yaml` can have.
const (
	Path Kind = "path"
	Glob Kind = "glob"
)

// Entry is one proposed entry.
type Entry struct {
	Kind     Kind
	Value    string
	Category Category
	Reason   string
}

// Proposal is what was found in a tree.
type Proposal struct {
	// Entries are sorted by category, then by value.
	Entries []Entry
	// Covered counts what rules protect already.
	Covered int
	// Unspellable are paths that no entry can name, Unread directories that
	// could not be looked into. Both are relative to the root and sorted.
	Unspellable []string
	Unread      []string
}

// The paths of one pattern become one glob where they are more than this, in
// number or in bytes: a list of that length helps nobody, and a rule file is
// bounded.
const (
	mostPaths     = 8
	mostPathBytes = 4 << 10
)

// Look walks the root of a plan that was made for the layout. An error says
// that the root itself could not be read.
func Look(root *safefile.Root, layout rules.Layout, plan *rules.Plan) (Proposal, error) {
	s := scan{plan: plan, layout: layout, hits: make([][]hit, len(patterns))}
	top, err := root.Dir("")
	if err != nil {
		return Proposal{}, err
	}
	defer top.Close()
	if err := s.walk(rules.Path{}, top); err != nil {
		return Proposal{}, err
	}
	return s.proposal(), nil
}

// scan is one walk.
type scan struct {
	plan   *rules.Plan
	layout rules.Layout
	// hits are what was found, by pattern.
	hits   [][]hit
	unread []string
}

type hit struct {
	rel     string
	covered bool
}

func (s *scan) walk(dir rules.Path, open *safefile.Dir) error {
	entries, err := open.ReadDir()
	for _, entry := range entries {
		p := dir.Join(entry.Name)
		switch {
		case entry.Err != nil:
			s.unread = append(s.unread, p.Rel)
		case entry.Kind == safefile.Directory:
			s.descend(p, open)
		case entry.Kind == safefile.Regular, entry.Kind == safefile.Symlink:
			s.note(p, false)
		}
	}
	return err
}

// descend goes into a subdirectory, unless it is proposed as a whole.
func (s *scan) descend(p rules.Path, parent *safefile.Dir) {
	if !s.plan.Scans(p) || skips(p.Base()) || s.note(p, true) {
		return
	}
	open, err := parent.DirToRead(p.Base())
	if err == nil {
		defer open.Close()
		err = s.walk(p, open)
	}
	if err != nil && !safefile.Missing(err) {
		s.unread = append(s.unread, p.Rel)
	}
}

// note takes down an entry that a pattern is about, and reports whether one is.
func (s *scan) note(p rules.Path, isDirectory bool) bool {
	for i, pattern := range patterns {
		if pattern.fits(p.Rel, p.Base(), isDirectory) {
			s.hits[i] = append(s.hits[i], hit{p.Rel, s.covered(p, isDirectory)})
			return true
		}
	}
	return false
}

// covered reports whether rules protect an entry already, or somebody decided
// that changes to it are only to be listed. Of a directory that is what they
// say of a file deep in it that no rule knows by its name.
func (s *scan) covered(p rules.Path, isDirectory bool) bool {
	if isDirectory {
		p = p.Join("x/x")
	}
	verdict, matched := s.plan.Classify(p)
	return matched && (verdict.Mode == rules.Revert || verdict.Source == rules.CageYAML)
}

func (s *scan) proposal() Proposal {
	out := Proposal{Unread: s.unread}
	for i, pattern := range patterns {
		var paths []string
		for _, hit := range s.hits[i] {
			if hit.covered {
				out.Covered++
			} else {
				paths = append(paths, hit.rel)
			}
		}
		s.propose(&out, pattern, paths)
	}
	slices.SortFunc(out.Entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Category, b.Category), cmp.Compare(a.Value, b.Value), cmp.Compare(a.Kind, b.Kind))
	})
	slices.Sort(out.Unspellable)
	slices.Sort(out.Unread)
	return out
}

// propose adds what one pattern found: every path for itself, or one glob.
func (s *scan) propose(out *Proposal, p pattern, paths []string) {
	length := 0
	for _, rel := range paths {
		length += len(rel)
	}
	entry := Entry{Category: p.category, Reason: p.category.reason()}
	if len(paths) > 0 && (p.open() || len(paths) > mostPaths || length > mostPathBytes) {
		entry.Kind, entry.Value = Glob, p.glob()
		out.Entries = append(out.Entries, entry)
		return
	}
	for _, rel := range paths {
		if !s.spellable(rel) {
			out.Unspellable = append(out.Unspellable, rel)
			continue
		}
		entry.Kind, entry.Value = Path, rel
		if p.directory() {
			entry.Value += "/"
		}
		out.Entries = append(out.Entries, entry)
	}
}

// spellable reports whether the loader reads back a path that an entry names.
func (s *scan) spellable(rel string) bool {
	document := Proposal{Entries: []Entry{{Kind: Path, Value: rel}}}.YAML()
	plan, err := rules.New(rules.Inputs{Layout: s.layout, Config: rules.File{Present: true, Data: document}})
	if err != nil {
		return false
	}
	return slices.ContainsFunc(plan.Targets(), func(t rules.Target) bool {
		return t.Verdict.Source == rules.CageYAML && t.Path == rules.Path{Rel: rel}
	})
}

const heading = `# Proposed by cage suggest. Nothing here is enforced: keep what fits and put it
# into .cage.yaml.
`

// YAML returns the entries as a document that `.cage.yaml` could be.
func (p Proposal) YAML() []byte {
	var b bytes.Buffer
	b.WriteString(heading)
	if len(p.Entries) == 0 {
		b.WriteString("protect: []\n")
		return b.Bytes()
	}
	b.WriteString("protect:\n")
	for _, e := range p.Entries {
		b.WriteString("  # " + string(e.Category) + ": " + e.Reason + "\n")
		b.WriteString("  - " + string(e.Kind) + ": " + scalar(e.Value) + "\n")
	}
	return b.Bytes()
}
