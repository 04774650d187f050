package snapshot

import (
	"cage/internal/safefile"
	"cage/rules"
)

// Trees holds the directories of a layout open.
type Trees struct {
	layout rules.Layout
	roots  [rules.Outside + 1]*safefile.Root
}

// OpenTrees opens every anchor that the layout has.
func OpenTrees(layout rules.Layout) (*Trees, error) {
	t := &Trees{layout: layout}
	for _, a := range rules.Anchors() {
		if layout.Dir(a) == "" {
			continue
		}
		root, err := safefile.OpenRoot(layout.Dir(a))
		if err != nil {
			t.Close()
			return nil, err
		}
		t.roots[a] = root
	}
	system, err := safefile.OpenSystem()
	if err != nil {
		t.Close()
		return nil, err
	}
	t.roots[rules.Outside] = system
	return t, nil
}

// Close releases the directories.
func (t *Trees) Close() {
	for _, root := range t.roots {
		if root != nil {
			root.Close()
		}
	}
}

// Layout returns where the anchors stand.
func (t *Trees) Layout() rules.Layout { return t.layout }

// Root returns the open directory of an anchor, nil where the session has none.
func (t *Trees) Root(a rules.Anchor) *safefile.Root { return t.roots[a] }

// Dir opens the directory at p.
func (t *Trees) Dir(p rules.Path) (*safefile.Dir, error) { return t.roots[p.Anchor].Dir(p.Rel) }

// DirToRead opens the directory at p for one ReadDir.
func (t *Trees) DirToRead(p rules.Path) (*safefile.Dir, error) {
	return t.roots[p.Anchor].DirToRead(p.Rel)
}

// IsLink reports whether a symlink stands at p. An error says that nobody can
// tell.
func (t *Trees) IsLink(p rules.Path) (bool, error) {
	dir, err := t.Dir(p.Dir())
	if err != nil {
		return false, onlyUnseen(err)
	}
	defer dir.Close()
	info, err := dir.Stat(p.Base())
	return err == nil && info.Kind == safefile.Symlink, onlyUnseen(err)
}

// onlyUnseen drops an error that says something about the path.
func onlyUnseen(err error) error {
	if safefile.Unseen(err) {
		return err
	}
	return nil
}

// Moved returns the anchors at whose paths another directory, or none, now
// stands, and those of which nobody can tell.
func (t *Trees) Moved() (moved []rules.Anchor, unseen []Unseen) {
	for _, a := range rules.Anchors() {
		if t.roots[a] == nil {
			continue
		}
		left, err := t.roots[a].Moved()
		switch {
		case left:
			moved = append(moved, a)
		case err != nil:
			unseen = append(unseen, Unseen{Path: rules.Path{Anchor: a}, Err: err})
		}
	}
	return moved, unseen
}

// parents opens the directories that paths lie in, and keeps the last one open:
// the next path may lie there too.
type parents struct {
	trees *Trees
	dir   *safefile.Dir // nil where none is open
	at    rules.Path
}

// of opens the directory that holds p, until the next call or leave.
func (o *parents) of(p rules.Path) (*safefile.Dir, error) {
	if o.dir != nil && o.at == p.Dir() {
		return o.dir, nil
	}
	o.leave()
	dir, err := o.trees.Dir(p.Dir())
	if err != nil {
		return nil, err
	}
	o.dir, o.at = dir, p.Dir()
	return dir, nil
}

func (o *parents) leave() {
	if o.dir != nil {
		o.dir.Close()
		o.dir = nil
	}
}
