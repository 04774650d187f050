package rules

import (
	"strings"
	"unicode/utf8"
)

// The files that rules are read from, relative to the root.
const (
	ConfigFile   = ".cage.yaml"
	ManifestYAML = ".gitagent/foreman/MANIFEST.yaml"
	ManifestJSON = ".gitagent/foreman/MANIFEST.json"
)

// MaxFile is the number of bytes beyond which a rule file is refused. Who
// reads one need not read more than MaxFile+1.
const MaxFile = 1 << 20

// dotGit is the name of a repository's git directory, or of the file that
// stands for it in linked worktrees and submodules.
const dotGit = ".git"

// secretFile is the name that the secrets rule is about.
const secretFile = ".env"

func ciPlaces() []string { return append(ciFiles(), ".github/workflows", ".circleci") }

// ciFiles are those of these places that are files.
func ciFiles() []string { return []string{".gitlab-ci.yml", "azure-pipelines.yml"} }

// gitPlaces are the files of a git directory that decide which programs git
// runs and which directory it takes for the repository.
func gitPlaces() []string { return append(gitFiles(), "hooks") }

// gitFiles are those of these places that are files.
func gitFiles() []string {
	return []string{"config", "config.worktree", "info/attributes", "commondir", "gitdir"}
}

// GitConfig is the one of these files that git itself rewrites in everyday work.
func GitConfig() Path { return Path{Anchor: CommonDir, Rel: "config"} }

// GitHooks returns the names that git runs in its hooks folder, all of
// githooks(5).
func GitHooks() []string {
	return []string{
		"applypatch-msg", "commit-msg", "fsmonitor-watchman", "p4-changelist", "p4-post-changelist",
		"p4-pre-submit", "p4-prepare-changelist", "post-applypatch", "post-checkout", "post-commit",
		"post-index-change", "post-merge", "post-receive", "post-rewrite", "post-update",
		"pre-applypatch", "pre-auto-gc", "pre-commit", "pre-merge-commit", "pre-push", "pre-rebase",
		"pre-receive", "prepare-commit-msg", "proc-receive", "push-to-checkout",
		"reference-transaction", "sendemail-validate", "update",
	}
}

// skipped reports whether the scan for names and globs stays out of
// directories called name.
func skipped(name string) bool {
	switch name {
	case "node_modules", dotGit, ".venv", "venv", "__pycache__":
		return true
	}
	return false
}

func lockfile(name string) bool {
	switch name {
	case "package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock",
		"bun.lockb", "Cargo.lock", "poetry.lock", "Pipfile.lock", "uv.lock", "go.sum",
		"Gemfile.lock", "composer.lock":
		return true
	}
	return false
}

func secret(name string) bool {
	rest, ok := strings.CutPrefix(name, secretFile)
	if !ok {
		return false
	}
	switch {
	case rest == "":
		return true
	case rest[0] != '.', rest == ".example", rest == ".sample", rest == ".template":
		return false
	default:
		return !strings.HasSuffix(rest, "~") && !swapFile(rest)
	}
}

// swapFile reports whether name ends like an editor's swap file, in ".sw" and
// one more character (a byte, where it is no UTF-8).
func swapFile(name string) bool {
	_, size := utf8.DecodeLastRuneInString(name)
	return strings.HasSuffix(name[:len(name)-size], ".sw")
}

// transient reports whether editors use name for a file that they remove
// again: `.*.sw?` and `*~`.
func transient(name string) bool {
	if strings.HasSuffix(name, "~") {
		return true
	}
	return strings.HasPrefix(name, ".") && swapFile(name[1:])
}
