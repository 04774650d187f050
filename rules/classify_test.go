package rules

import (
	"strings"
	"testing"
)

func check(t *testing.T, p *Plan, table map[Path]string) {
	t.Helper()
	for path, want := range table {
		if got := say(p.Classify(path)); got != want {
			t.Errorf("Classify(%v) = %q, want %q", path, got, want)
		}
	}
}

func TestBuiltins(t *testing.T) {
	table := map[Path]string{
		root(".github/workflows/ci.yml"):          "ci_config:revert",
		root(".github/workflows/deep/er/x"):       "ci_config:revert",
		root(".github/workflows"):                 "ci_config:revert",
		root(".github/workflows/.ci.yml.swp"):     "ci_config:revert:transient",
		root(".github/workflows/ci.yml~"):         "ci_config:revert:transient",
		root(".github/workflows/x.swp"):           "ci_config:revert",
		root(".github/workflow/ci.yml"):           "",
		root(".github/workflows2/ci.yml"):         "",
		root(".github"):                           "",
		root("sub/.github/workflows/ci.yml"):      "",
		root(".GitHub/workflows/ci.yml"):          "",
		root(".gitlab-ci.yml"):                    "ci_config:revert",
		root(".gitlab-ci.yaml"):                   "",
		root("sub/.gitlab-ci.yml"):                "",
		root(".circleci/config.yml"):              "ci_config:revert",
		root("azure-pipelines.yml"):               "ci_config:revert",
		root("azure-pipelines.yml\n"):             "",
		root(".cage.yaml"):                        "cage_config:revert",
		root("sub/.cage.yaml"):                    "",
		root(".cage.yml"):                         "",
		common("config"):                          "git_control:revert",
		common("config.worktree"):                 "git_control:revert",
		common("hooks/pre-commit"):                "git_control:revert",
		common("hooks/pre-commit.sample"):         "git_control:revert",
		common("hooks/lib/x"):                     "git_control:revert",
		common("hooks/.pre-commit.swo"):           "git_control:revert:transient",
		common("info/attributes"):                 "git_control:revert",
		common("info/exclude"):                    "",
		common("commondir"):                       "git_control:revert",
		common("gitdir"):                          "git_control:revert",
		common("HEAD"):                            "",
		common("index"):                           "",
		common("objects/ab/cdef"):                 "",
		common(".env"):                            "",
		common("go.sum"):                          "",
		common("config.lock"):                     "",
		root(".git/config"):                       "git_control:revert",
		root(".git/hooks/pre-push"):               "git_control:revert",
		root(".git/HEAD"):                         "",
		root(".git"):                              "",
		root("sub/.git/config"):                   "",
		root("sub/.git"):                          "",
		root("sub/.git/.env"):                     "",
		root(".github/workflows/.git/config"):     "",
		root(".github/workflows/a/.git"):          "",
		root(".github/workflows/a.git/x"):         "ci_config:revert",
		root(""):                                  "",
		{Outside, "etc/.env"}:                     "",
		{HooksDir, "pre-commit"}:                  "",
		{GitDir, "config"}:                        "",
		root(strings.Repeat("d/", 3000) + ".env"): "secrets:revert",
	}
	check(t, draft(t, Inputs{}), table)
	check(t, settle(t, Inputs{}), table)
}

