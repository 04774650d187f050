package rules

import (
	"slices"
	"testing"
)

func TestOverrideRefusals(t *testing.T) {
	hooks := root("tools/hooks")
	in := Inputs{
		Layout: ordinary(),
		Git:    Git{Hooks: &hooks, Includes: []Path{root("conf/git.inc")}},
		Config: yamlFile("protect: [{path: infra}, {glob: '**/*.pem'}, {path: docs, mode: report}]"),
	}
	for word, part := range map[string]string{
		"":                      "is empty",
		".":                     `"." segment`,
		"./":                    `"." segment`,
		"..":                    `".." segment`,
		"../x":                  `".." segment`,
		"a/../.env":             `".." segment`,
		"a/./.env":              `"." segment`,
		"././.env":              `"." segment`,
		"a//.env":               "empty segment",
		".env//":                "empty segment",
		".//.env":               "is absolute",
		"/etc":                  "is absolute",
		"/":                     "is absolute",
		"C:/x":                  "drive letter",
		"a\x00":                 "NUL",
		".git":                  "git_control",
		".git/":                 "git_control",
		"./.git/config":         "git_control",
		".git/hooks/pre-commit": "git_control",
		".git/info":             "git_control",
		"tools":                 "git_control",
		"tools/hooks/x":         "git_control",
		"conf":                  "git_control",
		"conf/git.inc":          "git_control",
		"conf/git.inc/x":        "git_control",
		".cage.yaml":            "cage_config",
		".cage.yaml/":           "cage_config",
		".cage.yaml/x":          "cage_config",
	} {
		in.Overrides = []string{".env", word}
		_, err := New(in)
		refused(t, err, CodeOverride, "", 0, part)
	}
	for _, word := range []string{"src/app.ts", "package-lock.json", "docs", "docs/x", "src", ".git-x", ".env.example",
		"node_modules/.env", ".ENV", "src/.env/x", ".env/", "a.pem/x", ".git/objects"} {
		in.Overrides = []string{word}
		p := draft(t, in)
		_, err := p.Settle([]Path{root("src/go.sum"), root("docs/a"), root("sub/.env")})
		if word == ".env/" {
			if err != nil {
				t.Errorf("%q: %v", word, err)
			}
			continue
		}
		refused(t, err, CodeOverride, "", 0, "matches no rule")
	}
}

func TestOverridesApply(t *testing.T) {
	in := Inputs{
		Config:    yamlFile("protect: [{path: infra}, {glob: '**/*.pem'}, {path: docs, mode: report}, {glob: docs/secret/*}]"),
		Overrides: []string{"services/", "./.env", ".env", ".github", "infra/dev", "new/.env.local", "x\xff.pem", "docs"},
	}
	found := []Path{root("services/a/.env"), root(".env"), root("infra/dev/x"), root("infra/prod/x"), root("docs/secret/k"), root("docs/a")}
	p := settle(t, in, found...)
	check(t, p, map[Path]string{
		root(".env"):                          "secrets:report:overridden",
		root(".env.local"):                    "secrets:revert",
		root("services/a/.env"):               "secrets:report:overridden",
		root("services/b/new.pem"):            "cage_protect:report:overridden",
		root("services/a/go.sum"):             "lockfile:report",
		root("services/a/main.go"):            "",
		root("services2/.env"):                "secrets:revert",
		root(".github/workflows/ci.yml"):      "ci_config:report:overridden",
		root(".github/workflows/.ci.yml.swp"): "ci_config:report:overridden",
		root("infra/dev/x"):                   "cage_protect:report:overridden",
		root("infra/dev"):                     "cage_protect:report:overridden",
		root("infra/devel/x"):                 "cage_protect:revert",
		root("infra/prod/x"):                  "cage_protect:revert",
		root("new/.env.local"):                "secrets:report:overridden",
		root("new/.env"):                      "secrets:revert",
		root("x\xff.pem"):                     "cage_protect:report:overridden",
		root("docs/secret/k"):                 "cage_protect:report:overridden",
		root("docs/a"):                        "cage_protect:report",
		common("config"):                      "git_control:revert",
		root(".cage.yaml"):                    "cage_config:revert",
	})
	want := []string{".env", ".github", "docs", "infra/dev", "new/.env.local", "services", "x\xff.pem"}
	if got := p.Overrides(); !slices.Equal(got, want) {
		t.Errorf("overrides %q, want %q", got, want)
	}
	if p.Covers(root(".github/workflows")) || p.Covers(root("infra/dev")) || !p.Covers(root("infra")) {
		t.Error("Covers does not follow the overrides")
	}
	check(t, draft(t, in), map[Path]string{root(".env"): "secrets:revert"})
}

// In a folder that git shares with others, what stands there under a hook's
// name is beyond overrides, and what does not is nobody's.
func TestOverridesInASharedHooksFolder(t *testing.T) {
	in := Inputs{Git: Git{Hooks: &Path{Anchor: Root}}, Overrides: []string{"update"}}
	p := draft(t, in)
	_, err := p.Settle([]Path{root("update")})
	refused(t, err, CodeOverride, "", 0, "git_control")
	_, err = p.Settle([]Path{root("pre-commit"), root("update/.env")})
	if err != nil {
		t.Errorf("a directory under a hook's name: %v", err)
	}
	// A hooks folder around a root that is itself called like a hook.
	around := Layout{Root: "/h/update/w", CommonDir: "/h/update/w/.git", HooksDir: "/h"}
	settle(t, Inputs{Layout: around, Git: Git{Hooks: &Path{Anchor: HooksDir}}, Overrides: []string{".env"}}, Path{HooksDir, "pre-commit"})
}

// A git directory that an override would hold is found by its place, not by
// its name.
func TestOverrideAroundAGitDirectory(t *testing.T) {
	for _, word := range []string{"store", "store/repo.git", "store/repo.git/hooks"} {
		_, err := New(Inputs{Layout: Layout{Root: "/w", CommonDir: "/w/store/repo.git"}, Overrides: []string{word}})
		refused(t, err, CodeOverride, "", 0, "git_control")
	}
}

// Promise: what none may relax is relaxed where a person approves it, and
// nothing else changes.
func TestApprovedOverrides(t *testing.T) {
	hooks := root(".githooks")
	in := Inputs{
		Approved: true, Git: Git{Hooks: &hooks},
		Config: yamlFile("protect: [{path: infra}]"), Overrides: []string{".cage.yaml", ".githooks/pre-commit"},
	}
	p := settle(t, in)
	for path, want := range map[string]string{
		".cage.yaml":           "cage_config:report:overridden",
		".githooks/pre-commit": "git_control:report:overridden",
		".githooks/pre-push":   "git_control:revert",
		"infra/a":              "cage_protect:revert",
	} {
		if got := say(p.Classify(root(path))); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	for _, word := range []string{"src", "../x"} {
		in.Overrides = []string{word}
		p, err := New(inLayout(in))
		if err == nil {
			_, err = p.Settle(nil)
		}
		if err == nil {
			t.Errorf("%q is taken", word)
		}
	}
}

func inLayout(in Inputs) Inputs {
	in.Layout = ordinary()
	return in
}
