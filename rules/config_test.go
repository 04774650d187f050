package rules

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
)

// refusedConfig is a text with the line and the words that it is refused with.
type refusedConfig struct {
	text string
	line int
	part string
}

func refusedConfigs() map[string]refusedConfig {
	return map[string]refusedConfig{
		// The document as such.
		"value on a second colon":   {"protect:\n  - path: a: b\n", 2, "invalid YAML"},
		"tab as indentation":        {"protect:\n\t- path: a\n", 2, "invalid YAML"},
		"odd indentation":           {"protect:\n  - path: a\n   mode: report\n", 3, "invalid YAML"},
		"list after a mapping":      {"mode: revert\ncontest_limit: 3\n- path: a\n", 3, "invalid YAML"},
		"unclosed bracket":          {"mode: revert\nprotect: [\n  {path: a},\n", 3, "invalid YAML"},
		"unclosed quote":            {"mode: revert\nprotect:\n  - path: \"a\nb: c\n", 3, "invalid YAML"},
		"stray bracket":             {"mode: revert\n]\n", 2, "invalid YAML"},
		"reserved character":        {"mode: revert\nprotect:\n  - path: @a\n", 3, "invalid YAML"},
		"unknown directive":         {"# c\n%FOO\n---\n", 2, "invalid YAML"},
		"NUL byte":                  {"mode: revert\n# x\nprotect: \x00\n", 3, "invalid YAML"},
		"control byte":              {"mode: revert\nprotect: \x1b[2J\n", 2, "invalid YAML"},
		"not UTF-8":                 {"mode: revert\nprotect:\n  - path: \"\xff\"\n", 3, "not UTF-8"},
		"UTF-16":                    {"\xff\xfea\x00:\x00", 1, "not UTF-8"},
		"second document":           {"mode: revert\n---\nmode: report\n", 2, "second document"},
		"empty second document":     {"mode: revert\n---\n", 2, "second document"},
		"broken second document":    {"mode: revert\n---\n]\n", 3, "invalid YAML"},
		"alias":                     {"mode: revert\nprotect:\n  - &a {path: a}\n  - *a\n", 4, "aliases"},
		"alias without an anchor":   {"mode: revert\nprotect:\n  - *a\n", 3, "aliases"},
		"alias as a key":            {"mode: &a revert\n*a : b\n", 2, "aliases"},
		"alias of itself":           {"protect: &a\n  - *a\n", 2, "aliases"},
		"merge key":                 {"mode: revert\n<<: {mode: report}\n", 2, "merging"},
		"merge key in an entry":     {"protect:\n  - path: a\n    <<: {mode: report}\n", 3, "merging"},
		"top level list":            {"# c\n- path: a\n", 2, "top level must be a mapping"},
		"top level scalar":          {"\nprotect\n", 2, "top level must be a mapping"},
		"top level null":            {"~\n", 1, "top level must be a mapping"},
		"top level of another type": {"!!python/object:os.system {protect: []}\n", 1, "top level must be a mapping"},
		"binary":                    {"protect:\n  - path: !!binary YQ==\n", 2, "must be a string"},
		"tagged list":               {"protect: !!set\n  - path: a\n", 1, "must be a list"},

		// Keys.
		"unknown key":                 {"mode: revert\nprotekt: []\n", 2, `unknown key "protekt"`},
		"key in capitals":             {"Protect: []\n", 1, "unknown key"},
		"number as a key":             {"mode: revert\n1: a\n", 2, "unknown key"},
		"null as a key":               {"mode: revert\n~: a\n", 2, "unknown key"},
		"list as a key":               {"mode: revert\n? [a]\n: b\n", 2, "unknown key"},
		"binary key":                  {"!!binary protect: []\n", 1, "unknown key"},
		"duplicate key":               {"mode: revert\nprotect: []\nmode: report\n", 3, "comes twice"},
		"duplicate null":              {"mode:\nmode:\n", 2, "comes twice"},
		"duplicate key, other style":  {"mode: revert\n\"mode\": report\n", 2, "comes twice"},
		"duplicate key in an entry":   {"protect:\n  - path: a\n    path: b\n", 3, "comes twice"},
		"unknown key in an entry":     {"protect:\n  - path: a\n    reason: b\n", 3, "unknown key"},
		"limit in an entry":           {"protect:\n  - path: a\n    contest_limit: 1\n", 3, "unknown key"},
		"subtractive word":            {"mode: revert\nexclude: []\n", 2, "take protection away"},
		"subtractive word, capitals":  {"Skip: x\n", 1, "take protection away"},
		"subtractive word, entry":     {"protect:\n  - path: a\n    allow: true\n", 3, "take protection away"},
		"subtractive word, null":      {"ignore:\n", 1, "take protection away"},
		"protect is a mapping":        {"protect:\n  path: a\n", 2, "must be a list"},
		"protect is a string":         {"protect: a\n", 1, "must be a list"},
		"protect is null by tag only": {"protect: !!null a\n", 1, "must be a list"},

		// Entries.
		"entry is a string":            {"protect:\n  - path: a\n  - infra/\n", 3, "must be a mapping"},
		"entry is null":                {"protect:\n  -\n", 2, "must be a mapping"},
		"entry is a list":              {"protect:\n  - [a]\n", 2, "must be a mapping"},
		"neither path nor glob":        {"protect:\n  - mode: report\n", 2, "exactly one"},
		"path is null":                 {"protect:\n  - path: ~\n", 2, "exactly one"},
		"both path and glob":           {"protect:\n  - path: a\n    glob: b\n", 2, "exactly one"},
		"empty entry":                  {"protect:\n  - {}\n", 2, "exactly one"},
		"path is a number":             {"protect:\n  - path: 12\n", 2, "must be a string"},
		"path is a date":               {"protect:\n  - path: 2020-01-01\n", 2, "must be a string"},
		"path is a bool":               {"protect:\n  - path: true\n", 2, "must be a string"},
		"path is a list":               {"protect:\n  - path: [a]\n", 2, "must be a string"},
		"glob is a mapping":            {"protect:\n  - glob: {a: b}\n", 2, "must be a string"},
		"empty path":                   {"protect:\n  - path: \"\"\n", 2, "is empty"},
		"absolute path":                {"protect:\n  - path: /etc/x\n", 2, "is absolute"},
		"slash":                        {"protect:\n  - path: /\n", 2, "is absolute"},
		"two slashes":                  {"protect:\n  - path: //\n", 2, "is absolute"},
		"drive letter":                 {"protect:\n  - path: 'C:\\x'\n", 2, "drive letter"},
		"drive letter alone":           {"protect:\n  - path: 'z:'\n", 2, "drive letter"},
		"empty segment":                {"protect:\n  - path: a//b\n", 2, "empty segment"},
		"two slashes at the end":       {"protect:\n  - path: a//\n", 2, "empty segment"},
		"dot":                          {"protect:\n  - path: .\n", 2, `"." segment`},
		"dot and slash":                {"protect:\n  - path: ./\n", 2, `"." segment`},
		"leading dot segment":          {"protect:\n  - path: ./a\n", 2, `"." segment`},
		"dot segment":                  {"protect:\n  - path: a/./b\n", 2, `"." segment`},
		"parent":                       {"protect:\n  - path: ../a\n", 2, `".." segment`},
		"parent inside":                {"protect:\n  - path: a/../b\n", 2, `".." segment`},
		"NUL in a path":                {"protect:\n  - path: \"a\\0b\"\n", 2, "NUL"},
		"git directory":                {"protect:\n  - path: .git\n", 2, "git directory"},
		"in the git directory":         {"protect:\n  - path: .git/refs/heads\n", 2, "git directory"},
		"empty glob":                   {"protect:\n  - glob: ''\n", 2, "is empty"},
		"absolute glob":                {"protect:\n  - glob: /**\n", 2, "is absolute"},
		"glob with a slash at its end": {"protect:\n  - glob: a/**/\n", 2, "empty segment"},
		"glob that goes up":            {"protect:\n  - glob: '*/../*'\n", 2, `".." segment`},
		"glob in the git directory":    {"protect:\n  - glob: .git/**\n", 2, "git directory"},
		"glob of a git file":           {"protect:\n  - glob: .git/hooks/*.sh\n", 2, "git directory"},
		"value on a later line":        {"protect:\n  - mode: revert\n    # why\n    path:\n      /x\n", 5, "is absolute"},

		// Modes and limits.
		"bad mode":              {"contest_limit: 1\nmode: warn\n", 2, "revert or report"},
		"mode in capitals":      {"mode: Report\n", 1, "revert or report"},
		"mode is a bool":        {"mode: true\n", 1, "revert or report"},
		"bad mode in an entry":  {"protect:\n  - path: a\n    mode: off\n", 3, "revert or report"},
		"negative limit":        {"mode: revert\ncontest_limit: -1\n", 2, "whole number"},
		"fraction":              {"contest_limit: 1.5\n", 1, "whole number"},
		"exponent":              {"contest_limit: 1e2\n", 1, "whole number"},
		"string limit":          {"contest_limit: \"3\"\n", 1, "whole number"},
		"bool limit":            {"rule_contest_limit: yes\n", 1, "whole number"},
		"list limit":            {"rule_contest_limit: [1]\n", 1, "whole number"},
		"huge limit":            {"mode:\nrule_contest_limit: 99999999999999999999\n", 2, "whole number"},
		"limit beyond 32 bits":  {"rule_contest_limit: 2147483648\n", 1, "whole number"},
		"infinite limit":        {"contest_limit: .inf\n", 1, "whole number"},
		"number by tag only":    {"contest_limit: !!int x\n", 1, ""},
		"report on CI":          {"protect:\n  - mode: report\n    path: .github/workflows\n", 3, "would weaken"},
		"report inside CI":      {"protect:\n  - path: .circleci/config.yml\n    mode: report\n", 2, "would weaken"},
		"report around CI":      {"protect:\n  - path: .github\n    mode: report\n", 2, "would weaken"},
		"report on a secret":    {"protect:\n  - path: a/.env.local\n    mode: report\n", 2, "would weaken"},
		"report on the config":  {"protect:\n  - path: .cage.yaml\n    mode: report\n", 2, "would weaken"},
		"inherited report":      {"protect:\n  - path: .env\nmode: report\n", 2, "would weaken"},
		"report glob, literal":  {"mode: report\nprotect:\n  - glob: .env\n", 3, "would weaken"},
		"report glob, all":      {"mode: report\nprotect:\n  - glob: '**'\n", 3, "would weaken"},
		"report glob, star":     {"mode: report\nprotect:\n  - glob: '*'\n", 3, "would weaken"},
		"report glob, any .env": {"mode: report\nprotect:\n  - glob: '**/.env'\n", 3, "would weaken"},
		"report glob, one .env": {"mode: report\nprotect:\n  - glob: 'a/*/.env.local'\n", 3, "would weaken"},
		"report glob, CI file":  {"mode: report\nprotect:\n  - glob: '*.yml'\n", 3, "would weaken"},
		"report glob, in CI":    {"mode: report\nprotect:\n  - glob: .github/workflows/*.yml\n", 3, "would weaken"},
		"report glob, config":   {"mode: report\nprotect:\n  - glob: '.cage.????'\n", 3, "would weaken"},
	}
}

