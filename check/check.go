// Package check judges changes by the rules before or after they are
// committed: what is staged, the commits of a range or of a push, and what the
// tool of a coding agent is about to do.
//
// It promises that nothing is changed, neither index nor work tree nor anything
// of git's, that nothing is fetched and that nothing runs that the repository
// configures. A change is judged by the rules of all its sides together, so
// that it cannot drop the rule it falls under.
//
// What it cannot do: it sees what git records, and only where it is asked. Who
// commits with --no-verify is not asked.
package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cage/internal/anchors"
	"cage/internal/gitrepo"
	"cage/internal/physical"
	"cage/internal/program"
	"cage/report"
	"cage/rules"
)

// Options are what a caller can ask of every check.
type Options struct {
	// Dir is the directory that the check is about and that Paths are relative
	// to; it is absolute.
	Dir string
	// SearchPath is where git is looked for, the value of a PATH variable.
	SearchPath string
	// Paths narrow the findings to what they are and hold; none narrows nothing.
	Paths []string
	// Overrides are paths whose changes a person lets through. They may name
	// `.cage.yaml` and tracked hooks, unless a session guards the root.
	Overrides []string
	// Guarded reports whether a session guards the root of a layout, or is the
	// caller. It is asked where that counts.
	Guarded func(rules.Layout) (bool, error)
}

// The codes of refusals that no other package has cause for.
const (
	codeRevision = "GXT_CAGE_REVISION_INVALID"
	codeMissing  = "GXT_CAGE_OBJECTS_MISSING"
	codeInput    = "GXT_CAGE_INPUT_INVALID"
)

// NoDirectory refuses a caller whose current directory cannot be had.
func NoDirectory(cause error) *report.Refusal {
	return report.Refuse(report.CodeRoot, "change into a directory that exists and that you may enter", fmt.Errorf("find the current directory: %w", cause))
}

// refuse makes a Refusal of any error.
func refuse(err error) *report.Refusal {
	var already *report.Refusal
	var invalid *rules.Error
	switch {
	case errors.As(err, &already):
		return already
	case errors.As(err, &invalid):
		return report.Refuse(string(invalid.Code), ruleHint(invalid), invalid)
	case errors.Is(err, gitrepo.ErrMissing):
		return report.Refuse(codeMissing, "in a partial clone fetch all but large files: git fetch --refetch --filter=blob:limit=1m",
			fmt.Errorf("what has to be looked at is not here, and nothing is fetched: %w", err))
	default:
		return report.Refuse(report.CodeGit, gitrepo.Hint(err), err)
	}
}

func ruleHint(invalid *rules.Error) string {
	if invalid.Hint != "" {
		return invalid.Hint
	}
	return "correct " + invalid.File
}

// checker is one check.
type checker struct {
	Options
	repo   *gitrepo.Found
	layout rules.Layout
	git    rules.Git
	// guarded says that a session guards the root; known where there are overrides.
	guarded bool
	only    []rules.Path
	doc     report.Check
}

// open finds the repository.
func open(ctx context.Context, o Options, scope report.CheckScope) (*checker, error) {
	c := &checker{Options: o, doc: report.Check{Scope: scope, Overrides: o.Overrides}}
	var err error
	if c.Dir, err = filepath.EvalSymlinks(o.Dir); err != nil {
		return nil, report.Refuse(report.CodeRoot, "change into a directory that exists and that you may enter", err)
	}
	outside, err := repositoryAbove(c.Dir)
	if err != nil {
		return nil, report.Refuse(report.CodeRoot, "make the directories above readable", err)
	}
	git, err := program.Find("git", o.SearchPath, outside)
	if err != nil {
		return nil, report.Refuse(report.CodeGit, "install git, or have PATH lead to one outside the repository", err)
	}
	if c.repo, err = gitrepo.DiscoverCalled(ctx, program.Exec, git, c.Dir); err != nil {
		return nil, err
	}
	config, err := c.repo.Config(ctx)
	if err != nil {
		return nil, err
	}
	c.layout, c.git = anchors.Of(c.repo.Repo, config)
	c.doc.Root = c.layout.Root
	if len(c.Overrides) > 0 {
		if c.guarded, err = c.isGuarded(); err != nil {
			return nil, err
		}
	}
	return c, c.narrow()
}

