package rules

import (
	"strings"
	"testing"
)

func TestManifestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		line int
		part string
	}{
		"empty":                   {"", 0, "empty"},
		"comments":                {"# x\n", 0, "empty"},
		"no content":              {"---\n", 0, "empty"},
		"list":                    {"\n- a\n", 2, "must be a mapping"},
		"null":                    {"\n~\n", 2, "must be a mapping"},
		"syntax":                  {"schema_version: 1\nskills:\n  a: {}\n b: {}\n", 4, "invalid YAML"},
		"not UTF-8":               {"schema_version: \"1\"\nx: \xff", 2, "not UTF-8"},
		"two documents":           {"schema_version: 1\n---\nskills: {}\n", 2, "second document"},
		"no version":              {"# x\nskills: {a: {}}\n", 2, "schema_version"},
		"null version":            {"skills: {a: {}}\nschema_version:\n", 2, "schema_version"},
		"empty version":           {"skills: {a: {}}\nschema_version: ''\n", 2, "schema_version"},
		"version is a list":       {"skills: {a: {}}\nschema_version: [1]\n", 2, "schema_version"},
		"no skills":               {"schema_version: 1\n", 1, "skills"},
		"null skills":             {"schema_version: 1\nskills:\n", 2, "skills"},
		"empty skills":            {"schema_version: 1\nskills: {}\n", 2, "skills"},
		"skills is a list":        {"schema_version: 1\nskills:\n  - a\n", 3, "skills"},
		"skill is null":           {"schema_version: 1\nskills:\n  a:\n", 3, "must be a mapping"},
		"skill is a string":       {"schema_version: 1\nskills:\n  a: b\n", 3, "must be a mapping"},
		"zones are a string":      {"schema_version: 1\nskills:\n  a:\n    forbidden_zones: x\n", 4, "must be a list"},
		"zones are a mapping":     {"schema_version: 1\nskills:\n  a: {forbidden_zones: {x: y}}\n", 3, "must be a list"},
		"zone is a number":        {"schema_version: 1\nskills:\n  a:\n    forbidden_zones:\n      - 1\n", 5, "must be a string"},
		"zone is null":            {"schema_version: 1\nskills:\n  a:\n    forbidden_zones:\n      -\n", 5, "must be a string"},
		"empty zone":              {"schema_version: 1\nskills: {a: {forbidden_zones: ['']}}\n", 2, "is empty"},
		"absolute zone":           {"schema_version: 1\nskills: {a: {forbidden_zones: [a, /b]}}\n", 2, "is absolute"},
		"zone goes up":            {"schema_version: 1\nskills:\n  a: {}\n  b: {forbidden_zones: [a/../b]}\n", 4, `".." segment`},
		"zone is the root":        {"schema_version: 1\nskills: {a: {forbidden_zones: [.]}}\n", 2, `"." segment`},
		"zone in git":             {"schema_version: 1\nskills: {a: {forbidden_zones: [.git/refs]}}\n", 2, "git directory"},
		"duplicate skill":         {"schema_version: 1\nskills:\n  a: {}\n  a: {forbidden_zones: [x]}\n", 4, "comes twice"},
		"duplicate skills":        {"schema_version: 1\nskills: {a: {}}\nskills: {b: {}}\n", 3, "comes twice"},
		"duplicate zones":         {"schema_version: 1\nskills:\n  a:\n    forbidden_zones: [x]\n    forbidden_zones: []\n", 5, "comes twice"},
		"skill by alias":          {"schema_version: 1\nskills:\n  a: &a {}\n  b: *a\n", 4, "must be a mapping"},
		"zones by alias":          {"schema_version: 1\nx: &z [a]\nskills:\n  a: {forbidden_zones: *z}\n", 4, "must be a list"},
		"key by alias":            {"schema_version: &k skills\n*k : {a: {}}\n", 2, "aliases"},
		"zones by merge":          {"schema_version: 1\nx: &z {forbidden_zones: [a]}\nskills:\n  a:\n    <<: *z\n", 5, "merging"},
		"skills by merge":         {"schema_version: 1\n<<: {skills: {a: {}}}\n", 2, "merging"},
		"too large":               {strings.Repeat("#", MaxFile+1), 0, "larger"},
		"unknown alias elsewhere": {"schema_version: 1\nskills: {a: {}}\nx: *y\n", 3, "aliases"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(Inputs{Layout: ordinary(), ManifestYAML: yamlFile(c.text)})
			refused(t, err, CodeManifest, ManifestYAML, c.line, c.part)
		})
	}
}

func TestJSONManifestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		line int
		part string
	}{
		"empty":         {"", 1, "invalid JSON"},
		"YAML":          {"schema_version: 1\nskills: {a: {}}\n", 1, "invalid JSON"},
		"comma":         {"{\n  \"schema_version\": \"1\",\n  \"skills\": {\"a\": {}},\n}", 4, "invalid JSON"},
		"cut short":     {"{\n  \"schema_version\": \"1\",\n", 2, "invalid JSON"},
		"two documents": {"{}\n{}", 2, "invalid JSON"},
		"not UTF-8":     {"{\n\"a\": \"\xff\"}", 2, "not UTF-8"},
		"list":          {"\n[]", 2, "must be a mapping"},
		"null":          {"null", 1, "must be a mapping"},
		"no version":    {"{\"skills\": {\"a\": {}}}", 1, "schema_version"},
		"null version":  {"{\"skills\": {\"a\": {}},\n \"schema_version\": null}", 2, "schema_version"},
		"null skill":    {"{\"schema_version\": \"1\",\n\"skills\": {\n\"a\": null}}", 3, "must be a mapping"},
		"bad zone":      {"{\"schema_version\": \"1\",\n\"skills\": {\"a\": {\"forbidden_zones\": [\n\"ok\",\n\"/x\"\n]}}}", 4, "is absolute"},
		"number zone":   {"{\"schema_version\": \"1\",\n\"skills\": {\"a\": {\"forbidden_zones\": [1]}}}", 2, "must be a string"},
		"duplicate":     {"{\"schema_version\": \"1\",\n\"skills\": {\"a\": {}},\n\"skills\": {\"a\": {}}}", 3, "comes twice"},
		"deep":          {strings.Repeat("[", 20000) + strings.Repeat("]", 20000), 1, "invalid JSON"},
		"NUL in a zone": {"{\"schema_version\": \"1\", \"skills\": {\"a\": {\"forbidden_zones\": [\"a\\u0000\"]}}}", 1, "NUL"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(Inputs{Layout: ordinary(), ManifestJSON: yamlFile(c.text)})
			refused(t, err, CodeManifest, ManifestJSON, c.line, c.part)
		})
	}
}

func TestManifestAccepted(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		zones int
	}{
		"no zones":           {"schema_version: 0.5.0\nskills: {a: {}}\n", 0},
		"null zones":         {"schema_version: 0.5.0\nskills: {a: {forbidden_zones: }}\n", 0},
		"union":              {"schema_version: 1\nskills:\n  a: {forbidden_zones: [x, y/]}\n  b: {forbidden_zones: [y, z]}\n", 3},
		"globs are literal":  {"schema_version: 1\nskills: {a: {forbidden_zones: ['*', '**/x']}}\n", 2},
		"unused keys":        {"schema_version: 1\nskills: {a: {gate_commands: [x], 1: y, [k]: v}}\nx: &x {a: 1}\ny: {<<: *x}\n2: z\nskip: true\n", 0},
		"anchors":            {"schema_version: &v 1\nskills: &s {a: &t {forbidden_zones: &z [&u x]}}\n", 1},
		"byte order mark":    {"\ufeffschema_version: 1\nskills: {a: {}}\n", 0},
		"numbers for skills": {"schema_version: 1\nskills: {1: {forbidden_zones: [x]}}\n", 1},
	} {
		p := draft(t, Inputs{ManifestYAML: yamlFile(c.text)})
		if p.Zones() != c.zones {
			t.Errorf("%s: %d zones, want %d", name, p.Zones(), c.zones)
		}
	}
	p := draft(t, Inputs{ManifestJSON: yamlFile("\ufeff{\n\t\"schema_version\": 1.0,\n\t\"skills\": {\"\\ud83d\\ude00\": {\"forbidden_zones\": [\"a\\/b\", \"\\ud83d\\ude00\"]}},\n\t\"x\": [true, null, {}]\n}")})
	check(t, p, map[Path]string{root("a/b/c"): "manifest_forbidden_zone:revert", root("😀"): "manifest_forbidden_zone:revert"})
	if p.Zones() != 2 || p.ConfigPresent() {
		t.Errorf("%d zones", p.Zones())
	}
	if draft(t, Inputs{}).Zones() != 0 {
		t.Error("zones without a manifest")
	}
}

func TestBothManifests(t *testing.T) {
	const text = "schema_version: 0.5.0\nskills:\n  a: {forbidden_zones: [x, y], trust: 0.50}\nflag: true\nnone: ~\ndate: 2020-01-01\n"
	same := `{"none": null, "date": "2020-01-01", "flag": true, "skills": {"a": {"trust": 5e-1, "forbidden_zones": ["x", "y"]}}, "schema_version": "0.5.0"}`
	p := draft(t, Inputs{ManifestYAML: yamlFile(text), ManifestJSON: yamlFile(same)})
	if p.Zones() != 2 {
		t.Errorf("%d zones", p.Zones())
	}
	for name, other := range map[string]string{
		"other zone":    strings.Replace(same, `"x"`, `"z"`, 1),
		"other order":   strings.Replace(same, `["x", "y"]`, `["y", "x"]`, 1),
		"one zone less": strings.Replace(same, `["x", "y"]`, `["x"]`, 1),
		"other version": strings.Replace(same, "0.5.0", "0.5.1", 1),
		"one key less":  strings.Replace(same, `"flag": true, `, "", 1),
		"one key more":  strings.Replace(same, `"flag"`, `"more": 1, "flag"`, 1),
		"other key":     strings.Replace(same, `"flag"`, `"flags"`, 1),
		"other kind":    strings.Replace(same, `"x", "y"`, `"x", ["y"]`, 1),
		"key repeated":  strings.Replace(same, `"flag": true, `, `"none": null, `, 1),
		"nothing":       "null",
	} {
		t.Run(name, func(t *testing.T) {
			if other == same {
				t.Fatal("the case changes nothing")
			}
			_, err := New(Inputs{Layout: ordinary(), ManifestYAML: yamlFile(text), ManifestJSON: yamlFile(other)})
			refused(t, err, CodeManifest, ManifestYAML, 0, "differs")
		})
	}
	_, err := New(Inputs{Layout: ordinary(), ManifestYAML: yamlFile(text), ManifestJSON: yamlFile("{")})
	refused(t, err, CodeManifest, ManifestJSON, 1, "invalid JSON")
	_, err = New(Inputs{Layout: ordinary(), ManifestYAML: yamlFile(""), ManifestJSON: yamlFile(same)})
	refused(t, err, CodeManifest, ManifestYAML, 0, "differs")
}
