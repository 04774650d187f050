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
	Joined []Joined
	// Astray are the places that links lead to what is not protected.
	Astray []Astray
}

// Joined is an addition to the plan, and how a link leads there.
type Joined struct {
	rules.Joined
	// From is the protected place that leads there.
	From rules.Path
	// OnTheWay says that it is a link that From leads by way of, not the file at
	// the end.
	OnTheWay bool
	// Direct says that From is a link, and the only one.
	Direct bool
}

// Additions are what the plan needs to know of Joined.
func (l Links) Additions() []rules.Joined {
	var additions []rules.Joined
	for _, joined := range l.Joined {
		additions = append(additions, joined.Joined)
	}
	return additions
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
			f.join(Joined{Joined: rules.Joined{Path: p, Verdict: verdict}, From: p, OnTheWay: true})
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
		f.join(Joined{Joined: rules.Joined{Path: f.layout.Locate(link), Verdict: verdict}, From: place, OnTheWay: true})
	}
	at := f.layout.Locate(end)
	if info, err := os.Lstat(end); err == nil && info.Mode().IsRegular() {
		direct := len(links) == 1 && f.layout.Locate(links[0]) == place
		f.join(Joined{Joined: rules.Joined{Path: at, Verdict: verdict}, From: place, Direct: direct})
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
func (f *follower) join(joined Joined) {
	known, covered := f.plan.Classify(joined.Path)
	more := joined.Verdict.Mode == rules.Revert && known.Mode == rules.Report && !known.Overridden
	same := func(other Joined) bool { return other.Joined == joined.Joined }
	if (!covered || more) && !slices.ContainsFunc(f.found.Joined, same) {
		f.found.Joined = append(f.found.Joined, joined)
	}
}