func TestNamesOfSecrets(t *testing.T) {
	p := draft(t, Inputs{})
	for name, want := range map[string]bool{
		".env": true, ".env.": true, ".env.local": true, ".env.production": true, ".env.example.local": true,
		".env.\xff": true, ".env.\n": true, ".env.sw": true, ".env.swpx": true, ".env.Example": true,
		".env.a~b": true, ".env..": true, ".env.examples": true, ".env.gantry-cage-1": true,
		".env.example": false, ".env.sample": false, ".env.template": false,
		".env.swp": false, ".env.swo": false, ".env.local.swp": false, ".env.sw\xff": false, ".env.swé": false,
		".env.~": false, ".env.local~": false, ".env~": false,
		".envrc": false, ".env-local": false, "env": false, "x.env": false, ".Env": false, ".ENV": false,
		"environment.ts": false, ".en": false,
	} {
		for _, dir := range []string{"", "a/", "dist/a\n/", "\xff/"} {
			verdict, _ := p.Classify(root(dir + name))
			if got := verdict.Rule == Secrets && verdict.Mode == Revert; got != want {
				t.Errorf("%q is a secret: %v, want %v", dir+name, got, want)
			}
		}
		for _, dir := range []string{"node_modules", ".git", ".venv", "venv", "__pycache__"} {
			for _, path := range []string{dir + "/" + name, "a/" + dir + "/b/" + name} {
				if got := say(p.Classify(root(path))); got != "" {
					t.Errorf("Classify(%q) = %s inside a directory that no scan enters", path, got)
				}
			}
		}
	}
	// The name of a skipped directory means nothing as a file or in part.
	for _, path := range []string{"node_modules2/.env", "my.venv/.env", "Venv/.env", "venv\n/.env"} {
		if say(p.Classify(root(path))) != "secrets:revert" {
			t.Errorf("%q is not protected", path)
		}
	}
}

func TestLockfiles(t *testing.T) {
	p := draft(t, Inputs{})
	names := []string{"package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock",
		"bun.lockb", "Cargo.lock", "poetry.lock", "Pipfile.lock", "uv.lock", "go.sum", "Gemfile.lock", "composer.lock"}
	for _, name := range names {
		check(t, p, map[Path]string{
			root(name):                         "lockfile:report",
			root("a/b/" + name):                "lockfile:report",
			root("node_modules/" + name):       "",
			root(name + "x"):                   "",
			root("x" + name):                   "",
			root(strings.ToUpper(name)):        "",
			root(name + "/inside"):             "",
			root(".github/workflows/" + name):  "ci_config:revert",
			root("a/node_modules/b/c/" + name): "",
		})
	}
}

func TestOutsideGit(t *testing.T) {
	check(t, draft(t, Inputs{Layout: Layout{Root: "/w"}}), map[Path]string{
		root(".git/config"): "",
		root(".git"):        "",
		root(".env"):        "secrets:revert",
		root(".cage.yaml"):  "cage_config:revert",
	})
}

func TestLinkedWorktree(t *testing.T) {
	check(t, draft(t, Inputs{Layout: worktree(), Git: Git{DotGitFile: true}}), map[Path]string{
		root(".git"):                             "git_control:revert",
		root(".git/config"):                      "",
		root("sub/.git"):                         "",
		common("config"):                         "git_control:revert",
		common("hooks/post-merge"):               "git_control:revert",
		common("worktrees/tree/gitdir"):          "git_control:revert",
		common("worktrees/tree/config.worktree"): "git_control:revert",
		common("worktrees/other/gitdir"):         "",
		{GitDir, "gitdir"}:                       "git_control:revert",
		{GitDir, "commondir"}:                    "git_control:revert",
		{GitDir, "config.worktree"}:              "git_control:revert",
		{GitDir, "hooks/x"}:                      "git_control:revert",
		{GitDir, "HEAD"}:                         "",
	})
}

// A git directory in the root under another name is no part of the tree.
func TestGitDirectoryElsewhereInTheRoot(t *testing.T) {
	p := draft(t, Inputs{Layout: Layout{Root: "/w", CommonDir: "/w/store/repo.git"}, Git: Git{DotGitFile: true}})
	check(t, p, map[Path]string{
		root("store/repo.git/config"): "git_control:revert",
		root("store/repo.git/.env"):   "",
		root("store/.env"):            "secrets:revert",
		root(".git"):                  "git_control:revert",
		common("hooks/pre-commit"):    "git_control:revert",
	})
}

