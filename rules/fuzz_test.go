package rules

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// richPlan has a rule of every kind and anchors that lie in one another.
func richPlan(t testing.TB) *Plan {
	in := Inputs{
		Layout: Layout{Root: "/h/w", CommonDir: "/h/w/.git", GitDir: "/h/w/.git/worktrees/t", HooksDir: "/h"},
		Git: Git{
			Hooks:    &Path{Anchor: HooksDir},
			Includes: []Path{root("conf/git.inc")},
		},
		Config: yamlFile(`
protect:
  - path: infra
  - path: node_modules/a/b
  - path: m/.git/hooks
  - glob: "**/*.pem"
  - glob: "k?s/**/[x]*"
  - glob: "logs/**"
    mode: report
`),
		ManifestYAML: yamlFile("schema_version: 1\nskills: {a: {forbidden_zones: [zone, a/b/c]}}"),
		Overrides:    []string{"infra/dev", "relaxed"},
	}
	p := settle(t, in, Path{HooksDir, "pre-push"}, root("relaxed/.env"))
	return p.With([]Joined{
		{root("venv/real"), Verdict{Rule: Secrets, Source: Builtin, Mode: Revert}},
		{Path{Outside, "etc/real"}, Verdict{Rule: Secrets, Source: Builtin, Mode: Revert}},
	})
}

func FuzzClassify(f *testing.F) {
	p := richPlan(f)
	seeds := []string{
		".env", "a/.env.local", "relaxed/.env", ".github/workflows/ci.yml", ".git/config", ".git/worktrees/t/gitdir",
		"infra/x", "infra/dev/x", "infra/.x.swp", "node_modules/a/b/c", "m/.git/hooks/x", "k8s/a/[x]y", "logs/a", "zone/z",
		"venv/real", "go.sum", "conf/git.inc", "x.pem", "\xff/\xfe.pem", "new\nline/.env", ".cage.yaml",
		"main.go", "venv/.env", "node_modules/x.pem", "m/.git/config", "", "....", "w/.env", "pre-push", "etc/real",
	}
	matched := 0
	for _, seed := range seeds {
		for anchor := range byte(Outside + 1) {
			f.Add(seed, anchor, uint16(0))
			f.Add(seed, anchor, uint16(0xa5c3))
			if _, ok := p.Classify(Path{Anchor(anchor), seed}); ok {
				matched++
			}
		}
	}
	if matched < len(seeds)/2 || matched == len(seeds)*int(Outside+1) {
		f.Fatalf("%d seeds match: they do not exercise the plan", matched)
	}
	f.Fuzz(func(t *testing.T, rel string, anchor byte, noise uint16) {
		path, err := Clean(Anchor(anchor%byte(Outside+1)), rel)
		if err != nil {
			return
		}
		verdict, ok := p.Classify(path)
		if ok != (verdict.Rule != "") || verdict.Overridden && verdict.Mode == Revert {
			t.Fatalf("%v: impossible verdict %+v, %v", path, verdict, ok)
		}
		again, err := Clean(path.Anchor, noisy(path.Rel, noise))
		if err != nil || again != path {
			t.Fatalf("%q cleans to %v, %v, want %v", noisy(path.Rel, noise), again, err, path)
		}
		home := p.ground.home(path)
		if same, _ := p.Classify(home); same != verdict {
			t.Fatalf("%v is %+v, and %+v as %v", path, verdict, same, home)
		}
		if p.ground.layout.Abs(home) != p.ground.layout.Abs(path) {
			t.Fatalf("%v and %v are two places", home, path)
		}
		if ok {
			reachable(t, p, home)
		}
	})
}

// noisy spells rel with "." segments and repeated slashes.
func noisy(rel string, noise uint16) string {
	var out strings.Builder
	for segment := range strings.SplitSeq(rel, "/") {
		out.WriteString([]string{"", "./", ".//", "././"}[noise&3])
		if out.Len() > 0 && segment == "" {
			continue
		}
		out.WriteString(segment)
		out.WriteString([]string{"/", "//", "/./", "///"}[noise>>2&3])
		noise = noise>>4 | noise<<12
	}
	return strings.TrimLeft(out.String(), "/")
}

// reachable asserts that a walk which asks Enter comes by path.
func reachable(t *testing.T, p *Plan, path Path) {
	t.Helper()
	for dir := path; dir.Rel != ""; {
		dir = dir.Dir()
		if !p.Enter(dir) {
			t.Fatalf("%v is protected, and no walk enters %v", path, dir)
		}
	}
}

// stands are paths which no source of rules may take out of revert mode.
func stands() []Path {
	return []Path{root(".env"), root("a/.env.local"), root(".github/workflows/ci.yml"), root(".cage.yaml"),
		root(".gitlab-ci.yml"), common("config"), common("hooks/pre-commit"), root(".git/info/attributes")}
}

// sound asserts what holds for whatever New makes of a hostile source.
func sound(t *testing.T, p *Plan, err error, code Code, data []byte) {
	t.Helper()
	if err != nil {
		refusal := (*Error)(nil)
		if !errors.As(err, &refusal) || refusal.Code != code || refusal.Message == "" {
			t.Fatalf("%q: untyped refusal %v", data, err)
		}
		// YAML knows more line breaks than the newline.
		breaks := 1 + bytes.Count(data, []byte("\n")) + bytes.Count(data, []byte("\r")) +
			bytes.Count(data, []byte("\u0085")) + bytes.Count(data, []byte("\u2028")) + bytes.Count(data, []byte("\u2029"))
		if refusal.Line < 0 || refusal.Line > breaks {
			t.Fatalf("%q: line %d of %d: %v", data, refusal.Line, breaks, err)
		}
		if len(err.Error()) > 2000 {
			t.Fatalf("%q: a message of %d bytes", data, len(err.Error()))
		}
		return
	}
	for _, path := range stands() {
		if v, ok := p.Classify(path); !ok || v.Mode != Revert {
			t.Fatalf("%q takes %v out of protection: %+v", data, path, v)
		}
	}
	for _, target := range p.Targets() {
		clean, err := Clean(target.Path.Anchor, target.Path.Rel)
		if err != nil || clean != target.Path || clean.Rel == "" {
			t.Fatalf("%q makes the target %v", data, target.Path)
		}
		reachable(t, p, target.Path)
	}
}

