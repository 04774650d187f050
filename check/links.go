package check

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"cage/internal/gitrepo"
	"cage/rules"
)

// Bounds of the ways through links.
const (
	maxTarget = 4096   // bytes, as in the kernel
	maxHops   = 40     // as in the kernel
	maxWays   = 10_000 // in one check
)

var errWays = errors.New("protected links lead on in more ways than can be followed")

// withLinked returns the plan with the files that protected links lead to, as a
// session has them: by those links that trees have, and by those that changes
// bring or take away.
func (c *checker) withLinked(ctx context.Context, plan *rules.Plan, links []gitrepo.Link, changes []gitrepo.Change) (*rules.Plan, error) {
	l := linked{ids: map[string][]string{}, seen: map[string]bool{}}
	for _, link := range links {
		l.add(link.Path, gitrepo.Record{Mode: gitrepo.ModeLink, ID: link.ID})
	}
	for _, change := range changes {
		l.add(change.Path, change.Before)
		l.add(change.Path, change.After)
	}
	// A file that several links lead to has the rule of the first.
	for _, link := range slices.Sorted(maps.Keys(l.ids)) {
		verdict, ok := plan.Classify(rules.Path{Anchor: rules.Root, Rel: link})
		if ok && verdict.Mode == rules.Revert {
			l.ways = append(l.ways, way{link, verdict})
		}
	}
	var joined []rules.Joined
	for range maxHops {
		if len(l.ways) == 0 {
			break
		}
		if err := l.follow(ctx, c.repo.Repo); err != nil {
			return nil, err
		}
		for _, w := range l.ways {
			joined = append(joined, rules.Joined{Path: rules.Path{Anchor: rules.Root, Rel: w.path}, Verdict: w.verdict})
		}
	}
	if len(joined) == 0 {
		return plan, nil
	}
	return plan.With(joined), nil
}

// linked finds out where links lead to, by what git records of them.
type linked struct {
	// ids are the ids of targets, by the path of the link: one for each version.
	ids map[string][]string
	// ways are where the links lead that were followed last.
	ways []way
	seen map[string]bool
}

// way is a path that a protected link leads to, with the link's verdict.
type way struct {
	path    string
	verdict rules.Verdict
}

// add adds a version of a link, if it is one.
func (l *linked) add(link string, record gitrepo.Record) {
	if record.Mode == gitrepo.ModeLink && !slices.Contains(l.ids[link], record.ID) {
		l.ids[link] = append(l.ids[link], record.ID)
	}
}

// follow goes one link further on every way; one without a link ends.
func (l *linked) follow(ctx context.Context, repo *gitrepo.Repo) error {
	var ids []string
	for _, w := range l.ways {
		ids = append(ids, l.ids[l.head(w.path)]...)
	}
	slices.Sort(ids)
	targets, err := repo.Blobs(ctx, slices.Compact(ids), maxTarget)
	if err != nil {
		return err
	}
	var further []way
	for _, w := range l.ways {
		head := l.head(w.path)
		for _, id := range l.ids[head] {
			next, inside := leads(head, string(targets[id]))
			next += strings.TrimPrefix(w.path, head)
			if inside && !l.seen[next] {
				l.seen[next] = true
				further = append(further, way{next, w.verdict})
			}
		}
	}
	if len(l.seen) > maxWays {
		return errWays
	}
	l.ways = further
	return nil
}

// head returns the first link on a path, or nothing where there is none.
func (l *linked) head(way string) string {
	for end := range len(way) + 1 {
		if (end == len(way) || way[end] == '/') && len(l.ids[way[:end]]) > 0 {
			return way[:end]
		}
	}
	return ""
}

// leads returns the path in the root that a link leads to, and whether it is in
// the root.
func leads(link, target string) (string, bool) {
	to := path.Join(path.Dir(link), target)
	outside := path.IsAbs(target) || to == "." || to == ".." || strings.HasPrefix(to, "../") || strings.ContainsRune(to, 0)
	return to, !outside
}
