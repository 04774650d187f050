// Package anchors says where the rules of a repository apply: what git knows of
// its directories, hooks and configuration becomes the layout and the facts
// that a plan is made of. It reads what git says, whether a hooks folder
// exists, and the rule files, and judges from where a caller names paths.
package anchors

import (
	"os"
	"path/filepath"

	"cage/internal/gitrepo"
	"cage/rules"
)

// Of returns the layout of a repository with a configuration, and what a plan
// has to know of it besides.
func Of(repo *gitrepo.Repo, config *gitrepo.Config) (rules.Layout, rules.Git) {
	layout := rules.Layout{Root: repo.Root, CommonDir: repo.CommonDir}
	if repo.GitDir != repo.CommonDir {
		layout.GitDir = repo.GitDir
	}
	var git rules.Git
	layout.HooksDir, git.Hooks = hooks(layout, repo.HooksDir)
	for _, abs := range append(config.Includes, config.HooksLinks...) {
		git.Includes = append(git.Includes, layout.Locate(abs))
	}
	info, err := os.Lstat(filepath.Join(repo.Root, ".git"))
	git.DotGitFile = err == nil && !info.IsDir()
	return layout, git
}

// hooks names the active hooks folder. Where it lies outside everything else
// it is a directory of the layout of its own, if it exists: then git's hooks in
// it are protected.
func hooks(layout rules.Layout, dir string) (own string, folder *rules.Path) {
	place := layout.Locate(dir)
	if place.Anchor != rules.Outside {
		return "", &place
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", nil
	}
	return dir, &rules.Path{Anchor: rules.HooksDir}
}
