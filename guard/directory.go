package guard

import (
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"cage/internal/safefile"
	"cage/rules"
	"cage/snapshot"
)

// judgeDirectory judges a directory of a protected tree that the baseline
// knows: it gets its owner and mode back. It reports false where the path is no
// such directory, or another thing stands there.
func (g *Guard) judgeDirectory(p rules.Path) bool {
	if !g.tends(p) {
		return false
	}
	same, stands, err := g.sameDirectory(p)
	if err != nil && g.relieved(err) {
		same, stands, err = g.sameDirectory(p)
	}
	switch {
	case err != nil:
		g.missed(p, err)
		return true
	case !stands:
		return false
	case same:
		g.whole(p)
		return true
	case !g.Restores:
		g.settling.over(p)
		return true
	case !g.exiting && g.settling.hold(p, appeared, time.Now(), crowd()):
		return true // who makes a directory gives it its mode a moment later
	}
	g.settling.over(p)
	verdict, _ := g.Plan.Classify(p)
	g.noteReset(p, verdict, g.restorer.Reset(p).Err)
	return true
}

// tends reports whether p is a directory whose owner and mode the guard keeps:
// one of a protected tree that was there at the baseline.
func (g *Guard) tends(p rules.Path) bool {
	_, known := g.Manifest.Directory(p)
	return known && g.Plan.Covers(p)
}

// sameDirectory compares a directory with its baseline. Where it cannot be
// reached it stands, and is not the same; an error says that nobody can tell.
func (g *Guard) sameDirectory(p rules.Path) (same, stands bool, err error) {
	known, _ := g.Manifest.Directory(p)
	dir, err := g.Trees.Dir(p)
	switch {
	case safefile.Absent(err):
		return false, false, nil
	case safefile.Unseen(err):
		return false, true, err
	case err != nil:
		return false, true, nil
	}
	defer dir.Close()
	now, err := dir.Info()
	return err == nil && now.Perm == known.Perm && now.UID == known.UID && now.GID == known.GID, true, err
}

// noteResets notes that directories had to be opened up on the way to a path.
func (g *Guard) noteResets(verdict rules.Verdict, dirs []rules.Path) {
	for _, p := range dirs {
		g.noteReset(p, verdict, nil)
	}
}

// noteReset notes that a directory got its owner and mode back, or why not. It
// is no round of a contest: git makes directories anew when it switches
// branches.
func (g *Guard) noteReset(p rules.Path, verdict rules.Verdict, err error) {
	row := g.row(p, verdict, Modified)
	if err != nil {
		g.fail(row, err)
		return
	}
	row.back(Reverted)
	if !g.exiting {
		g.live++
	}
	g.emit(Restored{
		Path: p, Verdict: verdict, Kind: Modified, Outcome: Reverted,
		At: time.Now(), Live: !g.exiting, Directory: true,
	})
}

// standsIn reports whether what was seen in the place of a link is a directory
// that stays until the sweep: git makes one when it switches to a branch that has
// it there, and would fail, or write through the link, if that came back
// meanwhile. The places that rules name below are judged for themselves. Once the
// link was away for longer than a new name may be there, that is noted.
func (g *Guard) standsIn(e *snapshot.Entry, sight snapshot.Sight) bool {
	if g.exiting || sight.Err != nil || sight.State.Kind != safefile.Directory || !g.leadsAway(e) {
		return false
	}
	known := g.rows[e.Path]
	noted := known != nil && known.Outcome == RevertFailed
	if !noted && g.settling.hold(e.Path, appeared, time.Now(), crowd()) {
		return true
	}
	g.settling.over(e.Path)
	if !noted {
		row := g.row(e.Path, e.Verdict, Modified)
		row.Before = e.State.Digest
		g.fail(row, syscall.EISDIR)
	}
	return true
}

// leadsAway reports whether e is a link on the way to places that rules name,
// and leads away from all that is protected: while a directory stands there,
// nothing of that is missing. Of a link that is absolute or goes back on itself
// only the system can tell.
func (g *Guard) leadsAway(e *snapshot.Entry) bool {
	link := e.State.Link
	if e.State.Kind != safefile.Symlink || filepath.IsAbs(link) || filepath.Clean(link) != link {
		return false
	}
	if _, leads := g.Plan.Leading(e.Path); !leads || g.Plan.Covers(e.Path) {
		return false
	}
	layout := g.Trees.Layout()
	end := layout.Locate(filepath.Join(layout.Abs(e.Path.Dir()), link))
	return !g.Plan.Covers(end) && !g.Plan.Leads(end) &&
		!slices.ContainsFunc(g.Manifest.Paths(), func(p rules.Path) bool { return layout.Overlap(p, end) })
}

// findDirectories looks at the directories of protected trees.
func (g *Guard) findDirectories(found *findings) {
	for _, p := range g.tended {
		same, stands, err := g.sameDirectory(p)
		switch {
		case err != nil:
			found.unseen = append(found.unseen, snapshot.Unseen{Path: p, Err: err})
		case same || !stands:
		case g.Restores:
			found.dirty = append(found.dirty, p)
		default:
			verdict, _ := g.Plan.Classify(p)
			found.observed = append(found.observed, observation{
				path: p, verdict: verdict, kind: Modified, outcome: g.leave(verdict),
			})
		}
	}
}
