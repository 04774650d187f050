package report

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Quote spells a name for a terminal. Printable UTF-8 stays as it is; anything
// else (control bytes, C1 controls, bidirectional overrides, invisible runes,
// invalid UTF-8), a name that is empty, that begins with a double quote or that
// begins or ends with a space comes as a Go string literal. No two names are
// spelled alike, and nothing passes that a terminal would obey.
func Quote(path string) string {
	if path == "" || path[0] == '"' || path[0] == ' ' || path[len(path)-1] == ' ' || !printable(path) {
		return strconv.Quote(path)
	}
	return path
}

// printable reports whether a terminal shows every rune of s and obeys none.
func printable(s string) bool {
	for i, r := range s {
		if !strconv.IsPrint(r) || invalidAt(s, i, r) {
			return false
		}
	}
	return true
}

// invalidAt tells a replacement character that stands in s from one that range
// made of an invalid byte.
func invalidAt(s string, i int, r rune) bool {
	if r != utf8.RuneError {
		return false
	}
	_, size := utf8.DecodeRuneInString(s[i:])
	return size == 1
}

// plain escapes what a terminal would obey and leaves the rest, quotes and
// backslashes included, as it is: for prose that may hold somebody's bytes.
func plain(s string) string {
	if printable(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case invalidAt(s, i, r):
			b.WriteString(`\x` + hex(s[i]))
		case strconv.IsPrint(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}

func hex(c byte) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[c>>4], digits[c&15]})
}
