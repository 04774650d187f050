package report

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// Name is a path in a document. File names are bytes and JSON is UTF-8: Path
// has the replacement character where it lost something, and only then
// PathBase64 has the bytes (RFC 4648, standard alphabet, padded).
type Name struct {
	Path       string `json:"path"`
	PathBase64 string `json:"path_base64,omitempty"`
}

// NameOf spells the bytes of a path.
func NameOf(raw string) Name {
	if utf8.ValidString(raw) {
		return Name{Path: raw}
	}
	return Name{
		Path:       Text(raw),
		PathBase64: base64.StdEncoding.EncodeToString([]byte(raw)),
	}
}

// Bytes returns what NameOf was given.
func (n Name) Bytes() string {
	raw, err := base64.StdEncoding.DecodeString(n.PathBase64)
	if n.PathBase64 == "" || err != nil {
		return n.Path
	}
	return string(raw)
}

// Text returns s as valid UTF-8, each invalid byte replaced by U+FFFD.
func Text(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		b.WriteRune(r)
	}
	return b.String()
}
