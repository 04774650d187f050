package suggest

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// scalar spells text as one YAML scalar on one line: as it is where no parser
// can mistake it, else in double quotes (YAML 1.2.2, 5.7 and 7.3.1).
func scalar(text string) string {
	if strings.Trim(text, plainBytes) == "" && isString(text) {
		return text
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == ' ' || r != utf8.RuneError && strconv.IsPrint(r):
			b.WriteRune(r)
		case r <= 0xff:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// plainBytes mean nothing to a YAML parser, wherever in a plain scalar they
// stand, unless all of it is something else than a string.
const plainBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-"

func isString(text string) bool {
	var value any
	return yaml.Unmarshal([]byte(text), &value) == nil && value == text
}
