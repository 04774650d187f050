package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// Commit is a commit with its parents.
type Commit struct {
	ID      string
	Parents []string
}

// Step is a commit seen from one of its parents; Parent is empty for a commit
// that has none.
type Step struct{ Commit, Parent string }

var (
	// ErrRevision is returned for what names no commit.
	ErrRevision = errors.New("no commit of this repository")
	// ErrShallow is returned where a shallow clone does not have the parents of a
	// commit that is asked about.
	ErrShallow = errors.New("the history of this shallow clone ends")
)

// CommitIDs returns the ids of the commits that revisions name. A revision that
// names none has an empty id.
func (r *Repo) CommitIDs(ctx context.Context, revisions []string) ([]string, error) {
	var ask strings.Builder
	for _, revision := range revisions {
		if strings.ContainsAny(revision, "\n\x00") {
			return nil, fmt.Errorf("look up %q: %w", revision, ErrRevision)
		}
		ask.WriteString(revision + "^{commit}\n")
	}
	// git reads these from its input, where none can pass for an option.
	out, err := r.ask(ctx, []byte(ask.String()), "cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)")
	if err != nil {
		return nil, fmt.Errorf("look up revisions: %w", err)
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) != len(revisions) {
		return nil, errListing
	}
	ids := make([]string, len(revisions))
	for i, line := range lines {
		if id, kind, _, err := readObject(line); err == nil && kind == "commit" && r.IsID(id) {
			ids[i] = id
		}
	}
	return ids, nil
}

// MergeBases returns the best common ancestors of two commits; none where they
// have no common history.
func (r *Repo) MergeBases(ctx context.Context, a, b string) ([]string, error) {
	out, err := r.ask(ctx, nil, "merge-base", "--all", a, b)
	var refused *Error
	if errors.As(err, &refused) && refused.ExitCode == 1 && refused.Words == "" {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find what %s and %s have in common: %w", a, b, err)
	}
	return strings.Fields(string(out)), nil
}

// Independent returns those of commits that no other one of them is based on, in
// their order.
func (r *Repo) Independent(ctx context.Context, commits []string) ([]string, error) {
	out, err := r.ask(ctx, nil, append([]string{"merge-base", "--independent"}, commits...)...)
	if err != nil {
		return nil, fmt.Errorf("find out which commits others are based on: %w", err)
	}
	kept := strings.Fields(string(out))
	return slices.DeleteFunc(slices.Clone(commits), func(id string) bool { return !slices.Contains(kept, id) }), nil
}

// RemoteRefs returns what the references that stand for other repositories'
// branches point to, sorted, each once.
func (r *Repo) RemoteRefs(ctx context.Context) (Refs, error) {
	out, err := r.ask(ctx, nil, "for-each-ref", "--format=%(objectname)", "refs/remotes")
	if err != nil {
		return nil, fmt.Errorf("list the remote branches of %q: %w", r.Root, err)
	}
	refs := Refs(strings.Fields(string(out)))
	slices.Sort(refs)
	return slices.Compact(refs), nil
}

// Commits returns the commits that are reachable from some and from none of
// others, the newest first. ErrShallow says that the clone does not have all
// their parents.
func (r *Repo) Commits(ctx context.Context, from, not []string) ([]Commit, error) {
	var ask strings.Builder
	for _, id := range from {
		ask.WriteString(id + "\n")
	}
	for _, id := range not {
		ask.WriteString("^" + id + "\n")
	}
	out, err := r.ask(ctx, []byte(ask.String()), "rev-list", "--parents", "--stdin")
	if err != nil {
		return nil, fmt.Errorf("list commits: %w", err)
	}
	ends, err := r.shallow()
	if err != nil {
		return nil, err
	}
	var commits []Commit
	for line := range strings.Lines(string(out)) {
		ids := strings.Fields(line)
		if slices.Contains(ends, ids[0]) {
			return nil, fmt.Errorf("look at the parents of %s: %w", ids[0], ErrShallow)
		}
		commits = append(commits, Commit{ID: ids[0], Parents: ids[1:]})
	}
	return commits, nil
}

// shallow returns the commits whose parents a shallow clone does not have.
func (r *Repo) shallow() ([]string, error) {
	data, err := os.ReadFile(join(r.CommonDir, "shallow"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find out where the history of %q ends: %w", r.Root, err)
	}
	return strings.Fields(string(data)), nil
}

// StepChanges returns what every step changes, in their order.
func (r *Repo) StepChanges(ctx context.Context, steps []Step) ([][]Change, error) {
	all := make([][]Change, 0, len(steps))
	for some := range slices.Chunk(steps, commitsAtOnce) {
		changes, err := r.someStepChanges(ctx, some)
		if err != nil {
			return nil, fmt.Errorf("compare commits with their parents: %w", err)
		}
		all = append(all, changes...)
	}
	return all, nil
}

func (r *Repo) someStepChanges(ctx context.Context, steps []Step) ([][]Change, error) {
	var ask strings.Builder
	for _, step := range steps {
		ask.WriteString(strings.TrimSpace(step.Commit+" "+step.Parent) + "\n")
	}
	// A parent behind a commit stands in for its parents, and --always has git
	// name the commit also where nothing is changed: one name for each step.
	out, err := r.ask(ctx, []byte(ask.String()), append(append([]string{"diff-tree", "--stdin", "--always", "-r", "--root"}, rawDiff()...), "--")...)
	if err != nil {
		return nil, err
	}
	all := make([][]Change, 0, len(steps))
	rest := string(out)
	for _, step := range steps {
		listing, found := strings.CutPrefix(rest, step.Commit+"\x00")
		if !found {
			return nil, errListing
		}
		var changes []Change
		if changes, rest, err = readSome(nil, listing); err != nil {
			return nil, err
		}
		all = append(all, changes)
	}
	if rest != "" {
		return nil, errListing
	}
	return all, nil
}
