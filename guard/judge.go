package guard

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"cage/internal/safefile"
	"cage/restore"
	"cage/rules"
	"cage/snapshot"
)

// judge compares one path with its baseline and does what the plan says.
func (g *Guard) judge(ctx context.Context, p rules.Path) {
	if g.excuses(p) || g.leaves(p) {
		g.settling.over(p)
		return
	}
	if e, known := g.Manifest.Entry(p); known {
		g.judgeEntry(ctx, e)
		return
	}
	if !g.judgeDirectory(p) {
		g.judgeNew(p)
	}
}

// leaves reports whether p is left as it is for now, because it is contested.
func (g *Guard) leaves(p rules.Path) bool {
	return !g.exiting && (g.conceded[p] || g.pacing.holds(p, time.Now()))
}

// judgeEntry judges a path of the baseline. What cannot be put back, and what
// only is to be reported, is compared on rescans.
func (g *Guard) judgeEntry(ctx context.Context, e *snapshot.Entry) {
	if !g.guards(e) {
		g.settling.over(e.Path)
		return
	}
	sight := g.compare(e)
	if sight.Same {
		g.stood.whole(e.Path, sight.State.Inode, time.Now())
		g.whole(e.Path)
		return
	}
	if safefile.Exhausted(sight.Err) {
		g.missed(e.Path, sight.Err)
		return
	}
	if g.settles(e, sight) || g.standsIn(e, sight) || g.admitBookkeeping(ctx, e, sight) {
		return
	}
	g.settling.over(e.Path)
	g.putBack(e, sight)
}

// guards reports whether the guard puts e back in this run.
func (g *Guard) guards(e *snapshot.Entry) bool {
	return e.Verdict.Mode == rules.Revert && e.Restorable() && g.Restores
}

// settles reports whether what was seen may be half of an honest write that
// still has time.
func (g *Guard) settles(e *snapshot.Entry, sight snapshot.Sight) bool {
	if g.exiting || sight.Err != nil {
		return false
	}
	now := time.Now()
	switch {
	case sight.State.Kind == safefile.None:
		return g.settling.hold(e.Path, absent, now, crowd())
	case sight.Prefix:
		return g.settling.hold(e.Path, prefix, now, crowd())
	case sight.Undressed && g.stood.isOther(e, sight):
		return g.settling.hold(e.Path, undressed, now, crowd())
	}
	return false
}

func kindOf(sight snapshot.Sight) Kind {
	if sight.State.Kind == safefile.None && sight.Err == nil {
		return Deleted
	}
	return Modified
}

// putBack restores an entry and tells what happened.
func (g *Guard) putBack(e *snapshot.Entry, sight snapshot.Sight) {
	kind := kindOf(sight)
	result := g.restorer.Put(e, kind == Deleted)
	if errors.Is(result.Err, restore.ErrAppeared) {
		g.dirty.add(e.Path) // compare what appeared before anything replaces it
		g.noteRebuilt(e, kind, result.Displaced)
		return
	}
	g.noteResets(e.Verdict, result.Reset)
	if result.Untouched && !result.Uncovered && result.Err == nil {
		g.whole(e.Path)
		return
	}
	changed := errors.Is(result.Err, restore.ErrChanged)
	if changed {
		g.dirty.add(e.Path) // it was back, and somebody wrote it again
		result.Err = nil
	}
	if sight.Err != nil && result.Err == nil && !result.Uncovered && !displacedOwn(result, e.Path) {
		kind = Deleted // which nobody saw before the way to it was cleared
	}
	row := g.row(e.Path, e.Verdict, kind)
	row.Before = e.State.Digest
	g.settleResult(row, result, restored{
		outcome: Reverted, half: sight.Prefix, anew: sight.Prefix && g.stood.isOther(e, sight),
	})
	if result.Err == nil && !changed {
		g.adopt(e, result)
	}
}

// noteRebuilt notes that directories above an entry were put back, where
// something else stood in their place.
func (g *Guard) noteRebuilt(e *snapshot.Entry, kind Kind, displaced []restore.Displaced) {
	if len(displaced) == 0 {
		return
	}
	row := g.row(e.Path, e.Verdict, kind)
	row.Before, row.Outcome = e.State.Digest, Reverted
	g.handOn(row, displaced)
}

// adopt makes what was reached the baseline: the new inode, which is what may
// be overwritten in place later, and the attributes that could be set.
func (g *Guard) adopt(e *snapshot.Entry, result restore.Result) {
	if result.State.Kind != e.State.Kind {
		return
	}
	adopted := *e
	if len(result.Unset) > 0 {
		adopted = *e.WithAttributes(result.Unset, result.State)
		g.emit(Rebased{Entry: &adopted})
	}
	adopted.State.Inode, adopted.State.Nlink = result.State.Inode, result.State.Nlink
	g.Manifest.Replace(&adopted)
	g.stood.own(e.Path, result.State.Inode, time.Now())
}

