package check

import (
	"cage/internal/gitrepo"
)

// history is the commits that are judged, and how each follows from its
// parents.
type history struct {
	commits []gitrepo.Commit
	steps   []gitrepo.Step
	// judged are the ids of the commits.
	judged map[string]bool
}

func newHistory(commits []gitrepo.Commit) history {
	h := history{commits: commits, judged: make(map[string]bool, len(commits))}
	for _, commit := range commits {
		h.judged[commit.ID] = true
		if len(commit.Parents) == 0 {
			h.steps = append(h.steps, gitrepo.Step{Commit: commit.ID})
		}
		for _, parent := range commit.Parents {
			h.steps = append(h.steps, gitrepo.Step{Commit: commit.ID, Parent: parent})
		}
	}
	return h
}

// made returns what each commit itself changes, from what all steps change.
func (h history) made(changes [][]gitrepo.Change) [][]gitrepo.Change {
	made := make([][]gitrepo.Change, len(h.commits))
	for i, commit := range h.commits {
		parents := max(len(commit.Parents), 1)
		made[i] = h.ofMerge(commit, changes[:parents])
		changes = changes[parents:]
	}
	return made
}

// ofMerge returns what a commit changes of its own, from what it changes against
// each parent. What a merge takes over from a parent is no change of its own:
// that parent's commits made it. But a parent outside of what is judged comes
// first: a merge that does not have what such a one has changes it, also where
// it takes that over from a commit that is judged.
func (h history) ofMerge(commit gitrepo.Commit, against [][]gitrepo.Change) []gitrepo.Change {
	if len(against) == 1 {
		return against[0]
	}
	var outside [][]gitrepo.Change
	for i, parent := range commit.Parents {
		if !h.judged[parent] {
			outside = append(outside, against[i])
		}
	}
	if len(outside) > 0 {
		against = outside
	}
	return inAll(against)
}

// inAll returns the changes of the first list whose paths are in all lists.
func inAll(lists [][]gitrepo.Change) []gitrepo.Change {
	count := map[string]int{}
	for _, list := range lists {
		for _, change := range list {
			count[change.Path]++
		}
	}
	var common []gitrepo.Change
	for _, change := range lists[0] {
		if count[change.Path] == len(lists) {
			common = append(common, change)
		}
	}
	return common
}