// Two anchors in one directory are one place.
func TestRootThatIsTheGitDirectory(t *testing.T) {
	p := draft(t, Inputs{Layout: Layout{Root: "/w", CommonDir: "/w", GitDir: "/w"}})
	for _, anchor := range []Anchor{Root, CommonDir, GitDir} {
		check(t, p, map[Path]string{
			{anchor, "config"}:  "git_control:revert",
			{anchor, "hooks/x"}: "git_control:revert",
			{anchor, ".env"}:    "secrets:revert",
			{anchor, "HEAD"}:    "",
		})
	}
}

func TestHooksFolders(t *testing.T) {
	at := func(p Path) *Path { return &p }
	for name, c := range map[string]struct {
		in    Inputs
		found []Path
		want  map[Path]string
	}{
		"inside the root": {
			in: Inputs{Git: Git{Hooks: at(root(".husky/_"))}},
			want: map[Path]string{
				root(".husky/_/pre-commit"): "git_control:revert",
				root(".husky/_/anything"):   "git_control:revert",
				root(".husky/pre-commit"):   "",
			},
		},
		"inside a directory that no scan enters": {
			in:   Inputs{Git: Git{Hooks: at(root("node_modules/hooks"))}},
			want: map[Path]string{root("node_modules/hooks/x"): "git_control:revert", root("node_modules/x"): ""},
		},
		"spelled by the root, inside the git directory": {
			in:   Inputs{Git: Git{Hooks: at(root(".git/myhooks"))}},
			want: map[Path]string{common("myhooks/x"): "git_control:revert"},
		},
		"outside": {
			in: Inputs{
				Layout: Layout{Root: "/w/repo", CommonDir: "/w/repo/.git", HooksDir: "/home/u/.githooks"},
				Git:    Git{Hooks: at(Path{HooksDir, ""})},
			},
			found: []Path{{HooksDir, "pre-commit"}, {HooksDir, "update"}},
			want: map[Path]string{
				{HooksDir, "pre-commit"}:   "git_control:revert",
				{HooksDir, "update"}:       "git_control:revert",
				{HooksDir, "pre-push"}:     "",
				{HooksDir, "pre-commit/x"}: "",
				{HooksDir, "README"}:       "",
				{HooksDir, ".env"}:         "",
			},
		},
		"the root itself": {
			in:    Inputs{Git: Git{Hooks: at(root(""))}},
			found: []Path{root("pre-commit")},
			want: map[Path]string{
				root("pre-commit"):     "git_control:revert",
				root("commit-msg"):     "",
				root("src/pre-commit"): "",
				root("src/main.go"):    "",
			},
		},
		"the git directory itself": {
			in:    Inputs{Git: Git{Hooks: at(common(""))}},
			found: []Path{common("pre-push")},
			want:  map[Path]string{common("pre-push"): "git_control:revert", common("refs/heads/main"): "", common("index"): ""},
		},
		"around the root": {
			in: Inputs{
				Layout: Layout{Root: "/w/update", CommonDir: "/w/update/.git", HooksDir: "/w"},
				Git:    Git{Hooks: at(Path{HooksDir, ""})},
			},
			found: []Path{{HooksDir, "pre-push"}},
			want: map[Path]string{
				{HooksDir, "pre-push"}:    "git_control:revert",
				root("main.go"):           "",
				{HooksDir, "update/.env"}: "secrets:revert",
				root(".env"):              "secrets:revert",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := draft(t, c.in)
			for path, want := range c.want {
				if want != "" && say(p.Classify(path)) != want {
					t.Errorf("the draft misses %v", path)
				}
			}
			check(t, settle(t, c.in, c.found...), c.want)
		})
	}
}

// Before the scan all of git's names are looked for; after it, only what was
// there is protected.
func TestEveryHookNameIsLookedFor(t *testing.T) {
	in := Inputs{Layout: Layout{Root: "/w", HooksDir: "/h"}, Git: Git{Hooks: &Path{Anchor: HooksDir}}}
	p, after := draft(t, in), settle(t, in)
	if len(GitHooks()) != 28 {
		t.Errorf("%d hook names, githooks(5) has 28", len(GitHooks()))
	}
	for _, name := range GitHooks() {
		if say(p.Classify(Path{HooksDir, name})) != "git_control:revert" {
			t.Errorf("the draft does not look for %s", name)
		}
		if got := say(after.Classify(Path{HooksDir, name})); got != "" {
			t.Errorf("%s, which never existed, is %s", name, got)
		}
	}
}

