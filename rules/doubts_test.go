package rules

import (
	"slices"
	"strings"
	"testing"
)

// Promise: what is valid and likely meant otherwise is told, and nothing that
// covers something.
func TestDoubts(t *testing.T) {
	names := `names one file of that very name; `
	for name, c := range map[string]struct {
		entry       string
		files, dirs string
		want        string
	}{
		"path with a star":             {`path: "infra/*"`, "", "infra", `path "infra/*" ` + names + `for a pattern write glob: "infra/*"`},
		"path with stars":              {`path: "**/*.pem"`, "a.pem", "", `path "**/*.pem" ` + names + `for a pattern write glob: "**/*.pem"`},
		"path with a question mark":    {`path: a?`, "ab", "", `path "a?" ` + names + `for a pattern write glob: "a?"`},
		"path with braces":             {`path: "a.{b,c}"`, "a.b", "", `path "a.{b,c}" ` + names + "write one entry for each"},
		"file of that very name":       {`path: "infra/*"`, "infra/*", "", ""},
		"directory of that very name":  {`path: "infra/*"`, "", "infra/*", ""},
		"files in a directory of it":   {`path: "infra/*/"`, "infra/*/a", "infra/*", ""},
		"path that is not there":       {`path: infra`, "", "", ""},
		"path in brackets":             {`path: "app/[id].tsx"`, "", "", ""},
		"path with braces for a field": {`path: "{{name}}/x"`, "", "", ""},

		"glob of a directory":          {`glob: src`, "", "src", `glob "src" matches files only, and "src" is a directory; write path: "src/" or glob: "src/**"`},
		"glob of a directory deep":     {`glob: a/src`, "", "a a/src", `glob "a/src" matches files only, and "a/src" is a directory; write path: "a/src/" or glob: "a/src/**"`},
		"glob of directories":          {`glob: "**/src"`, "", "b/src a/src", `glob "**/src" matches files only, and "a/src" is a directory; write glob: "**/src/**"`},
		"glob of what lies in one":     {`glob: infra/*`, "", "infra infra/prod", `glob "infra/*" matches files only, and "infra/prod" is a directory; write glob: "infra/*/**"`},
		"glob of a file":               {`glob: src`, "src", "", ""},
		"glob of nothing yet":          {`glob: src`, "", "lib", ""},
		"glob of files too":            {`glob: infra/*`, "infra/a.tf", "infra infra/prod", ""},
		"glob of all files":            {`glob: "**/*"`, "", "a a/b", ""},
		"glob of all below":            {`glob: "a/**"`, "", "a a/b", ""},
		"directory that is covered":    {"glob: src\n  - path: src", "", "src", ""},
		"directory that a glob covers": {"glob: src\n  - glob: src/**", "", "src", ""},

		"stars before an ending":       {`glob: "**.pem"`, "a.pem", "", "glob \"**.pem\" has ** beside other characters, where it is no more than *; for any depth write \"**/*.pem\""},
		"stars before an ending, deep": {`glob: "a/**/b/***.pem"`, "", "", "glob \"a/**/b/***.pem\" has ** beside other characters, where it is no more than *; for any depth write \"a/**/b/**/*.pem\""},
		"stars behind a name":          {`glob: "infra**"`, "", "infra", "glob \"infra**\" has ** beside other characters, where it is no more than *; for any depth write it between slashes"},
		"stars on both sides":          {`glob: "**a**"`, "", "", "glob \"**a**\" has ** beside other characters, where it is no more than *; for any depth write it between slashes"},
		"stars of their own":           {`glob: "a/**/b*/**"`, "", "", ""},

		"glob with braces":             {`glob: "*.{a,b}"`, "x.a", "", `glob "*.{a,b}" takes braces as they stand, and no file matches it; write one entry for each`},
		"glob with a range":            {`glob: "f{1..3}"`, "f1", "", `glob "f{1..3}" takes braces as they stand, and no file matches it; write one entry for each`},
		"glob with a class":            {`glob: "*.[ch]"`, "x.c", "", `glob "*.[ch]" takes brackets as they stand, and no file matches it; write one entry for each`},
		"glob of names with braces":    {`glob: "*.{a,b}"`, "x.{a,b}", "", ""},
		"glob of names with brackets":  {`glob: "app/[id]/*"`, "app/[id]/a", "app/[id]", ""},
		"glob with braces for a field": {`glob: "${a}{{b}}/x}{y,z"`, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := draft(t, Inputs{Config: yamlFile("protect:\n  - " + c.entry + "\n")})
			var found, dirs []Path
			for rel := range strings.FieldsSeq(c.files) {
				if _, ok := p.Classify(root(rel)); ok {
					found = append(found, root(rel))
				}
			}
			for rel := range strings.FieldsSeq(c.dirs) {
				if p.Doubtful(root(rel)) {
					dirs = append(dirs, root(rel))
				}
			}
			p, err := p.Settle(found)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			if c.want != "" {
				want = []string{".cage.yaml:2: " + c.want}
			}
			if got := p.Doubts(found, dirs); !slices.Equal(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}

// Promise: a zone is told of where it is named first.
func TestDoubtsOfZones(t *testing.T) {
	text := "schema_version: 1\nskills:\n  b:\n    forbidden_zones: [a]\n  a:\n    forbidden_zones:\n      - a/**\n      - a/**\n"
	p := settle(t, Inputs{ManifestYAML: yamlFile(text)}, root("a/b"))
	want := []string{ManifestYAML + `:7: zone "a/**" names one file of that very name; for a pattern write glob: "a/**" in .cage.yaml`}
	if got := p.Doubts([]Path{root("a/b")}, nil); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if got := p.Doubts([]Path{root("a/**")}, nil); len(got) > 0 {
		t.Errorf("got %q", got)
	}
}

// Promise: whoever ends a glob with a slash is told how directories are named.
func TestGlobOfADirectoryIsRefusedWithAWay(t *testing.T) {
	for text, want := range map[string]string{
		"src/":      `for a directory write path: "src/" or glob: "src/**"`,
		"a/b//":     `for a directory write path: "a/b/" or glob: "a/b/**"`,
		"'**/src/'": `for a directory write glob: "**/src/**"`,
		"a//b/":     rootRelative,
		"/":         rootRelative,
	} {
		_, err := New(Inputs{Layout: ordinary(), Config: yamlFile("protect:\n  - glob: " + text + "\n")})
		if e, ok := err.(*Error); !ok || e.Hint != want {
			t.Errorf("%s: got %#v", text, err)
		}
	}
}
