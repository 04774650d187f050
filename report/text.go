package report

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// paint colours text, or leaves it.
type paint bool

// The styles, as parameters of the ANSI sequence SGR.
const (
	bold   = "1;"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

func (p paint) in(style, text string) string {
	if !p {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

func label(name string) string { return pad(name, labelWidth) }

// pad fills with spaces up to a width in runes.
func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-runes(s)))
}

func runes(s string) int { return utf8.RuneCountInString(s) }

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// size spells a number of bytes in the largest unit that loses nothing.
func size(bytes int64) string {
	for _, unit := range []struct {
		shift uint
		name  string
	}{{30, "GiB"}, {20, "MiB"}, {10, "KiB"}} {
		if n := bytes >> unit.shift; n > 0 && n<<unit.shift == bytes {
			return fmt.Sprintf("%d %s", n, unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// gitCheckout is a command line that takes git's version of paths, to be pasted
// into bash or zsh from anywhere.
func gitCheckout(root string, paths []string) string {
	words := []string{"git", "-C", root}
	// A name with a star is that file, not a pattern.
	if strings.ContainsAny(strings.Join(paths, ""), `*?[\:`) {
		words = append(words, "--literal-pathspecs")
	}
	return shellCommand(slices.Concat(words, []string{"checkout", "--"}, paths)...)
}

// shellCommand is a command line of these words, to be pasted into bash or zsh.
func shellCommand(words ...string) string {
	spelled := make([]string, len(words))
	for i, word := range words {
		spelled[i] = shellWord(word)
	}
	return strings.Join(spelled, " ")
}

// shellWord spells bytes as one word of bash or zsh that a terminal shows and
// does not obey.
func shellWord(word string) string {
	switch {
	case word != "" && strings.Trim(word, shellSafe) == "":
		return word
	case printable(word):
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for i := range len(word) {
		switch c := word[i]; {
		case c == '\'' || c == '\\':
			b.WriteString(`\` + string(rune(c)))
		case c < ' ' || c > '~':
			b.WriteString(`\x` + hex(c))
		default:
			b.WriteByte(c)
		}
	}
	return b.String() + "'"
}

const shellSafe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./@%+,-"
