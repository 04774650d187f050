package gitrepo

import (
	"context"
	"slices"
)

// Steps returns every one of commits seen from each of its parents, in their
// order.
func Steps(commits []Commit) []Step {
	var steps []Step
	for _, commit := range commits {
		if len(commit.Parents) == 0 {
			steps = append(steps, Step{Commit: commit.ID})
		}
		for _, parent := range commit.Parents {
			steps = append(steps, Step{Commit: commit.ID, Parent: parent})
		}
	}
	return steps
}

// Made returns what each of commits changes of its own, from what their Steps
// change. What a merge takes over from a parent is no change of its own: that
// parent's commits made it. But a parent that is none of commits comes first: a
// merge that does not have what such a one has changes it, also where it takes
// that over from one of commits. And one that another parent is based on is none
// to take anything over from: who names an old commit as a second parent cannot
// have its files back that way.
func (r *Repo) Made(ctx context.Context, commits []Commit, changes [][]Change) ([][]Change, error) {
	among := make(map[string]bool, len(commits))
	for _, commit := range commits {
		among[commit.ID] = true
	}
	made := make([][]Change, len(commits))
	for i, commit := range commits {
		parents := max(len(commit.Parents), 1)
		against := changes[:parents]
		changes = changes[parents:]
		if parents > 1 && len(slices.Concat(against...)) > 0 {
			independent, err := r.Independent(ctx, commit.Parents)
			if err != nil {
				return nil, err
			}
			commit, against = commit.only(independent, against)
		}
		made[i] = commit.made(against, among)
	}
	return made, nil
}

// only returns the commit with no other parents than some, and what it changes
// against those.
func (c Commit) only(parents []string, against [][]Change) (Commit, [][]Change) {
	only := Commit{ID: c.ID}
	var changes [][]Change
	for i, parent := range c.Parents {
		if slices.Contains(parents, parent) {
			only.Parents, changes = append(only.Parents, parent), append(changes, against[i])
		}
	}
	return only, changes
}

// made returns what the commit changes of its own, from what it changes against
// each parent.
func (c Commit) made(against [][]Change, among map[string]bool) []Change {
	if len(against) == 1 {
		return against[0]
	}
	var outside [][]Change
	for i, parent := range c.Parents {
		if !among[parent] {
			outside = append(outside, against[i])
		}
	}
	if len(outside) > 0 {
		against = outside
	}
	return inAll(against)
}

// inAll returns the changes of the first list whose paths are in all lists.
func inAll(lists [][]Change) []Change {
	count := map[string]int{}
	for _, list := range lists {
		for _, change := range list {
			count[change.Path]++
		}
	}
	var common []Change
	for _, change := range lists[0] {
		if count[change.Path] == len(lists) {
			common = append(common, change)
		}
	}
	return common
}
