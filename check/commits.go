package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"cage/internal/gitrepo"
	"cage/report"
)

// Range judges every commit that is reachable from B and not from A, for a
// range spelled A..B, and by the rules of A too; for A...B by those of what
// both have in common instead, as a pull request is shown. B is HEAD where it is
// left out. An error is a *report.Refusal.
func Range(ctx context.Context, o Options, spelled string) (*report.Check, error) {
	return run(ctx, o, report.ScopeRange, func(c *checker) error {
		c.doc.Range = &spelled
		return c.rangeOf(ctx, spelled)
	})
}

func (c *checker) rangeOf(ctx context.Context, spelled string) error {
	from, to, symmetric, err := ends(spelled)
	if err != nil {
		return err
	}
	ids, err := c.repo.CommitIDs(ctx, []string{from, to})
	if err != nil {
		return c.cutOff(err)
	}
	for i, name := range []string{from, to} {
		if ids[i] == "" {
			return c.cutOff(fmt.Errorf("%s: %w", report.Quote(name), gitrepo.ErrRevision))
		}
	}
	bases := ids[:1]
	if symmetric {
		if bases, err = c.repo.MergeBases(ctx, ids[0], ids[1]); err != nil {
			return err
		}
		if len(bases) == 0 {
			return report.Refuse(codeRevision, "write A..B to judge all commits of B that A has not; in a shallow clone, fetch more of the history first: git fetch --unshallow",
				fmt.Errorf("%s and %s have no merge base", report.Quote(from), report.Quote(to)))
		}
	}
	commits, err := c.repo.Commits(ctx, ids[1:], bases)
	if err != nil {
		return c.cutOff(err)
	}
	return c.judgeCommits(ctx, commits, ids[1:], bases)
}

// ends takes a range apart. What is left out in front is no HEAD, as it is to
// git: it is more likely a variable of somebody's script that was empty, and
// nothing would be judged.
func ends(spelled string) (from, to string, symmetric bool, err error) {
	from, to, found := strings.Cut(spelled, "..")
	if !found || from == "" {
		return "", "", false, report.Refuse(codeRevision, "write A..B or A...B; for one commit C: C^..C",
			fmt.Errorf("%s is no range that begins anywhere", report.Quote(spelled)))
	}
	to, symmetric = strings.CutPrefix(to, ".")
	if to == "" {
		to = "HEAD"
	}
	return from, to, symmetric, nil
}

// cutOff says what to do where commits are missing.
func (c *checker) cutOff(err error) error {
	switch {
	case errors.Is(err, gitrepo.ErrShallow):
		return report.Refuse(codeMissing, "fetch the history: git fetch --unshallow, or clone with the whole of it", err)
	case errors.Is(err, gitrepo.ErrRevision):
		return report.Refuse(codeRevision, "name a commit, branch or tag that is here; one of another repository has to be fetched first", err)
	default:
		return err
	}
}

// PrePush judges the commits that a push would send, by what git tells a
// pre-push hook on its standard input. Left out is what the other side has, as
// far as its branches are known here. An error is a *report.Refusal.
func PrePush(ctx context.Context, o Options, input io.Reader) (*report.Check, error) {
	return run(ctx, o, report.ScopePrePush, func(c *checker) error { return c.push(ctx, input) })
}

func (c *checker) push(ctx context.Context, input io.Reader) error {
	told, err := io.ReadAll(input)
	if err != nil {
		return err
	}
	sent, there, err := c.repo.Pushed(told)
	if err != nil {
		return report.Refuse(codeInput, "call it from a pre-push hook and leave it the hook's standard input",
			fmt.Errorf("standard input is %w", err))
	}
	if len(sent) == 0 {
		return nil
	}
	if have, err := c.repo.Have(ctx, sent); err != nil || !have {
		return c.cutOff(cmp.Or(err, fmt.Errorf("what the push would send: %w", gitrepo.ErrRevision)))
	}
	// Only commits count; of what the other side has, only those that are here.
	if sent, err = c.known(ctx, sent); err != nil {
		return err
	}
	if there, err = c.known(ctx, there); err != nil || len(sent) == 0 {
		return err
	}
	remote, err := c.repo.RemoteRefs(ctx)
	if err != nil {
		return err
	}
	commits, err := c.repo.Commits(ctx, sent, append(slices.Clone(there), remote...))
	if err != nil {
		return c.cutOff(err)
	}
	return c.judgeCommits(ctx, commits, sent, there)
}