func TestConfigRefusals(t *testing.T) {
	for name, c := range refusedConfigs() {
		t.Run(name, func(t *testing.T) {
			p, err := New(Inputs{Layout: ordinary(), Config: yamlFile(c.text)})
			if p != nil {
				t.Error("a plan came with the refusal")
			}
			refused(t, err, CodeConfig, ConfigFile, c.line, c.part)
		})
	}
}

func TestSubtractiveWordsPointAtTheFlag(t *testing.T) {
	for _, word := range []string{"relax", "exclude", "excludes", "allow", "allow_override", "allow_overrides",
		"ignore", "unprotect", "override", "overrides", "disable", "skip"} {
		for _, text := range []string{word + ": x\n", "protect:\n- path: a\n  " + word + ": x\n"} {
			_, err := New(Inputs{Layout: ordinary(), Config: yamlFile(text)})
			refused(t, err, CodeConfig, ConfigFile, 1+strings.Count(text, "\n")-1, "take protection away")
			if refusal := (*Error)(nil); !errors.As(err, &refusal) || !strings.Contains(refusal.Hint, "--allow-override") {
				t.Errorf("the hint for %s does not point at --allow-override", word)
			}
		}
	}
}

// Every git directory in the root is out of bounds, under whatever name.
func TestConfigKeepsOutOfGitDirectories(t *testing.T) {
	l := Layout{Root: "/w", CommonDir: "/w/store/repo.git", GitDir: "/w/trees/a"}
	for _, value := range []string{"store", "store/repo.git", "store/repo.git/config", "trees", "trees/a/x", ".git", ".git/x"} {
		_, err := New(Inputs{Layout: l, Config: yamlFile("protect:\n- path: " + value + "\n")})
		refused(t, err, CodeConfig, ConfigFile, 2, "git directory")
	}
	for _, value := range []string{"store/repo.git/*", "trees/a/**"} {
		_, err := New(Inputs{Layout: l, Config: yamlFile("protect:\n- glob: '" + value + "'\n")})
		refused(t, err, CodeConfig, ConfigFile, 2, "git directory")
	}
	draft(t, Inputs{Layout: l, Config: yamlFile("protect: [{path: store/other}, {path: sub/.git/hooks}, {path: .github}, {path: .git-hooks}, {glob: '.git*'}]")})
}

