package gitrepo

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
// that over from one of commits.
func Made(commits []Commit, changes [][]Change) [][]Change {
	among := make(map[string]bool, len(commits))
	for _, commit := range commits {
		among[commit.ID] = true
	}
	made := make([][]Change, len(commits))
	for i, commit := range commits {
		parents := max(len(commit.Parents), 1)
		made[i] = commit.made(changes[:parents], among)
		changes = changes[parents:]
	}
	return made
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
