package rules

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestGlobs(t *testing.T) {
	for _, c := range []struct {
		pattern string
		yes, no []string
	}{
		{"**/*.pem", []string{"a.pem", "a/b.pem", "a/b/c.pem", ".pem", "a/.pem", "\xff.pem"}, []string{"a.pem.bak", "apem", "a.pem/b", "a.PEM"}},
		{"*.pem", []string{"a.pem", ".pem"}, []string{"a/b.pem"}},
		{"k8s/*.yaml", []string{"k8s/a.yaml", "k8s/.yaml"}, []string{"k8s/a/b.yaml", "x/k8s/a.yaml", "k8s/ayaml", "k8sa.yaml"}},
		{"db/migrations/**", []string{"db/migrations/1", "db/migrations/a/b/c"}, []string{"db/migrations", "db/migrations2/x", "x/db/migrations/1"}},
		{"**/x", []string{"x", "a/x", "a/b/x"}, []string{"ax", "x/a", "a/bx"}},
		{"a/**/b", []string{"a/b", "a/x/b", "a/x/y/b"}, []string{"a/xb", "ab", "a/b/c", "xa/b"}},
		{"a/**/**/b", []string{"a/b", "a/x/b", "a/x/y/b"}, []string{"ab"}},
		{"**", []string{"a", "a/b", ".env", "\n", "\xff/\xfe"}, nil},
		{"**/**", []string{"a", "a/b"}, nil},
		{"**/*", []string{"a", "a/b"}, nil},
		{"*/**", []string{"a/b", "a/b/c"}, nil},
		{"a/*/**", []string{"a/b/c"}, []string{"a"}},
		{"a**", []string{"a", "abc"}, []string{"a/b", "ab/c"}},
		{"**a", []string{"a", "bca"}, []string{"b/a"}},
		{"a**b/c", []string{"ab/c", "axb/c"}, []string{"a/b/c"}},
		{"***", []string{"a"}, []string{"a/b"}},
		{"***/b", []string{"a/b"}, []string{"b", "a/a/b"}},
		{"?", []string{"a", "é", "\xff", "\n", "?", "*"}, []string{"", "ab", "\xff\xff", "/"}},
		{"a?b", []string{"aéb", "a\xffb"}, []string{"ab", "a/b", "aéeb"}},
		{"??", []string{"\xff\xfe", "é\xff"}, []string{"é", "\xff"}},
		{"é?", []string{"éa"}, []string{"\xc3a", "\xc3\xa9"}},
		{"[ab]", []string{"[ab]"}, []string{"a", "b"}},
		{"{a,b}", []string{"{a,b}"}, []string{"a", "b"}},
		{"[!a]*", []string{"[!a]", "[!a]x"}, []string{"b"}},
		{`a\*`, []string{`a\`, `a\b`}, []string{"a*", "ab"}},
		{`\`, []string{`\`}, []string{""}},
		{`\\?`, []string{`\\x`}, []string{`\x`, `\?`}},
		{"{", []string{"{"}, nil},
		{"]*[", []string{"][", "]x["}, nil},
		{"*{a,**}/x", []string{"{a,}/x", "b{a,z}/x"}, []string{"a/x"}},
		{"a.b", []string{"a.b"}, []string{"axb"}},
		{"a+(b)$^|", []string{"a+(b)$^|"}, []string{"ab"}},
		{"\ufffd", []string{"\ufffd"}, []string{"\xff", "\xfe"}},
		{"\ufffd*", []string{"\ufffd\xff", "\ufffda"}, []string{"\xffa"}},
		{"?\ufffd", []string{"\xff\ufffd", "a\ufffd"}, []string{"a\xff", "\xff\xff"}},
		{"a\nb/*", []string{"a\nb/c", "a\nb/\n"}, []string{"a/b"}},
		{"*a*a*a*a*a*b", []string{"aaaaaab"}, []string{strings.Repeat("a", 4000)}},
		{"**/a/**/a/**/a/**/b", []string{"a/a/a/b"}, []string{strings.Repeat("a/", 2000) + "c"}},
	} {
		g := newGlob(c.pattern)
		for _, name := range c.yes {
			if !g.match(name) {
				t.Errorf("%q does not match %q", c.pattern, name)
			}
		}
		for _, name := range c.no {
			if g.match(name) {
				t.Errorf("%q matches %q", c.pattern, name)
			}
		}
	}
}

// matchSegments is the meaning of a glob, written down the slow way.
func matchSegments(pattern, name []string) bool {
	switch {
	case len(pattern) == 0:
		return len(name) == 0
	case pattern[0] == "**" && len(pattern) == 1:
		return len(name) > 0
	case pattern[0] == "**":
		return matchSegments(pattern[1:], name) || len(name) > 0 && matchSegments(pattern, name[1:])
	case len(name) == 0:
		return false
	}
	return matchSegment(pattern[0], name[0]) && matchSegments(pattern[1:], name[1:])
}

func matchSegment(pattern, name string) bool {
	if pattern == "" {
		return name == ""
	}
	_, size := utf8.DecodeRuneInString(name)
	switch pattern[0] {
	case '*':
		return matchSegment(pattern[1:], name) || name != "" && matchSegment(pattern, name[size:])
	case '?':
		return name != "" && matchSegment(pattern[1:], name[size:])
	}
	return name != "" && pattern[0] == name[0] && matchSegment(pattern[1:], name[1:])
}

func TestGlobsMeanWhatTheyShould(t *testing.T) {
	segment := rapid.StringMatching(`[ab*?\[\]{},\\.é]{1,4}`)
	pattern := rapid.SliceOfN(rapid.OneOf(rapid.Just("**"), rapid.Just("*"), segment), 1, 4)
	bytes := rapid.SampledFrom([]string{"a", "b", "é", "\xff", "\xc3", "\n", "*", "[", "]", "{", ",", "}", `\`, ".", "?", "\ufffd"})
	name := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(bytes, 1, 4).Draw(t, "bytes"), "")
	})
	matched := 0
	rapid.Check(t, func(t *rapid.T) {
		p, n := pattern.Draw(t, "pattern"), rapid.SliceOfN(name, 1, 4).Draw(t, "name")
		g, rel := newGlob(strings.Join(p, "/")), strings.Join(n, "/")
		got, want := g.match(rel), matchSegments(p, n)
		if got != want {
			t.Fatalf("%q on %q: %v, want %v", g.text, rel, got, want)
		}
		if got {
			matched++
		}
	})
	if matched == 0 {
		t.Error("no pattern matched anything: the property says nothing")
	}
}
