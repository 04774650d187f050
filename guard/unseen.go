package guard

import (
	"maps"
	"slices"

	"cage/internal/safefile"
	"cage/rules"
	"cage/snapshot"
	"cage/watch"
)

// Unseen is the rule of the row that says that what stands at a place or below
// it could not be looked at to the end, even by the last comparison.
const Unseen rules.Rule = "unseen"

// compare looks at the path of an entry, and once more where it was kept from
// that by something that could be had back.
func (g *Guard) compare(e *snapshot.Entry) snapshot.Sight {
	sight := g.look.Compare(e)
	g.look.Forget()
	if safefile.Exhausted(sight.Err) && g.relieved(sight.Err) {
		sight = g.look.Compare(e)
		g.look.Forget()
	}
	return sight
}

// missed notes that a look at p failed, which says nothing about what stands
// there: rescans look again.
func (g *Guard) missed(p rules.Path, err error) {
	g.settling.over(p)
	g.emit(WatchError{Err: err})
	g.noteLack(lookFailed(err))
	g.unlooked[p] = err
}

// relieved takes back what somebody took from the program, if a look may have
// failed for want of it.
func (g *Guard) relieved(err error) bool {
	if !safefile.Exhausted(err) || g.Upkeep == nil {
		return false
	}
	for _, lack := range g.Upkeep() {
		g.noteLack(lack)
	}
	return true
}

// upkeep may be called beside the loop.
func (g *Guard) upkeep() []watch.Lack {
	if g.Upkeep == nil {
		return nil
	}
	return g.Upkeep()
}

// lookFailed is the lack of a look that failed.
func lookFailed(err error) watch.Lack {
	return watch.Lack{Reason: "looks at files failed (" + safefile.ErrnoName(err) + ") and had to be repeated"}
}

// noteLack says once that changes are seen late, and why.
func (g *Guard) noteLack(lack watch.Lack) {
	if slices.Contains(g.lacks, lack) {
		return
	}
	g.lacks = append(g.lacks, lack)
	g.emit(Degraded{Reason: lack.String()})
}

// noteUnseen makes rows for what even the last comparison could not look at:
// one for each anchor, at the place that all of it lies in. Those of an earlier
// one count no more.
func (g *Guard) noteUnseen(places []snapshot.Unseen) {
	for p, err := range g.unlooked {
		places = append(places, snapshot.Unseen{Path: p, Err: err})
	}
	tops := make(map[rules.Anchor]snapshot.Unseen)
	for _, unseen := range places {
		top, known := tops[unseen.Path.Anchor]
		if !known {
			top = unseen
		}
		top.Path = above(top.Path, unseen.Path)
		tops[unseen.Path.Anchor] = top
	}
	last := g.blind
	g.blind = make(map[rules.Path]*Row)
	for _, top := range tops {
		row := &Row{
			Path: top.Path, Verdict: rules.Verdict{Rule: Unseen, Source: rules.Builtin, Mode: rules.Revert},
			Kind: Modified, seen: 1,
		}
		if known := last[top.Path]; known != nil {
			row = known
		}
		g.blind[top.Path] = row
		g.fail(row, top.Err)
	}
}

// withBlind returns the rows, with those of what could not be looked at: where
// both have one, the one that says that something is not back.
func (g *Guard) withBlind() map[rules.Path]*Row {
	rows := maps.Clone(g.rows)
	for p, row := range g.blind {
		if known := rows[p]; known == nil || known.Outcome != RevertFailed {
			rows[p] = row
		}
	}
	return rows
}

// above returns the lowest place of an anchor that both lie in.
func above(a, b rules.Path) rules.Path {
	for !b.Within(a) {
		a = a.Dir()
	}
	return a
}
