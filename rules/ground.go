package rules

import (
	"cmp"
	"slices"
	"strings"
)

// ground is how the anchors of a session lie in one another.
type ground struct {
	layout Layout
	// moves rename a path in an anchor that holds another one, the innermost
	// (longest) first, so that every file has one name.
	moves []move
	// git are the places in the root that are git directories.
	git []string
}

// move says that the directory at prefix in one anchor is another anchor.
type move struct {
	from   Anchor
	prefix string
	to     Anchor
}

func newGround(l Layout) ground {
	g := ground{layout: l, git: []string{dotGit}}
	for _, outer := range Anchors() {
		for _, inner := range Anchors() {
			rel, ok := Below(l.Dir(inner), l.Dir(outer))
			// Of two anchors in one directory the first takes the paths.
			if !ok || rel == "" && inner >= outer {
				continue
			}
			g.moves = append(g.moves, move{outer, rel, inner})
			if outer == Root && (inner == CommonDir || inner == GitDir) {
				g.git = append(g.git, rel)
			}
		}
	}
	slices.SortFunc(g.moves, func(a, b move) int {
		return cmp.Or(cmp.Compare(len(b.prefix), len(a.prefix)), cmp.Compare(a.to, b.to))
	})
	return g
}

// home returns the one name of path: relative to the innermost anchor.
func (g *ground) home(path Path) Path {
	for i := range g.moves {
		m := &g.moves[i]
		if m.from == path.Anchor && relWithin(path.Rel, m.prefix) {
			return Path{Anchor: m.to, Rel: strings.TrimPrefix(path.Rel[len(m.prefix):], "/")}
		}
	}
	return path
}

// relWithin reports whether rel is dir or lies below it.
func relWithin(rel, dir string) bool { return Path{Rel: rel}.Within(Path{Rel: dir}) }

// gitHolds reports whether a root-relative path is or lies in a git directory.
func (g *ground) gitHolds(rel string) bool {
	return slices.ContainsFunc(g.git, func(dir string) bool { return relWithin(rel, dir) })
}

// gitWithin reports whether a git directory lies in a root-relative path.
func (g *ground) gitWithin(rel string) bool {
	return slices.ContainsFunc(g.git, func(dir string) bool { return relWithin(dir, rel) })
}