func TestIncludes(t *testing.T) {
	in := Inputs{
		Layout: Layout{Root: "/w", CommonDir: "/w/.git", HooksDir: "/h"},
		Git:    Git{Includes: []Path{root("tools/git.conf"), root(".git/extra"), {Outside, "etc/x"}, {HooksDir, "inc"}}},
	}
	check(t, draft(t, in), map[Path]string{
		root("tools/git.conf"):   "git_control:revert",
		root("tools/git.conf/x"): "",
		common("extra"):          "git_control:revert",
		{Outside, "etc/x"}:       "",
		{HooksDir, "inc"}:        "",
	})
}

func TestConfiguredRules(t *testing.T) {
	in := Inputs{
		Config: yamlFile(`
protect:
  - path: infra/
  - path: node_modules/left/pad.js
  - path: sub/.git/hooks
  - glob: "**/*.pem"
  - glob: "logs/**"
    mode: report
  - path: notes
    mode: report
  - glob: "notes/*.lock"
  - path: Cargo.lock
    mode: report
  - path: go.sum
`),
		ManifestYAML: yamlFile("schema_version: 0.5.0\nskills:\n  a: {forbidden_zones: [db/, infra/prod]}\n  b: {forbidden_zones: [db]}\n"),
	}
	p := settle(t, in)
	if p.Zones() != 2 || p.ConfigEntries() != 9 || !p.ConfigPresent() {
		t.Errorf("%d zones, %d entries", p.Zones(), p.ConfigEntries())
	}
	check(t, p, map[Path]string{
		root("infra/x.tf"):                      "cage_protect:revert",
		root("infra"):                           "cage_protect:revert",
		root("infra/prod/x.tf"):                 "manifest_forbidden_zone:revert",
		root("infra/.env"):                      "secrets:revert",
		root("infra/venv/x"):                    "cage_protect:revert",
		root("infra/venv/.env"):                 "cage_protect:revert",
		root("infra/mod/.git/config"):           "",
		root("infra/.x.swp"):                    "cage_protect:revert:transient",
		root("infra/.x.pem~"):                   "cage_protect:revert:transient",
		root("db/schema.sql"):                   "manifest_forbidden_zone:revert",
		root("node_modules/left/pad.js"):        "cage_protect:revert",
		root("node_modules/left/other.js"):      "",
		root("sub/.git/hooks/pre-commit"):       "cage_protect:revert",
		root("sub/.git/hooks/x/.git/y"):         "",
		root("a.pem"):                           "cage_protect:revert",
		root("a/b/c.pem"):                       "cage_protect:revert",
		root("a/node_modules/c.pem"):            "",
		root("a.pem.bak"):                       "",
		root("logs/x"):                          "cage_protect:report",
		root("logs/key.pem"):                    "cage_protect:revert",
		root("notes/x"):                         "cage_protect:report",
		root("notes/.x.swp"):                    "cage_protect:report",
		root("notes/yarn.lock"):                 "cage_protect:revert",
		root("Cargo.lock"):                      "lockfile:report",
		root("go.sum"):                          "cage_protect:revert",
		root("sub/go.sum"):                      "lockfile:report",
		root(".github/workflows/key.pem"):       "ci_config:revert",
		root(".github/workflows/.key.pem.swp"):  "ci_config:revert:transient",
		root("infra/deep/.git-not/x"):           "cage_protect:revert",
		root("infra/\xff\n/x"):                  "cage_protect:revert",
		root("infra2/x"):                        "",
		root("Infra/x"):                         "",
		root("a.PEM"):                           "",
		root("\xff.pem"):                        "cage_protect:revert",
		root("new\nline.pem"):                   "cage_protect:revert",
		root("sub/module/.git"):                 "",
		root("infra/module/.git"):               "",
		root(".gitagent/foreman/MANIFEST.yaml"): "",
	})
}