func TestReportOnBuiltinsOfGit(t *testing.T) {
	hooks := root("tools/hooks")
	in := Inputs{Git: Git{Hooks: &hooks, Includes: []Path{root("git/inc.conf")}}}
	for _, entry := range []string{"path: tools", "path: tools/hooks", "path: tools/hooks/x", "glob: tools/*",
		"glob: tools/hooks/*", "path: git/inc.conf", "path: git", "glob: '*/*.conf'"} {
		in.Layout, in.Config = ordinary(), yamlFile("mode: report\nprotect:\n- "+entry+"\n")
		_, err := New(in)
		refused(t, err, CodeConfig, ConfigFile, 3, "would weaken")
	}
}

// What a built-in covers only once the tree is known is refused by Settle.
func TestReportOnWhatStandsInTheTree(t *testing.T) {
	found := []Path{root("svc/a/.env.local"), root(".github/workflows/ci.yml"), root("go.sum"), common("config")}
	for entry, refuse := range map[string]bool{
		"path: svc":              true,
		"path: svc/a":            true,
		"path: svc/b":            false,
		"glob: svc/**":           true,
		"glob: svc/a/*":          true,
		"glob: svc/*":            false,
		"glob: .github/*/*.yml":  true,
		"glob: .github/*/*.json": false,
		"path: go.sum":           false,
		"glob: 'go.*'":           false,
		"path: svc/a/.envrc":     false,
	} {
		p := draft(t, Inputs{Config: yamlFile("mode: report\nprotect:\n- " + entry + "\n")})
		_, err := p.Settle(found)
		if refuse {
			refused(t, err, CodeConfig, ConfigFile, 3, "would weaken")
		} else if err != nil {
			t.Errorf("%s: %v", entry, err)
		}
	}
	// The same entries in revert mode only add.
	settle(t, Inputs{Config: yamlFile("protect: [{path: svc}, {glob: '**'}]")}, found...)
}