// restored is a restore that is not explained yet.
type restored struct {
	outcome Outcome
	// half says that what was to be displaced was half of the baseline, so that
	// somebody may have been writing the same again.
	half bool
	// anew says that it was half of a new file. Its writer may set the mode by its
	// path, where the baseline stands by then.
	anew bool
	live bool
}

// settleResult writes a restore into its row, hands on what was displaced, and
// emits it.
func (g *Guard) settleResult(row *Row, result restore.Result, r restored) {
	tag := g.handOn(row, result.Displaced)
	if result.Err != nil {
		g.fail(row, result.Err)
		return
	}
	row.back(r.outcome)
	row.Unset = mergeUnset(row.Unset, result.Unset)
	r.live = !g.exiting
	g.unexplained[tag] = r
	if r.live {
		g.live++
		g.pacing.restored(row.Path, time.Now())
	}
	g.emit(Restored{
		Tag: tag, Path: row.Path, Verdict: row.Verdict, Kind: row.Kind,
		Outcome: r.outcome, At: time.Now(), Live: r.live,
	})
	switch {
	case displacedOwn(result, row.Path):
	case result.Uncovered:
		g.explainMount(tag)
	default:
		g.explainAbsence(tag, row.Path)
	}
}

// displacedOwn reports whether a restore displaced something at the path
// itself.
func displacedOwn(result restore.Result, p rules.Path) bool {
	return slices.ContainsFunc(result.Displaced, func(d restore.Displaced) bool { return d.Path == p })
}

// fail notes that a path is not back, and says so once for every reason.
func (g *Guard) fail(row *Row, err error) {
	code := safefile.ErrnoName(err)
	news := row.Outcome != RevertFailed || row.Code != code
	row.Outcome, row.Code = RevertFailed, code
	if news {
		g.emit(Failed{Path: row.Path, Verdict: row.Verdict, Kind: row.Kind, Code: code})
	}
}

// judgeNew judges a path that the baseline does not have.
func (g *Guard) judgeNew(p rules.Path) {
	verdict, covered := g.Plan.ClassifyRecorded(p)
	present := g.present
	if own, _ := g.Plan.Classify(p); own.Mode != rules.Revert {
		present = g.Trees.IsLink // what a rule names below would come to exist through it
	}
	if !covered || verdict.Mode != rules.Revert || !g.Restores {
		g.settling.over(p)
		return
	}
	stands, err := present(p)
	if err != nil && g.relieved(err) {
		stands, err = present(p)
	}
	switch {
	case err != nil:
		g.missed(p, err)
		return
	case !stands:
		g.whole(p)
		return
	}
	if !g.exiting && (verdict.Transient || g.settling.hold(p, appeared, time.Now(), crowd())) {
		return
	}
	g.settling.over(p)
	result := g.restorer.Remove(p)
	g.noteResets(verdict, result.Reset)
	if result.Err == nil && !result.Uncovered && !displacedOwn(result, p) {
		g.whole(p) // gone by itself
		return
	}
	kind, outcome := Added, Removed
	if _, known := g.Manifest.Directory(p); known {
		kind, outcome = Modified, Reverted // it stood in the place of a directory
	}
	g.settleResult(g.row(p, verdict, kind), result, restored{outcome: outcome})
}

// present reports whether something stands at p that is no directory, or may.
// New directories are no change, what is put into them is; but one that cannot
// be looked into may hold anything, and one in a file's place is in its way. An
// error says that nobody can tell.
func (g *Guard) present(p rules.Path) (bool, error) {
	dir, err := g.Trees.Dir(p.Dir())
	if err != nil {
		return hides(err)
	}
	defer dir.Close()
	info, err := dir.Stat(p.Base())
	if err != nil {
		return hides(err)
	}
	if info.Kind != safefile.Directory || g.Plan.WantsFile(p) {
		return true, nil
	}
	sub, err := dir.Dir(p.Base())
	if err != nil {
		return hides(err)
	}
	defer sub.Close()
	entries, err := sub.ReadDir()
	for _, entry := range entries {
		err = cmp.Or(err, entry.Err)
	}
	return hides(err)
}

// hides reports whether what a look failed with hides what stands there. Where
// it says nothing at all, it is returned.
func hides(err error) (bool, error) {
	if safefile.Unseen(err) {
		return false, err
	}
	return safefile.Hidden(err), nil
}