func (c *checker) isGuarded() (bool, error) {
	guarded, err := c.Guarded(c.layout)
	if err != nil {
		return false, report.Refuse(report.CodeHost, "see to what the system says above", err)
	}
	return guarded, nil
}

// repositoryAbove returns the directory that no program is taken from: the one
// that holds the nearest `.git`; empty where there is none.
func repositoryAbove(dir string) (string, error) {
	dotGit, inside, err := gitrepo.DotGitAbove(dir)
	if err != nil || !inside {
		return "", err
	}
	return filepath.Dir(dotGit), nil
}

// narrow places the paths that narrow the findings.
func (c *checker) narrow() error {
	for _, path := range c.Paths {
		abs := path
		if !filepath.IsAbs(abs) {
			abs = c.Dir + "/" + path
		}
		abs, err := placed(abs)
		if err != nil {
			return err
		}
		place := c.layout.Locate(abs)
		if place.Anchor != rules.Root {
			return report.Refuse(codeInput, "name paths inside "+report.Quote(c.layout.Root),
				fmt.Errorf("the path %s lies outside the repository's work tree", report.Quote(path)))
		}
		c.only = append(c.only, place)
		c.doc.Paths = append(c.doc.Paths, report.NameOf(spelled(place, path, abs)))
	}
	if slices.Contains(c.only, rules.Path{Anchor: rules.Root}) {
		c.only, c.doc.Paths = nil, nil // all of the root
	}
	return nil
}

// spelled is a path that narrows the findings as people read it, that of a
// directory with a slash at the end. Of what does not stand there the caller has
// the say, as given.
func spelled(place rules.Path, given, abs string) string {
	info, err := os.Lstat(abs)
	if err == nil && info.IsDir() || err != nil && strings.HasSuffix(given, "/") {
		return place.Rel + "/"
	}
	return place.Rel
}

// placed returns a path without links in the directories that lead to it. Its
// last name is kept: git records a link as itself.
func placed(path string) (string, error) {
	path = strings.TrimRight(path, "/")
	dir, name := path[:strings.LastIndexByte(path, '/')+1], path[strings.LastIndexByte(path, '/')+1:]
	switch name {
	case "", ".", "..":
		dir, name = path+"/", ""
	}
	dir, err := physical.Path(dir)
	if err != nil {
		return "", unclearPath(path, err)
	}
	return filepath.Join(dir, name), nil
}

func unclearPath(path string, cause error) error {
	return report.Refuse(codeInput, "name it in another way", fmt.Errorf("where %s leads is not clear: %w", report.Quote(path), cause))
}

// within reports whether a path is one that the check was narrowed to.
func (c *checker) within(path rules.Path) bool {
	for _, only := range c.only {
		if path.Within(only) {
			return true
		}
	}
	return len(c.only) == 0
}

// run opens the repository, has look find what is changed there, and judges
// that. An error is a *report.Refusal.
func run(ctx context.Context, o Options, scope report.CheckScope, look func(*checker) error) (*report.Check, error) {
	c, err := open(ctx, o, scope)
	if err == nil {
		err = look(c)
	}
	if err != nil {
		return nil, refuse(err)
	}
	c.doc.Judge()
	return &c.doc, nil
}

// HooksFolder returns where git looks for the hooks of the repository, and
// whether that lies outside of it, where others may have theirs too. While a
// session guards them nobody is told. An error is a *report.Refusal.
func HooksFolder(ctx context.Context, o Options) (folder string, shared bool, err error) {
	c, err := open(ctx, o, report.ScopeStaged)
	if err != nil {
		return "", false, refuse(err)
	}
	guarded, err := c.isGuarded()
	if err != nil {
		return "", false, refuse(err)
	}
	if guarded {
		return "", false, report.Refuse(report.CodeActive, "install it when the session has ended", errors.New("a session guards the hooks of this repository"))
	}
	place := c.layout.Locate(c.repo.HooksDir)
	return c.repo.HooksDir, place.Anchor == rules.Outside || place.Anchor == rules.HooksDir, nil
}