// acceptedConfig is a text with the number of its entries.
type acceptedConfig struct {
	text    string
	entries int
}

func acceptedConfigs() map[string]acceptedConfig {
	return map[string]acceptedConfig{
		"empty":                       {"", 0},
		"blank":                       {"\n \n", 0},
		"comments":                    {"# nothing yet\n", 0},
		"byte order mark":             {"\ufeff", 0},
		"byte order mark and content": {"\ufeffprotect:\n- path: a\n", 1},
		"document start":              {"---\n", 0},
		"document start and end":      {"---\nprotect: [{path: a}]\n...\n", 1},
		"empty mapping":               {"{}", 0},
		"nulls":                       {"protect:\nmode: ~\ncontest_limit: null\nrule_contest_limit:\n", 0},
		"nulls in an entry":           {"protect: [{path: a, glob: ~, mode: null}]", 1},
		"JSON":                        {`{"protect": [{"path": "a"}, {"glob": "*.b", "mode": "report"}]}`, 2},
		"anchor without alias":        {"protect: &all\n- &one {path: &p a}\n", 1},
		"CRLF":                        {"protect:\r\n- path: a\r\n", 1},
		"literal metacharacters":      {`protect: [{path: "a*?[b]{c}\\"}, {glob: "[ab]{c,d}\\*"}]`, 2},
		"names that look odd":         {`protect: [{path: "..."}, {path: "a\nb"}, {path: "~"}, {path: "ab:c"}, {path: " "}, {path: "..a/b.."}]`, 6},
		"string by tag":               {"protect: [{path: !!str 12}]", 1},
		"long key style":              {"? protect\n: - path: a\n", 1},
		"report where nothing is":     {"mode: report\nprotect: [{path: docs}, {path: .envrc}, {path: node_modules/.env}, {glob: 'logs/*'}, {path: .env/x}, {path: .github/x}]", 6},
	}
}

func TestConfigAccepted(t *testing.T) {
	for name, c := range acceptedConfigs() {
		t.Run(name, func(t *testing.T) {
			p := draft(t, Inputs{Config: yamlFile(c.text)})
			if p.ConfigEntries() != c.entries || !p.ConfigPresent() {
				t.Errorf("%d entries, want %d", p.ConfigEntries(), c.entries)
			}
		})
	}
	if p := draft(t, Inputs{}); p.ConfigPresent() {
		t.Error("a config is present where none is")
	}
}