func FuzzConfig(f *testing.F) {
	accepted, matched := 0, 0
	seeds := []string{
		"", "protect: [{path: a}, {glob: '**/*.b', mode: report}]\nmode: revert\ncontest_limit: 1\n", "mode: report\n",
		"protect:\n- &a {path: x}\n- *a\n", "<<: {}\n", "protect: [", "a: !!binary YQ==\n", "\ufeff---\n...\n", "x: |\n  a\n",
		"protect:\n  - path: \"\\x00\"\n", "? {a: b}\n: c\n", "protect: [{path: a/b/}]\n", "- #\n - #", "exclude: 1\n",
		"mode: report\nprotect: [{glob: '*'}]\n", "%YAML 1.1\n---\n{}\n", "protect: !x [{path: y}]", "\"\\ud800\": 1",
	}
	for _, seed := range seeds {
		f.Add([]byte(seed))
		p, err := New(Inputs{Layout: ordinary(), Config: yamlFile(seed)})
		if err != nil {
			continue
		}
		accepted++
		if _, ok := p.Classify(root("a/b")); ok {
			matched++
		}
	}
	if accepted == 0 || accepted == len(seeds) || matched == 0 {
		f.Fatalf("of %d seeds %d are accepted and %d protect something", len(seeds), accepted, matched)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := New(Inputs{Layout: ordinary(), Config: File{Present: true, Data: data}})
		sound(t, p, err, CodeConfig, data)
	})
}

func FuzzManifest(f *testing.F) {
	const asYAML = "schema_version: 1\nskills:\n  a: {forbidden_zones: [x, y/z]}\n"
	const asJSON = `{"schema_version": "1", "skills": {"a": {"forbidden_zones": ["x", "y/z"]}}}`
	zones := 0
	for _, seed := range []string{asYAML, asJSON, "", "[]", "null", `{"a": [1, {"b": null}]}`, "skills: &a {b: *a}\n",
		"schema_version: 1\nskills: {a: {<<: {forbidden_zones: [x]}}}\n", `{"\ud800": 1e999}`, "{}{}"} {
		for kind := range byte(3) {
			f.Add([]byte(seed), kind)
			if p, err := New(manifests([]byte(seed), kind)); err == nil {
				zones += p.Zones()
			}
		}
	}
	if zones == 0 {
		f.Fatal("no seed names a zone")
	}
	f.Fuzz(func(t *testing.T, data []byte, kind byte) {
		p, err := New(manifests(data, kind))
		sound(t, p, err, CodeManifest, data)
	})
}

func manifests(data []byte, kind byte) Inputs {
	in, file := Inputs{Layout: ordinary()}, File{Present: true, Data: data}
	if kind%3 != 1 {
		in.ManifestYAML = file
	}
	if kind%3 != 0 {
		in.ManifestJSON = file
	}
	return in
}

func FuzzOverride(f *testing.F) {
	in := Inputs{Layout: ordinary(), Config: yamlFile("protect: [{path: infra}, {glob: '**/*.pem'}]")}
	found := []Path{root("a/.env"), root("infra/x"), common("config"), root(".cage.yaml")}
	relaxed, refusals := 0, 0
	for _, seed := range []string{".env", "./a/", "infra", ".github", "x.pem", "\xff.pem", ".git", ".git/config",
		".cage.yaml", "", ".", "../x", "/x", "c:", "a\x00", "src", "a//b", strings.Repeat("a/", 500) + ".env"} {
		f.Add(seed)
		in.Overrides = []string{seed}
		if p, err := New(in); err != nil {
			refusals++
		} else if p, err = p.Settle(found); err != nil {
			refusals++
		} else {
			for _, path := range found {
				if verdict, _ := p.Classify(path); verdict.Overridden {
					relaxed++
				}
			}
		}
	}
	if relaxed == 0 || refusals == 0 {
		f.Fatalf("the seeds relax %d paths and are refused %d times", relaxed, refusals)
	}
	f.Fuzz(func(t *testing.T, word string) {
		in := in
		in.Overrides = []string{word}
		p, err := New(in)
		if err == nil {
			p, err = p.Settle(found)
		}
		if err != nil {
			refusal := (*Error)(nil)
			if !errors.As(err, &refusal) || refusal.Code != CodeOverride {
				t.Fatalf("%q: untyped refusal %v", word, err)
			}
			return
		}
		names := p.Overrides()
		if clean, err := Clean(Root, word); err != nil || len(names) != 1 || names[0] != clean.Rel {
			t.Fatalf("%q became %q", word, names)
		}
		for _, path := range []Path{root(".cage.yaml"), common("config"), common("hooks/x"), root(".git/commondir")} {
			if v, _ := p.Classify(path); v.Mode != Revert {
				t.Fatalf("%q relaxes %v", word, path)
			}
		}
		for _, path := range found {
			before, _ := draft(t, in).Classify(path)
			after, _ := p.Classify(path)
			if (after != before) != path.Within(root(names[0])) {
				t.Fatalf("%q turns %v from %+v to %+v", word, path, before, after)
			}
		}
	})
}