func TestSourceOfVerdicts(t *testing.T) {
	p := settle(t, Inputs{
		Config:       yamlFile("protect: [{path: a}, {glob: '*.b'}]"),
		ManifestJSON: yamlFile(`{"schema_version": "1", "skills": {"s": {"forbidden_zones": ["z"]}}}`),
	})
	for path, want := range map[string]Source{
		"a/x": CageYAML, "x.b": CageYAML, "z/x": Manifest, ".env": Builtin, "go.sum": Builtin, ".cage.yaml": Builtin,
	} {
		if v, ok := p.Classify(root(path)); !ok || v.Source != want {
			t.Errorf("the source of %s is %q, want %q", path, v.Source, want)
		}
	}
}

// An explicit wish for a backup name is no editor's transient.
func TestTransientIsOnlyWhatATreeCovers(t *testing.T) {
	p := settle(t, Inputs{Config: yamlFile("protect: [{path: d}, {path: d/x~}, {glob: '**/*.old~'}]")})
	check(t, p, map[Path]string{
		root("d/y~"):                         "cage_protect:revert:transient",
		root("d/~"):                          "cage_protect:revert:transient",
		root("d/..swp"):                      "cage_protect:revert:transient",
		root("d/.swp"):                       "cage_protect:revert",
		root("d/.a.sw"):                      "cage_protect:revert",
		root("d/.a.sw\xff"):                  "cage_protect:revert:transient",
		root("d/x~"):                         "cage_protect:revert",
		root("d/a.old~"):                     "cage_protect:revert",
		root("a.old~"):                       "cage_protect:revert",
		root(".github/workflows/ci.old~"):    "ci_config:revert",
		root(".github/workflows/.x~/ci.yml"): "ci_config:revert",
	})
}

func TestJoined(t *testing.T) {
	secretV := Verdict{Rule: Secrets, Source: Builtin, Mode: Revert}
	hook := Verdict{Rule: GitControl, Source: Builtin, Mode: Revert}
	relaxed := Verdict{Rule: Secrets, Source: Builtin, Mode: Report, Overridden: true}
	base := settle(t, Inputs{Overrides: []string{"config"}, Config: yamlFile("protect: [{path: tree, mode: report}]")}, root("config/.env"))
	p := base.With([]Joined{
		{root("secrets/real"), secretV},
		{root("config/real"), secretV},
		{root("config/hook.sh"), hook},
		{root("tree/x"), relaxed},
		{root("go.sum"), relaxed},
		{root("node_modules/.bin/hook"), hook},
		{Path{Outside, "etc/env"}, secretV},
		{root(".git/shared"), hook},
	})
	check(t, p, map[Path]string{
		root("secrets/real"):           "secrets:revert",
		root("secrets/real/x"):         "",
		root("secrets/other"):          "",
		root("config/real"):            "secrets:report:overridden",
		root("config/hook.sh"):         "git_control:revert",
		root("tree/x"):                 "secrets:report:overridden",
		root("tree/y"):                 "cage_protect:report",
		root("go.sum"):                 "secrets:report:overridden",
		root("node_modules/.bin/hook"): "git_control:revert",
		{Outside, "etc/env"}:           "secrets:revert",
		common("shared"):               "git_control:revert",
	})
	check(t, base, map[Path]string{root("secrets/real"): "", {Outside, "etc/env"}: ""})
	if !p.Enter(root("node_modules/.bin")) || base.Enter(root("node_modules/.bin")) {
		t.Error("the way to a joined file is not entered, or was before it joined")
	}
}

func TestExempt(t *testing.T) {
	p := settle(t, Inputs{
		Config: yamlFile("protect: [{path: .local}]"),
		Exempt: []Path{root(".local/state/cage")},
	})
	check(t, p, map[Path]string{
		root(".local/state/cage/x/.env"): "",
		root(".local/state/cage"):        "",
		root(".local/state/cage2/.env"):  "secrets:revert",
		root(".local/state/x"):           "cage_protect:revert",
	})
	if p.Enter(root(".local/state/cage")) || p.Covers(root(".local/state/cage/x")) || !p.Enter(root(".local/state")) {
		t.Error("the cage's own directory is walked, or what is around it is not")
	}
}

