package guard

import (
	"errors"
	"maps"
	"os"
	"slices"
	"syscall"

	"cage/internal/safefile"
	"cage/rules"
)

// setAside is what a restore set aside beside its path.
type setAside struct {
	// of is the path of the row that tells of it.
	of rules.Path
	// info is what was set aside; without a kind where it could not be seen.
	info safefile.Info
}

// excuses reports whether what stands at p is there because of a restore: it is
// what one set aside, or a directory that one made for the moment. A name alone
// excuses nothing, and nothing excuses what lies below.
func (g *Guard) excuses(p rules.Path) bool {
	return g.isAside(p) || g.isOwn(p)
}

// isAside reports whether what was set aside at p is all that stands there.
func (g *Guard) isAside(p rules.Path) bool {
	known, aside := g.aside[p]
	if !aside {
		return false
	}
	info, seen := g.stat(p)
	if !seen || info.Kind == safefile.None {
		return seen
	}
	if known.info.Kind == safefile.None {
		known.info = info
		g.aside[p] = known
	}
	return info.Kind == known.info.Kind && info.Inode == known.info.Inode
}

// isOwn reports whether nothing but a directory that a restore made for the
// moment stands at p. Its owner may look into that: one that is closed was made
// so by somebody else.
func (g *Guard) isOwn(p rules.Path) bool {
	const ownerAll = 0o700
	if !g.restorer.Owns(p) {
		return false
	}
	info, seen := g.stat(p)
	if !seen || info.Kind == safefile.None {
		return seen
	}
	return info.Kind == safefile.Directory && info.Perm&ownerAll == ownerAll && info.UID == uint32(os.Geteuid())
}

// stat looks at p. What is missing, or lies in a directory that may not be
// entered, is of no kind: that directory is judged for itself. Seen is false
// where a mount hides it, or the look failed.
func (g *Guard) stat(p rules.Path) (info safefile.Info, seen bool) {
	dir, err := g.Trees.Dir(p.Dir())
	if err == nil {
		defer dir.Close()
		info, err = dir.Stat(p.Base())
	}
	if err != nil {
		return safefile.Info{}, !errors.Is(err, safefile.ErrMounted) && !safefile.Unseen(err)
	}
	return info, true
}

// noteClosed notes that paths are not back where what stood there was only moved
// within a protected tree, and cannot be looked into: it may hold anything.
func (g *Guard) noteClosed() {
	for _, p := range slices.SortedFunc(maps.Keys(g.aside), rules.Path.Compare) {
		verdict, covered := g.Plan.Classify(p)
		if !covered || verdict.Mode != rules.Revert {
			continue
		}
		switch stands, err := g.present(p); {
		case err != nil:
			g.unlooked[p] = err
			continue
		case !stands || !g.isAside(p):
			continue
		}
		if info, _ := g.stat(p); info.Kind != safefile.Directory {
			continue
		}
		if row := g.rows[g.aside[p].of]; row != nil && row.Outcome != RevertFailed {
			g.fail(row, syscall.EACCES)
		}
	}
}
