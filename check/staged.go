package check

import (
	"cmp"
	"context"
	"sync"

	"cage/internal/gitrepo"
	"cage/report"
	"cage/rules"
)

// Staged judges the index against HEAD. An error is a *report.Refusal.
func Staged(ctx context.Context, o Options) (*report.Check, error) {
	return run(ctx, o, report.ScopeStaged, func(c *checker) error { return c.staged(ctx) })
}

func (c *checker) staged(ctx context.Context) error {
	index, err := c.index(ctx)
	if err != nil {
		return err
	}
	changes := index.changes
	plan, err := c.plan(ctx, index.side(), []side{index.head})
	if err != nil {
		return err
	}
	if plan, err = c.withLinked(ctx, plan, index.links, changes); err != nil {
		return err
	}
	changes = concerned(plan, changes)
	if plan, err = c.settled(ctx, plan, "", changes); err != nil {
		return err
	}
	made, err := c.repo.MergedChanges(ctx, changes)
	if err != nil {
		return err
	}
	c.judge(plan, "", made)
	return nil
}

// index is what the index changes against HEAD, and what of HEAD counts.
type index struct {
	changes []gitrepo.Change
	head    side
	links   []gitrepo.Link
}

// side is the side of the index.
func (i index) side() side { return i.head.changedTo("the index", i.changes) }

// index asks git all of it at once.
func (c *checker) index(ctx context.Context) (i index, err error) {
	var errHead, errLinks error
	var asked sync.WaitGroup
	asked.Go(func() { i.head, errHead = c.sideAt(ctx, "HEAD", "HEAD") })
	asked.Go(func() { i.links, errLinks = c.repo.Links(ctx, "HEAD") })
	i.changes, err = c.repo.StagedChanges(ctx)
	asked.Wait()
	return i, cmp.Or(err, errHead, errLinks)
}

// concerned returns the changes that rules of the plan are about. It is asked of
// a draft, which knows every rule, so that nothing is looked at twice that no
// rule knows.
func concerned(plan *rules.Plan, changes []gitrepo.Change) []gitrepo.Change {
	var some []gitrepo.Change
	for _, change := range changes {
		if _, ok := plan.ClassifyRecorded(rules.Path{Anchor: rules.Root, Rel: change.Path}); ok {
			some = append(some, change)
		}
	}
	return some
}

// settled completes the plan with the paths of changes that concern it and,
// where an override has to be held against all that exists, with those of a
// tree, or of the index where treeish is empty. What changes lead to is what
// stands there.
func (c *checker) settled(ctx context.Context, plan *rules.Plan, treeish string, changes []gitrepo.Change) (*rules.Plan, error) {
	var stand, gone []string
	for _, change := range changes {
		if change.After.Mode == 0 && !change.Unmerged {
			gone = append(gone, change.Path)
		} else {
			stand = append(stand, change.Path)
		}
	}
	if len(c.Overrides) > 0 {
		all, err := c.repo.Paths(ctx, treeish)
		if err != nil {
			return nil, err
		}
		stand = append(stand, all...)
	}
	return c.settle(plan, covered(plan, stand), covered(plan, gone)...)
}
