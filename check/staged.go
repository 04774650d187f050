package check

import (
	"context"

	"cage/internal/gitrepo"
	"cage/report"
	"cage/rules"
)

// Staged judges the index against HEAD. An error is a *report.Refusal.
func Staged(ctx context.Context, o Options) (*report.Check, error) {
	c, err := open(ctx, o, report.ScopeStaged)
	if err == nil {
		err = c.staged(ctx)
	}
	if err != nil {
		return nil, refuse(err)
	}
	return c.finish(), nil
}

func (c *checker) staged(ctx context.Context) error {
	head, changes, err := c.index(ctx)
	if err != nil {
		return err
	}
	plan, err := c.plan(ctx, head.changedTo("the index", changes), []side{head})
	if err != nil {
		return err
	}
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

// index asks git for the rules of HEAD and for what the index changes, side by
// side.
func (c *checker) index(ctx context.Context) (head side, changes []gitrepo.Change, err error) {
	type answer struct {
		side side
		err  error
	}
	base := make(chan answer, 1)
	go func() {
		side, err := c.sideAt(ctx, "HEAD", "HEAD")
		base <- answer{side, err}
	}()
	changes, err = c.repo.StagedChanges(ctx)
	told := <-base
	if err == nil {
		err = told.err
	}
	return told.side, changes, err
}

// settled completes the plan with the changed paths and, where an override has
// to be held against all that exists, with the paths of a tree, or of the index
// where treeish is empty.
func (c *checker) settled(ctx context.Context, plan *rules.Plan, treeish string, changes []gitrepo.Change) (*rules.Plan, error) {
	paths := make([]string, 0, len(changes))
	for _, change := range changes {
		paths = append(paths, change.Path)
	}
	if len(c.Overrides) > 0 {
		all, err := c.repo.Paths(ctx, treeish)
		if err != nil {
			return nil, err
		}
		paths = append(paths, all...)
	}
	return c.settle(plan, covered(plan, paths))
}
