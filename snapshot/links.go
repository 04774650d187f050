package snapshot

import (
	"os"
	"slices"

	"cage/internal/physical"
	"cage/rules"
)

// Links are the symlinks that decide what is read at protected places.
type Links struct {
	// Joined are additions to the plan, each with the verdict of the place: the
	// links on the way to it and the regular file that they lead to. What lies
	// outside every anchor can only be watched for changes.
	Joined []rules.Joined
	// Astray are the places that links lead to what is not protected.
	Astray []Astray
}

// Astray is a place that a revert rule names by its path, and where links lead
// from there: to no file that could join, and to no protected directory.
type Astray struct{ Place, End rules.Path }

// Follow follows the symlinks among paths that are protected, and those on the
// way to a place that a revert rule names by its path.
func Follow(trees *Trees, plan *rules.Plan, paths []rules.Path) Links {
	f := follower{layout: trees.layout, plan: plan}
	for _, p := range paths {
		if _, err := os.Readlink(f.layout.Abs(p)); err != nil {
			continue
		}
		if verdict, ok := plan.Classify(p); ok {
			f.follow(p, verdict)
		}
		if verdict, ok := plan.Leading(p); ok {
			f.join(p, verdict)
			f.followBelow(p)
		}
	}
	return f.found
}

type follower struct {
	layout rules.Layout
	plan   *rules.Plan
	found  Links
}

// followBelow follows a link to the places that revert rules name below it.
func (f *follower) followBelow(link rules.Path) {
	for _, t := range f.plan.Targets() {
		if t.Path != link && t.Path.Within(link) && t.Verdict.Mode == rules.Revert {
			f.follow(t.Path, t.Verdict)
		}
	}
}

// follow takes in the links on the way to a place, itself included, and the
// file at the end.
func (f *follower) follow(place rules.Path, verdict rules.Verdict) {
	end, links, err := physical.Way(f.layout.Abs(place))
	if err != nil {
		return // leads nowhere
	}
	for _, link := range links {
		f.join(f.layout.Locate(link), verdict)
	}
	at := f.layout.Locate(end)
	if info, err := os.Lstat(end); err == nil && info.Mode().IsRegular() {
		f.join(at, verdict)
	} else if f.names(place) && !f.guards(at) {
		f.found.Astray = append(f.found.Astray, Astray{Place: place, End: at})
	}
}

// names reports whether a revert rule names a place by its path, and means what
// lies below it too.
func (f *follower) names(place rules.Path) bool {
	return f.plan.Leads(place) && f.plan.Covers(place)
}

// guards reports whether dir is protected for itself.
func (f *follower) guards(dir rules.Path) bool {
	return f.plan.Covers(dir) || dir == rules.Path{Anchor: rules.HooksDir}
}

// join adds a path that the verdict says more of than the plan does.
func (f *follower) join(p rules.Path, verdict rules.Verdict) {
	known, covered := f.plan.Classify(p)
	more := verdict.Mode == rules.Revert && known.Mode == rules.Report && !known.Overridden
	joined := rules.Joined{Path: p, Verdict: verdict}
	if (!covered || more) && !slices.Contains(f.found.Joined, joined) {
		f.found.Joined = append(f.found.Joined, joined)
	}
}
