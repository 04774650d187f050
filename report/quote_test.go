package report_test

import (
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"cage/report"
)

func TestQuote(t *testing.T) {
	for raw, want := range map[string]string{
		".github/workflows/ci.yml": ".github/workflows/ci.yml",
		"größe/日本.env":             "größe/日本.env",
		`a\nb`:                     `a\nb`,
		"it's":                     "it's",
		"in the middle":            "in the middle",
		"\ufffd":                   "\ufffd",
		"":                         `""`,
		" a":                       `" a"`,
		"a ":                       `"a "`,
		`"a"`:                      `"\"a\""`,
		"a\nb":                     `"a\nb"`,
		"\x1b[2J":                  `"\x1b[2J"`,
		"\x7f":                     `"\x7f"`,
		"\u009b2J":                 `"\u009b2J"`,
		"a\u202eb":                 `"a\u202eb"`,
		"a\u2066b":                 `"a\u2066b"`,
		"a\u200bb":                 `"a\u200bb"`,
		"a\u00a0b":                 `"a\u00a0b"`,
		"a\xffb":                   `"a\xffb"`,
		"\ufffd\xff":               `"` + "\ufffd" + `\xff"`,
		"\xc2":                     `"\xc2"`,
	} {
		if got := report.Quote(raw); got != want {
			t.Errorf("Quote(%q) = %s, want %s", raw, got, want)
		}
	}
}

// A quoted name is printable, is one line and says exactly which name it was.
func FuzzQuote(f *testing.F) {
	for _, seed := range []string{"", "a", `"`, `"\n"`, "\x1b[31m", "\u202e", "\xff", "\u0085", "a ", "\ufffd"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		quoted := report.Quote(raw)
		if !utf8.ValidString(quoted) {
			t.Fatalf("%q: not UTF-8: %q", raw, quoted)
		}
		if bad := strings.IndexFunc(quoted, func(r rune) bool { return !unicode.IsPrint(r) }); bad >= 0 {
			t.Fatalf("%q: unprintable at %d of %q", raw, bad, quoted)
		}
		back := quoted
		if strings.HasPrefix(quoted, `"`) {
			var err error
			if back, err = strconv.Unquote(quoted); err != nil {
				t.Fatalf("%q: %q does not unquote: %v", raw, quoted, err)
			}
		}
		if back != raw {
			t.Fatalf("%q reads back as %q", raw, back)
		}
	})
}