func TestSparing(t *testing.T) {
	base := settle(t, Inputs{})
	p := base.Sparing([]Path{root("private"), {Root, ".git/annex"}})
	check(t, p, map[Path]string{
		root("private/.env"):       "",
		root("private/a/.env"):     "",
		root("private2/.env"):      "secrets:revert",
		common("annex/config"):     "",
		common("hooks/pre-commit"): "git_control:revert",
	})
	check(t, base, map[Path]string{root("private/.env"): "secrets:revert"})
	if p.Enter(root("private")) || !p.Enter(root("")) {
		t.Error("a directory that is spared is walked, or what is around it is not")
	}
}

func TestLeads(t *testing.T) {
	in := Inputs{Config: yamlFile(`protect: [{path: a/b/c}, {path: r/s, mode: report}, {glob: "g/*"}]`), Overrides: []string{"o"}}
	in.ManifestYAML = yamlFile("schema_version: 1\nskills: {s: {forbidden_zones: [o/zone]}}")
	p := settle(t, in)
	for dir, want := range map[Path]bool{
		root(""):                    true,
		root(".github"):             true,
		root(".github/workflows"):   true,
		root(".github/workflows/x"): false,
		root(".github/x"):           false,
		root("a"):                   true,
		root("a/b"):                 true,
		root("a/x"):                 false,
		root("r"):                   false,
		root("g"):                   false,
		root("o"):                   false,
		root(".git/info"):           true,
		common("info"):              true,
		common("objects"):           false,
	} {
		if p.Leads(dir) != want {
			t.Errorf("Leads(%v) = %v", dir, !want)
		}
	}
}

func TestEnter(t *testing.T) {
	in := Inputs{Config: yamlFile(`protect: [{path: node_modules/a/b}, {path: venv}, {path: m/.git/hooks}, {path: tree, mode: report}]`)}
	p := settle(t, in)
	for path, want := range map[Path]bool{
		root(""):                              true,
		root("src"):                           true,
		root("src/deep/er"):                   true,
		root("node_modules"):                  true,
		root("node_modules/a"):                true,
		root("node_modules/a/b"):              true,
		root("node_modules/a/b/c"):            true,
		root("node_modules/a/b/node_modules"): true,
		root("node_modules/a/b/.git"):         false,
		root("node_modules/a/b/.git/x"):       false,
		root("node_modules/a/c"):              false,
		root("src/node_modules"):              false,
		root("venv"):                          true,
		root("venv/lib"):                      true,
		root("x/venv"):                        false,
		root("__pycache__"):                   false,
		root(".venv"):                         false,
		root(".git"):                          false,
		root(".git/hooks"):                    false,
		root("src/.git"):                      false,
		root("m"):                             true,
		root("m/.git"):                        true,
		root("m/.git/hooks"):                  true,
		root("m/.git/objects"):                false,
		root(".github/workflows/.git"):        false,
		root("tree"):                          true,
		common(""):                            true,
		common("hooks"):                       true,
		common("hooks/lib"):                   true,
		common("hooks/.git"):                  false,
		common("info"):                        true,
		common("objects"):                     false,
		common("objects/ab"):                  false,
		common("refs"):                        false,
		common("worktrees"):                   false,
		{HooksDir, ""}:                        false,
		{Outside, "etc"}:                      false,
	} {
		if got := p.Enter(path); got != want {
			t.Errorf("Enter(%v) = %v", path, got)
		}
	}
	for path, want := range map[Path]bool{
		root(""): false, root("src"): false, root(".github"): false, root(".github/workflows"): true,
		root(".github/workflows/a/b"): true, root(".github/workflows/.git"): false, root("tree"): false,
		root("venv/x"): true, common("hooks/x"): true, common(""): false, root(".git/hooks"): true, common("info"): false,
	} {
		if got := p.Covers(path); got != want {
			t.Errorf("Covers(%v) = %v", path, got)
		}
	}
}

