// Package record is how a session writes down, in the JSON files that later ones
// read, what they have in common: paths, and the document around them.
//
// Whoever runs as this user can have written what it reads. So a path that it
// gives back lies below its anchor, and a document has the fields that were
// asked for, no others, and nothing behind it.
package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"cage/rules"
)

// anchors are the names of the anchors. Outside has none: no path there is read
// back.
var anchors = []string{
	rules.Root: "root", rules.CommonDir: "common_dir", rules.GitDir: "git_dir", rules.HooksDir: "hooks_dir",
}

// AnchorName returns the name of an anchor other than Outside.
func AnchorName(a rules.Anchor) string {
	if a >= rules.Outside {
		return ""
	}
	return anchors[a]
}

// Path is a path as it is written down: relative to an anchor, in bytes, which
// JSON carries as base64.
type Path struct {
	Anchor string `json:"anchor"`
	Rel    []byte `json:"rel"`
}

// PathOf returns what is written down of a path in an anchor other than Outside.
func PathOf(p rules.Path) Path { return Path{Anchor: AnchorName(p.Anchor), Rel: []byte(p.Rel)} }

// Read returns the path that was written down. It is an error where PathOf would
// not have spelled it so.
func (p Path) Read() (rules.Path, error) {
	anchor := slices.Index(anchors, p.Anchor)
	if anchor < 0 {
		return rules.Path{}, fmt.Errorf("there is no anchor %q", p.Anchor)
	}
	clean, err := rules.Clean(rules.Anchor(anchor), string(p.Rel))
	if err != nil || clean.Rel != string(p.Rel) {
		return rules.Path{}, fmt.Errorf("%q is no path below an anchor", p.Rel)
	}
	return clean, nil
}

var errMore = errors.New("it goes on behind its document")

// Unmarshal reads a document, which is all of data, into value.
func Unmarshal(data []byte, value any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(value); err != nil {
		return err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return errMore
	}
	return nil
}
