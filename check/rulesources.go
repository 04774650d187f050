package check

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"cage/internal/anchors"
	"cage/internal/gitrepo"
	"cage/report"
	"cage/rules"
)

// side is one side of a change: what git records there of the files that rules
// are read from.
type side struct {
	// name is what messages call it.
	name string
	// records are by the name of the file; nothing stands where there is none.
	records map[string]gitrepo.Record
}

// ruleFiles are the names of the files that rules are read from.
func ruleFiles() []string { return []string{rules.ConfigFile, rules.ManifestYAML, rules.ManifestJSON} }

// sideAt is the side of a commit.
func (c *checker) sideAt(ctx context.Context, treeish, name string) (side, error) {
	records, err := c.repo.At(ctx, treeish, ruleFiles())
	return side{name: name, records: records}, err
}

// changedTo returns the side that changes lead to.
func (s side) changedTo(name string, changes []gitrepo.Change) side {
	to := side{name: name, records: maps.Clone(s.records)}
	for _, change := range changes {
		if !slices.Contains(ruleFiles(), change.Path) {
			continue
		}
		if delete(to.records, change.Path); change.After.Mode != 0 {
			to.records[change.Path] = change.After
		}
	}
	return to
}

// same reports whether two sides have the same rules.
func (s side) same(other side) bool { return maps.Equal(s.records, other.records) }

// sources reads the files of a side.
func (c *checker) sources(ctx context.Context, s side) (rules.Sources, error) {
	var ids []string
	for _, name := range ruleFiles() {
		record, stands := s.records[name]
		if !stands {
			continue
		}
		if record.Mode != gitrepo.ModeFile && record.Mode != gitrepo.ModeExecutable {
			return rules.Sources{}, rules.Unreadable(name, errors.New("git records no regular file there"))
		}
		ids = append(ids, record.ID)
	}
	contents, err := c.repo.Blobs(ctx, ids, rules.MaxFile)
	if err != nil {
		return rules.Sources{}, err
	}
	file := func(name string) rules.File {
		record, stands := s.records[name]
		return rules.File{Present: stands, Data: contents[record.ID]}
	}
	return rules.Sources{
		Config: file(rules.ConfigFile), ManifestYAML: file(rules.ManifestYAML), ManifestJSON: file(rules.ManifestJSON),
	}, nil
}

// plan makes the plan of all sides together. The new side has to be valid; of
// the others, one that is not is left out aloud: a change may repair it.
func (c *checker) plan(ctx context.Context, new side, others []side) (*rules.Plan, error) {
	sources, err := c.sources(ctx, new)
	if err != nil {
		return nil, err
	}
	return c.planOf(ctx, sources, slices.DeleteFunc(slices.Clone(others), new.same))
}

// planOf is plan for a new side that is read already.
func (c *checker) planOf(ctx context.Context, new rules.Sources, others []side) (*rules.Plan, error) {
	if err := anchors.OverridesFrom(c.Dir, c.layout.Root, c.Overrides); err != nil {
		return nil, err
	}
	in := rules.Inputs{
		Layout: c.layout, Git: c.git, Overrides: c.Overrides, Approved: !c.guarded,
		Config: new.Config, ManifestYAML: new.ManifestYAML, ManifestJSON: new.ManifestJSON,
	}
	var seen []side
	for _, other := range others {
		if slices.ContainsFunc(seen, other.same) {
			continue
		}
		seen = append(seen, other)
		sources, err := c.earlier(ctx, other)
		if err != nil {
			return nil, err
		}
		in.Earlier = append(in.Earlier, sources...)
	}
	plan, err := rules.New(in)
	if err != nil {
		return nil, c.refusedRules(err)
	}
	return plan, nil
}

// earlier reads the files of a side that need not be valid; nothing where they
// are not.
func (c *checker) earlier(ctx context.Context, s side) ([]rules.Sources, error) {
	sources, err := c.sources(ctx, s)
	if err == nil {
		_, err = rules.New(rules.Inputs{Layout: c.layout, Git: c.git,
			Config: sources.Config, ManifestYAML: sources.ManifestYAML, ManifestJSON: sources.ManifestJSON})
	}
	var invalid *rules.Error
	if errors.As(err, &invalid) {
		c.doc.Warnings = append(c.doc.Warnings, fmt.Sprintf("the rules of %s are not valid and count for nothing: %v", s.name, invalid))
		return nil, nil
	}
	return []rules.Sources{sources}, err
}

// refusedRules says why an override is refused that a session stands in the way
// of.
func (c *checker) refusedRules(err error) error {
	var invalid *rules.Error
	if c.guarded && errors.As(err, &invalid) && invalid.Code == rules.CodeOverride {
		return report.Refuse(string(invalid.Code), "wait until the session that guards this root has ended, or leave it out", invalid)
	}
	return err
}

// settle completes the plan with the paths that exist and that it classifies,
// and with those that a change takes away.
func (c *checker) settle(plan *rules.Plan, found []rules.Path, gone ...rules.Path) (*rules.Plan, error) {
	settled, err := plan.Settle(found, gone...)
	if err != nil {
		return nil, c.refusedRules(err)
	}
	return settled, nil
}

// covered returns those paths of the root that the plan classifies.
func covered(plan *rules.Plan, paths []string) []rules.Path {
	var found []rules.Path
	for _, path := range paths {
		if at := (rules.Path{Anchor: rules.Root, Rel: path}); classified(plan, at) {
			found = append(found, at)
		}
	}
	return found
}

func classified(plan *rules.Plan, path rules.Path) bool {
	_, ok := plan.Classify(path)
	return ok
}

// judge adds a finding for each change that a rule covers. Commit is empty where
// there is none yet.
func (c *checker) judge(plan *rules.Plan, commit string, changes []gitrepo.Change) {
	for _, change := range changes {
		path := rules.Path{Anchor: rules.Root, Rel: change.Path}
		verdict, ok := plan.ClassifyRecorded(path)
		if !ok || !c.within(path) {
			continue
		}
		finding := report.CheckFinding{
			Name: report.NameOf(change.Path), Kind: kindOf(change),
			Rule: verdict.Rule, Source: verdict.Source, Counts: verdict.Mode == rules.Revert, Overridden: verdict.Overridden,
		}
		if commit != "" {
			finding.Commit = &commit
		}
		finding.ObjectBefore, finding.ModeBefore = spell(change.Before)
		finding.ObjectAfter, finding.ModeAfter = spell(change.After)
		c.doc.Findings = append(c.doc.Findings, finding)
	}
}

func kindOf(change gitrepo.Change) report.Kind {
	switch {
	case change.Before.Mode == 0:
		return report.Added
	case change.After.Mode == 0 && !change.Unmerged:
		return report.Deleted
	default:
		return report.Modified
	}
}

// spell spells a record for a document.
func spell(record gitrepo.Record) (id, mode *string) {
	if record.Mode == 0 {
		return nil, nil
	}
	bits := fmt.Sprintf("%06o", record.Mode)
	if record.ID == "" {
		return nil, &bits
	}
	return &record.ID, &bits
}