// Of the places that built-in rules name, files are told from trees.
func TestWantsFile(t *testing.T) {
	p := settle(t, Inputs{
		Layout: worktree(), Config: yamlFile("protect: [{path: infra}]"), Overrides: []string{"azure-pipelines.yml"},
	}, root("azure-pipelines.yml"))
	for path, want := range map[Path]bool{
		root(".cage.yaml"):              true,
		root(".gitlab-ci.yml"):          true,
		common("config"):                true,
		common("info/attributes"):       true,
		{GitDir, "config.worktree"}:     true,
		{GitDir, "commondir"}:           true,
		{GitDir, "gitdir"}:              true,
		root("azure-pipelines.yml"):     false,
		root("sub/.cage.yaml"):          false,
		root(".github/workflows"):       false,
		root(".github/workflows/a.yml"): false,
		root(".circleci"):               false,
		root("infra"):                   false,
		root(".env"):                    false,
		root("commondir"):               false,
		common("info"):                  false,
		common("hooks"):                 false,
	} {
		if got := p.WantsFile(path); got != want {
			t.Errorf("%v: %v", path, got)
		}
	}
}

func TestTops(t *testing.T) {
	hooks := &Path{Anchor: HooksDir}
	for name, c := range map[string]struct {
		in   Inputs
		want []Path
	}{
		"no git":    {Inputs{Layout: Layout{Root: "/w"}}, []Path{root("")}},
		"ordinary":  {Inputs{Layout: ordinary()}, []Path{root(""), common("")}},
		"worktree":  {Inputs{Layout: worktree()}, []Path{root(""), common(""), {GitDir, ""}}},
		"one place": {Inputs{Layout: Layout{Root: "/w", CommonDir: "/w", GitDir: "/w"}}, []Path{root("")}},
		"hooks elsewhere": {Inputs{Layout: Layout{Root: "/w", CommonDir: "/w/.git", HooksDir: "/h"}, Git: Git{Hooks: hooks}},
			[]Path{root(""), common(""), {HooksDir, ""}}},
		"hooks around the root": {Inputs{Layout: Layout{Root: "/h/w", CommonDir: "/h/w/.git", HooksDir: "/h"}, Git: Git{Hooks: hooks}},
			[]Path{root(""), common(""), {HooksDir, ""}}},
	} {
		p := draft(t, c.in)
		got := p.Tops()
		if len(got) != len(c.want) {
			t.Errorf("%s: tops %v, want %v", name, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: tops %v, want %v", name, got, c.want)
			}
		}
		for _, top := range got {
			for _, other := range got {
				if abs := c.in.Layout.Abs(other); top != other && p.Enter(Path{top.Anchor, relOf(c.in.Layout.Abs(top), abs)}) {
					t.Errorf("%s: the walk of %v enters %v", name, top, other)
				}
			}
		}
	}
}

// relOf names other below top, or a directory that no walk enters.
func relOf(top, other string) string {
	rel, ok := Below(other, top)
	if !ok || rel == "" {
		return "node_modules"
	}
	return rel
}

func TestTargets(t *testing.T) {
	p := settle(t, Inputs{
		Git:       Git{Hooks: &Path{CommonDir, "hooks"}},
		Config:    yamlFile("protect: [{path: a/b}, {path: .circleci}, {path: r, mode: report}]"),
		Overrides: []string{"a", ".github/workflows/x"},
	})
	got := make(map[string]int)
	for _, target := range p.Targets() {
		got[p.ground.layout.Display(target.Path)+" "+say(target.Verdict, true)]++
		if !target.Tree {
			t.Errorf("%v is no tree", target.Path)
		}
	}
	for _, want := range []string{
		".github/workflows ci_config:revert", ".gitlab-ci.yml ci_config:revert", ".circleci ci_config:revert",
		".circleci cage_protect:revert", "azure-pipelines.yml ci_config:revert", ".cage.yaml cage_config:revert",
		".git/config git_control:revert", ".git/config.worktree git_control:revert", ".git/hooks git_control:revert",
		".git/info/attributes git_control:revert", ".git/commondir git_control:revert", ".git/gitdir git_control:revert",
		"a/b cage_protect:report:overridden", "r cage_protect:report",
	} {
		if got[want] != 1 {
			t.Errorf("%q is there %d times", want, got[want])
		}
		delete(got, want)
	}
	if len(got) != 0 {
		t.Errorf("more targets than asked for: %v", got)
	}
}