func TestLimits(t *testing.T) {
	for text, want := range map[string][2]int{
		"":                                      {-1, -1},
		"contest_limit: 0":                      {0, -1},
		"rule_contest_limit: 25":                {-1, 25},
		"contest_limit: 5\nrule_contest_limit:": {5, -1},
		"contest_limit: 2147483647":             {1<<31 - 1, -1},
		"contest_limit: 0x10":                   {16, -1},
	} {
		p := draft(t, Inputs{Config: yamlFile(text)})
		got := [2]int{-1, -1}
		if n, ok := p.ContestLimit(); ok {
			got[0] = n
		}
		if n, ok := p.RuleContestLimit(); ok {
			got[1] = n
		}
		if got != want {
			t.Errorf("%q sets %v, want %v", text, got, want)
		}
	}
}

func TestModeIsInherited(t *testing.T) {
	p := settle(t, Inputs{Config: yamlFile("protect: [{path: a}, {path: b, mode: revert}, {path: c, mode: ~}]\nmode: report")})
	check(t, p, map[Path]string{
		root("a"): "cage_protect:report", root("b"): "cage_protect:revert", root("c"): "cage_protect:report",
		root(".env"): "secrets:revert",
	})
}

// Whatever a file holds, it is refused in bounded time and space.
func TestHostileConfigs(t *testing.T) {
	var laughs strings.Builder
	laughs.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 30; i++ {
		alias := "*a" + string(rune('0'+(i-1)/10)) + string(rune('0'+(i-1)%10))
		if i == 1 {
			alias = "*a0"
		}
		laughs.WriteString("a" + string(rune('0'+i/10)) + string(rune('0'+i%10)) + ": &a" + string(rune('0'+i/10)) +
			string(rune('0'+i%10)) + " [" + strings.Repeat(alias+", ", 9) + "]\n")
	}
	for name, text := range map[string]string{
		"laughs":            laughs.String(),
		"deep lists":        strings.Repeat("[", MaxFile),
		"deep mappings":     strings.Repeat("{a: ", MaxFile/4),
		"deep block":        strings.Repeat("- ", MaxFile/2),
		"deep but legal":    "protect: " + strings.Repeat("[", 9000) + strings.Repeat("]", 9000),
		"long key":          strings.Repeat("a", MaxFile-2) + ": ",
		"long scalar":       strings.Repeat("a", MaxFile),
		"broken at its end": strings.Repeat("x: 1\n", MaxFile/5-1) + "]\n",
		"one byte too many": strings.Repeat("#", MaxFile+1),
		"too large by far":  strings.Repeat("\n", 8*MaxFile),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(Inputs{Layout: ordinary(), Config: yamlFile(text)})
			refusal := (*Error)(nil)
			if !errors.As(err, &refusal) || refusal.Code != CodeConfig {
				t.Fatalf("got %v", err)
			}
			if len(err.Error()) > 1000 {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
		})
	}
	draft(t, Inputs{Config: yamlFile(strings.Repeat("#", MaxFile))})
}

func TestErrors(t *testing.T) {
	err := Unreadable(ConfigFile, fs.ErrPermission)
	if err.Code != CodeConfig || !errors.Is(err, fs.ErrPermission) || err.Hint == "" {
		t.Errorf("%+v", err)
	}
	if got, want := err.Error(), ".cage.yaml: the file cannot be read: permission denied"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if Unreadable(ManifestJSON, fs.ErrPermission).Code != CodeManifest {
		t.Error("an unreadable manifest has another code")
	}
	_, bad := New(Inputs{Layout: ordinary(), Config: yamlFile("a: b")})
	if got, want := bad.Error(), `.cage.yaml:1: unknown key "a"`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	_, bad = New(Inputs{Layout: ordinary(), Config: yamlFile("mode:\n" + strings.Repeat("k", 5000) + ": b")})
	if len(bad.Error()) > 200 {
		t.Errorf("a long key makes a message of %d bytes", len(bad.Error()))
	}
	_, bad = New(Inputs{Layout: ordinary(), Overrides: []string{"/x\x1b[2J"}})
	if strings.ContainsRune(bad.Error(), '\x1b') {
		t.Error("a control byte reaches the message")
	}
}
