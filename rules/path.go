package rules

import (
	"errors"
	"path/filepath"
	"strings"
)

// Anchor names one of the directories that paths of a session are relative to.
type Anchor uint8

const (
	// Root is the git top level, or the working directory outside git.
	Root Anchor = iota
	// CommonDir is git's common directory (`.git` in an ordinary repository).
	CommonDir
	// GitDir is a linked worktree's own git directory. Where it is the common
	// directory itself, every path in it is anchored at CommonDir.
	GitDir
	// HooksDir is the active hooks folder where it lies outside the root and
	// both git directories.
	HooksDir
	// Outside anchors the targets of protected links that lie in none of the
	// other anchors; Rel is then the absolute path without its leading slash.
	Outside
)

// Anchors returns the anchors whose directories a session guards, in the order
// of the constants.
func Anchors() []Anchor { return []Anchor{Root, CommonDir, GitDir, HooksDir} }

// Path is an anchor and the bytes below it: slash-separated, without empty,
// "." or ".." segments. It is a map key: equal paths are equal values. An
// empty Rel is the anchor itself.
type Path struct {
	Anchor Anchor
	Rel    string
}

// errPath is returned for a relative path that leaves its anchor or holds a
// NUL byte.
var errPath = errors.New("path leaves its anchor")

// Clean makes a Path of relative bytes as somebody spelled them: repeated and
// trailing slashes and "." segments are dropped, ".." is refused.
func Clean(a Anchor, rel string) (Path, error) {
	if strings.IndexByte(rel, 0) >= 0 || strings.HasPrefix(rel, "/") {
		return Path{}, errPath
	}
	segments := make([]string, 0, 8)
	for segment := range strings.SplitSeq(rel, "/") {
		switch segment {
		case "", ".":
		case "..":
			return Path{}, errPath
		default:
			segments = append(segments, segment)
		}
	}
	return Path{Anchor: a, Rel: strings.Join(segments, "/")}, nil
}

// Base returns the last segment.
func (p Path) Base() string { return p.Rel[strings.LastIndexByte(p.Rel, '/')+1:] }

// Dir returns the directory that holds p; the directory of an anchor is the
// anchor itself.
func (p Path) Dir() Path {
	i := strings.LastIndexByte(p.Rel, '/')
	return Path{Anchor: p.Anchor, Rel: p.Rel[:max(i, 0)]}
}

// Join returns the path of the entry called name in the directory p.
func (p Path) Join(name string) Path {
	if p.Rel == "" {
		return Path{Anchor: p.Anchor, Rel: name}
	}
	return Path{Anchor: p.Anchor, Rel: p.Rel + "/" + name}
}

// Within reports whether p is dir or lies below it.
func (p Path) Within(dir Path) bool {
	if p.Anchor != dir.Anchor || !strings.HasPrefix(p.Rel, dir.Rel) {
		return false
	}
	return dir.Rel == "" || len(p.Rel) == len(dir.Rel) || p.Rel[len(dir.Rel)] == '/'
}

// Compare orders paths by anchor, then by bytes.
func (p Path) Compare(q Path) int {
	if p.Anchor != q.Anchor {
		return int(p.Anchor) - int(q.Anchor)
	}
	return strings.Compare(p.Rel, q.Rel)
}

// Layout says where the anchors stand. All paths are absolute and free of
// symlinks; an anchor that the session does not have is empty.
type Layout struct {
	Root      string
	CommonDir string
	GitDir    string
	HooksDir  string
}

// Dir returns the absolute path of an anchor, "/" for Outside, and "" for an
// anchor that the session does not have.
func (l Layout) Dir(a Anchor) string {
	switch a {
	case Root:
		return l.Root
	case CommonDir:
		return l.CommonDir
	case GitDir:
		return l.GitDir
	case HooksDir:
		return l.HooksDir
	default:
		return "/"
	}
}

// Abs returns the absolute path of p.
func (l Layout) Abs(p Path) string {
	dir := l.Dir(p.Anchor)
	if p.Rel == "" {
		return dir
	}
	if strings.HasSuffix(dir, "/") {
		return dir + p.Rel
	}
	return dir + "/" + p.Rel
}

// Below returns the place of an absolute, clean file name in the directory dir,
// which is "" for dir itself, and whether it is dir or lies below it.
func Below(name, dir string) (rel string, ok bool) {
	if name == "" || dir == "" {
		return "", false
	}
	if name == dir {
		return "", true
	}
	return strings.CutPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

// Overlap reports whether one of two paths is or holds the other, whatever their
// anchors.
func (l Layout) Overlap(a, b Path) bool {
	x, y := l.Abs(a), l.Abs(b)
	_, inside := Below(x, y)
	_, around := Below(y, x)
	return inside || around
}

// Locate returns the path of an absolute, clean file name: relative to the
// innermost anchor that holds it, else Outside. Where two anchors stand in one
// directory, the first in the order of the constants takes its paths.
func (l Layout) Locate(abs string) Path {
	best, found := Path{Anchor: Outside, Rel: strings.TrimPrefix(abs, "/")}, ""
	for _, a := range Anchors() {
		dir := l.Dir(a)
		if rel, ok := Below(abs, dir); ok && len(dir) > len(found) {
			best, found = Path{Anchor: a, Rel: rel}, dir
		}
	}
	return best
}

// Display returns p as reports spell it: relative to the root, with "../"
// where it lies outside, and absolute for Outside.
func (l Layout) Display(p Path) string {
	if p.Anchor == Root {
		return p.Rel
	}
	abs := l.Abs(p)
	if p.Anchor == Outside {
		return abs
	}
	rel, err := filepath.Rel(l.Root, abs)
	if err != nil {
		return abs
	}
	return rel
}
