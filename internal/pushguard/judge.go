package pushguard

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"cage/internal/gitrepo"
	"cage/rules"
)

// Judge says which of the commits that go out change protected files.
type Judge struct {
	Repo *gitrepo.Repo
	Plan *rules.Plan
	// Start is what references pointed to when the session began. What they
	// reach was there before.
	Start gitrepo.Refs
	// Logged is what git had noted of pushes by then.
	Logged Logged
}

// Finding is a change of a protected file by a commit.
type Finding struct {
	// Commit is the commit's object id.
	Commit string
	// Path is relative to the root, in the bytes of its name.
	Path string
	Rule rules.Rule
}

var errMissing = errors.New("what it would send is not in the session's repository")

// Push judges a push by what git says of it to a pre-push hook: the commits that
// it would send and that neither the start of the session nor another
// repository has, as far as the latter's branches are known here.
func (j Judge) Push(ctx context.Context, pushed []byte) ([]Finding, error) {
	sent, there, err := j.Repo.Pushed(pushed)
	if err != nil {
		return nil, fmt.Errorf("what git said of the push is not understood: it is %w", err)
	}
	if len(sent) == 0 {
		return nil, nil
	}
	if err := j.complete(ctx, sent); err != nil {
		return nil, err
	}
	remote, err := j.Repo.RemoteRefs(ctx)
	if err != nil {
		return nil, err
	}
	return j.outgoing(ctx, sent, slices.Concat(there, remote))
}

// complete refuses what is not in the repository: a caller's environment can
// have git take its objects from elsewhere.
func (j Judge) complete(ctx context.Context, ids []string) error {
	have, err := j.Repo.Have(ctx, ids)
	if err == nil && !have {
		err = errMissing
	}
	return err
}

// outgoing judges the commits that are reachable from sent, and neither from the
// start nor from any of not.
func (j Judge) outgoing(ctx context.Context, sent, not []string) ([]Finding, error) {
	// Tags of files are none, and of what others have only what is here counts.
	from, err := j.commits(ctx, sent)
	if err != nil || len(from) == 0 {
		return nil, err
	}
	but, err := j.commits(ctx, slices.Concat(j.Start, not))
	if err != nil {
		return nil, err
	}
	commits, err := j.Repo.Commits(ctx, from, but)
	if err != nil {
		return nil, err
	}
	changes, err := j.Repo.StepChanges(ctx, gitrepo.Steps(commits))
	if err != nil {
		return nil, err
	}
	for i := range changes {
		changes[i] = slices.DeleteFunc(changes[i], func(change gitrepo.Change) bool {
			_, protected := j.verdict(change)
			return !protected
		})
	}
	made, err := j.Repo.Made(ctx, commits, changes)
	if err != nil {
		return nil, err
	}
	var findings []Finding
	for i, changes := range made {
		for _, change := range changes {
			verdict, _ := j.verdict(change)
			findings = append(findings, Finding{Commit: commits[i].ID, Path: change.Path, Rule: verdict.Rule})
		}
	}
	return findings, nil
}

// commits returns the commits that ids name and that are here.
func (j Judge) commits(ctx context.Context, ids []string) ([]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	commits, err := j.Repo.CommitIDs(ctx, ids)
	return slices.DeleteFunc(commits, func(id string) bool { return id == "" }), err
}

// verdict returns what the plan says of a change, and whether it protects what
// is changed.
func (j Judge) verdict(change gitrepo.Change) (verdict rules.Verdict, protected bool) {
	verdict, ok := j.Plan.ClassifyRecorded(rules.Path{Anchor: rules.Root, Rel: change.Path})
	return verdict, ok && verdict.Mode == rules.Revert
}