// known returns the ids of the commits that ids name and that are here.
func (c *checker) known(ctx context.Context, ids []string) ([]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	commits, err := c.repo.CommitIDs(ctx, ids)
	return slices.DeleteFunc(commits, func(id string) bool { return id == "" }), err
}

// judgeCommits judges every one of commits: by the rules of the tips and of the
// bases, and by all that stood in between.
func (c *checker) judgeCommits(ctx context.Context, commits []gitrepo.Commit, tips, bases []string) error {
	c.doc.Commits = len(commits)
	if len(commits) == 0 {
		return c.nothing(ctx, tips)
	}
	steps := gitrepo.Steps(commits)
	changes, err := c.repo.StepChanges(ctx, steps)
	if err != nil {
		return err
	}
	sides, err := c.sidesOf(ctx, tips, bases, steps, changes)
	if err != nil {
		return err
	}
	links, err := c.linksOf(ctx, apart(slices.Concat(tips, bases), steps))
	if err != nil {
		return err
	}
	plan, err := c.plan(ctx, sides[0], sides[1:])
	if err != nil {
		return err
	}
	if plan, err = c.withLinked(ctx, plan, links, slices.Concat(changes...)); err != nil {
		return err
	}
	for i := range changes {
		changes[i] = concerned(plan, changes[i])
	}
	made, err := c.repo.Made(ctx, commits, changes)
	if err != nil {
		return err
	}
	last, err := c.leadingTo(ctx, tips[0], slices.Concat(made...))
	if err != nil {
		return err
	}
	if plan, err = c.settled(ctx, plan, tips[0], last); err != nil {
		return err
	}
	for i, commit := range commits {
		c.judge(plan, commit.ID, made[i])
	}
	return nil
}

// leadingTo returns changes with what they led to in the end, at a tip.
func (c *checker) leadingTo(ctx context.Context, tip string, changes []gitrepo.Change) ([]gitrepo.Change, error) {
	if len(changes) == 0 {
		return nil, nil
	}
	paths := make([]string, len(changes))
	for i, change := range changes {
		paths[i] = change.Path
	}
	at, err := c.repo.At(ctx, tip, paths)
	for i := range changes {
		changes[i].After = at[changes[i].Path]
	}
	return changes, err
}

// nothing judges no commit, by rules that have to be valid all the same.
func (c *checker) nothing(ctx context.Context, tips []string) error {
	if len(tips) == 0 {
		return nil
	}
	tip, err := c.sideAt(ctx, tips[0], tips[0])
	if err != nil {
		return err
	}
	plan, err := c.plan(ctx, tip, nil)
	if err != nil {
		return err
	}
	_, err = c.settled(ctx, plan, tips[0], nil)
	return err
}

// apart returns those of commits that no steps lead between: of all that they
// connect the first. Where the others differ from it, steps change it.
func apart(commits []string, steps []gitrepo.Step) []string {
	next := map[string]string{}
	end := func(id string) string {
		for to, further := next[id]; further; to, further = next[id] {
			if beyond, further := next[to]; further {
				next[id] = beyond
			}
			id = to
		}
		return id
	}
	for _, step := range steps {
		if from, to := end(step.Parent), end(step.Commit); from != to {
			next[from] = to
		}
	}
	var some []string
	ends := map[string]bool{}
	for _, id := range commits {
		if last := end(id); !ends[last] {
			ends[last] = true
			some = append(some, id)
		}
	}
	return some
}

// linksOf returns the links that commits have.
func (c *checker) linksOf(ctx context.Context, commits []string) ([]gitrepo.Link, error) {
	var links []gitrepo.Link
	for _, id := range commits {
		some, err := c.repo.Links(ctx, id)
		if err != nil {
			return nil, err
		}
		links = append(links, some...)
	}
	return links, nil
}

// sidesOf returns the sides whose rules hold, the first tip's first.
func (c *checker) sidesOf(ctx context.Context, tips, bases []string, steps []gitrepo.Step, changes [][]gitrepo.Change) ([]side, error) {
	var sides []side
	for _, id := range slices.Concat(tips, bases) {
		side, err := c.sideAt(ctx, id, id)
		if err != nil {
			return nil, err
		}
		sides = append(sides, side)
	}
	for i, step := range steps {
		if slices.ContainsFunc(changes[i], func(change gitrepo.Change) bool { return slices.Contains(ruleFiles(), change.Path) }) {
			for _, id := range []string{step.Parent, step.Commit} {
				if id == "" {
					continue
				}
				side, err := c.sideAt(ctx, id, id)
				if err != nil {
					return nil, err
				}
				sides = append(sides, side)
			}
		}
	}
	return sides, nil
}