// Promise: the rules of other versions of the files hold beside the present
// ones, and can be no reason to refuse those.
func TestEarlierSources(t *testing.T) {
	in := Inputs{
		Config: yamlFile("protect: [{path: new}, {path: both, mode: report}]"),
		Earlier: []Sources{
			{Config: yamlFile("protect: [{path: old}, {glob: '*.pem'}, {path: both}]")},
			{Config: yamlFile("protect: [{glob: 'sub/*', mode: report}]"), ManifestYAML: yamlFile("schema_version: '1'\nskills: {s: {forbidden_zones: [zone]}}")},
		},
	}
	p := settle(t, in, root("sub/.env"))
	for path, want := range map[string]string{
		"new/a": "cage_protect:revert", "old/a": "cage_protect:revert", "a.pem": "cage_protect:revert",
		"both": "cage_protect:revert", "zone/a": "manifest_forbidden_zone:revert", "sub/a": "cage_protect:report", "sub/.env": "secrets:revert", "a": "",
	} {
		if got := say(p.Classify(root(path))); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	if p.Zones() != 0 || p.ConfigEntries() != 2 {
		t.Errorf("%d zones and %d entries count as the present ones", p.Zones(), p.ConfigEntries())
	}
	// A zone that the manifest has lost protects the manifest, one that it has
	// gained, or covers in another way, does not.
	manifest := func(zones string) File {
		return yamlFile("schema_version: '1'\nskills: {s: {forbidden_zones: [" + zones + "]}}")
	}
	for zones, want := range map[string]string{"zone, new": "", "zo": "manifest_forbidden_zone:revert", "": "manifest_forbidden_zone:revert", "zone/a": "manifest_forbidden_zone:revert"} {
		p := settle(t, Inputs{ManifestYAML: manifest(zones), Earlier: in.Earlier})
		if got := say(p.Classify(root(ManifestYAML))); got != want {
			t.Errorf("with the zones %q the manifest is %q, want %q", zones, got, want)
		}
	}
	in.Layout = ordinary()
	in.Earlier = []Sources{{Config: yamlFile("x: y")}}
	_, err := New(in)
	refused(t, err, CodeConfig, ConfigFile, 1, "unknown key")
}

// Promise: an entry that stands where a directory leads to protected places is
// judged by those.
func TestLeading(t *testing.T) {
	in := Inputs{Config: yamlFile("protect: [{path: a/b/c}, {path: r/s, mode: report}, {path: o/x}]"), Overrides: []string{"o"}}
	p := settle(t, in)
	for path, want := range map[string]string{
		".github": "ci_config:revert", "a": "cage_protect:revert", "a/b": "cage_protect:revert", "a/b/c": "", "a/b/c/d": "",
		"r": "", "src": "", "": "", "o": "cage_protect:report:overridden", ".github/workflows": "",
	} {
		if got := say(p.Leading(root(path))); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	in = Inputs{Elsewhere: []Anchor{CommonDir}, Exempt: []Path{root("a")}, Config: in.Config}
	p = settle(t, in)
	if got := say(p.Leading(Path{CommonDir, "info"})); got != "git_control:report" {
		t.Errorf("a directory that another session guards is %q", got)
	}
	if _, leads := p.Leading(root("a/b")); leads {
		t.Error("an exempt directory leads somewhere")
	}
}
