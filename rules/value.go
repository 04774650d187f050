package rules

import "strings"

// relative checks a root-relative path or glob as somebody wrote it. The
// reason is empty where it is sound.
func relative(value string) (reason string) {
	switch {
	case value == "":
		return "is empty"
	case strings.IndexByte(value, 0) >= 0:
		return "holds a NUL byte"
	case value[0] == '/':
		return "is absolute"
	case len(value) > 1 && value[1] == ':' && letter(value[0]):
		return "has a drive letter"
	}
	for segment := range strings.SplitSeq(value, "/") {
		switch segment {
		case "":
			return "has an empty segment"
		case ".", "..":
			return "has a " + quote(segment) + " segment"
		}
	}
	return ""
}

func letter(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' }

// literal checks a root-relative path and returns it without the slash that
// may end it.
func literal(value string) (rel, reason string) {
	rel = value
	if len(value) > 1 {
		rel = strings.TrimSuffix(value, "/")
	}
	return rel, relative(rel)
}
