package report

import "strings"

// Patch spells a patch for a terminal: what that would obey is escaped, so that
// no line can hide or change another, and lines have git's colours if wanted.
func Patch(patch string, colour bool) string {
	p := paint(colour)
	var b strings.Builder
	header := true
	for line := range strings.Lines(patch) {
		text, ended := strings.CutSuffix(line, "\n")
		switch {
		case strings.HasPrefix(text, "diff --git "):
			header = true
		case strings.HasPrefix(text, "@@ "):
			header = false
		}
		b.WriteString(p.in(patchStyle(text, header), escapeLine(text)))
		if ended {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// patchStyle returns the style of a line: headers stand out, then what goes and
// what comes.
func patchStyle(line string, header bool) string {
	switch {
	case header:
		return bold + "39"
	case strings.HasPrefix(line, "@@ "):
		return "36"
	case strings.HasPrefix(line, "-"):
		return red
	case strings.HasPrefix(line, "+"):
		return green
	default:
		return "39"
	}
}

// escapeLine escapes what is not printable, tabs aside.
func escapeLine(line string) string {
	parts := strings.Split(line, "\t")
	for i := range parts {
		parts[i] = plain(parts[i])
	}
	return strings.Join(parts, "\t")
}
