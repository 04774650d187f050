package rules

import (
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

// glob is a compiled pattern: `*` and `?` stay inside a segment, a segment
// `**` stands for any number of segments, and every other byte means itself.
// `x/**` matches what lies below x, not x.
type glob struct {
	text    string
	pattern string
	// prefix and suffix are the literal ends that every match has; they spare
	// most files the matcher.
	prefix, suffix string
	// replacement is set where the pattern holds U+FFFD, which the matcher
	// cannot tell from a byte that is no UTF-8.
	replacement bool
}

func newGlob(text string) glob {
	pattern := strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`).Replace(text)
	if strings.HasSuffix(pattern, "/**") {
		// To the matcher a "/**" at the end may also stand for nothing.
		pattern += "/*"
	}
	return glob{
		text:        text,
		pattern:     pattern,
		prefix:      text[:wildcard(text)],
		suffix:      text[strings.LastIndexAny(text, "*?/")+1:],
		replacement: strings.ContainsRune(text, utf8.RuneError),
	}
}

// wildcard returns the index of the first wildcard in text, or its length.
func wildcard(text string) int {
	if i := strings.IndexAny(text, "*?"); i >= 0 {
		return i
	}
	return len(text)
}

func (g *glob) match(rel string) bool {
	if !strings.HasPrefix(rel, g.prefix) || !strings.HasSuffix(rel, g.suffix) {
		return false
	}
	if g.replacement && !utf8.ValidString(rel) {
		rel = withoutInvalid(rel)
	}
	return doublestar.MatchUnvalidated(g.pattern, rel)
}

// withoutInvalid puts a NUL, which no pattern and no file name holds, for each
// byte of rel that is no UTF-8.
func withoutInvalid(rel string) string {
	out := make([]byte, 0, len(rel))
	for i := 0; i < len(rel); {
		r, size := utf8.DecodeRuneInString(rel[i:])
		if r == utf8.RuneError && size == 1 {
			out = append(out, 0)
		} else {
			out = append(out, rel[i:i+size]...)
		}
		i += size
	}
	return string(out)
}

// fixedPart returns the leading segments that hold no wildcard.
func (g *glob) fixedPart() string {
	i := wildcard(g.text)
	if i == len(g.text) {
		return g.text
	}
	return g.text[:max(strings.LastIndexByte(g.text[:i], '/'), 0)]
}

// fixedName returns the last segment where it holds no wildcard, else "".
func (g *glob) fixedName() string {
	name := g.text[strings.LastIndexByte(g.text, '/')+1:]
	if wildcard(name) < len(name) {
		return ""
	}
	return name
}
