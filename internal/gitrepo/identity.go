package gitrepo

import (
	"bytes"
	"encoding/hex"
	"hash"
	"slices"
)

// maxText bounds the size in bytes of content whose line ends are looked at.
const maxText = 8 << 20

// identity is the hash of NewIdentity. The size of what git stores, with which
// an object id begins, is known only at the end.
type identity struct {
	bytes.Buffer
	objectFormat string
}

// NewIdentity returns the hash that Identify is for content of a size in bytes.
func NewIdentity(objectFormat string, size int64) hash.Hash {
	if size > maxText {
		return NewBlob(objectFormat, size)
	}
	i := &identity{objectFormat: objectFormat}
	i.Grow(int(size))
	return i
}

func (i *identity) Sum(b []byte) []byte { return append(b, Identify(i.objectFormat, i.Bytes())...) }

// Identify returns the identity of content: its object id and, where it may be
// text that git wrote with other line ends than it stores, the id of what it
// stores.
func Identify(objectFormat string, content []byte) []byte {
	ids := appendID(nil, objectFormat, content)
	if stored, converted := storedText(content); converted {
		ids = appendID(ids, objectFormat, stored)
	}
	return ids
}

func appendID(ids []byte, objectFormat string, content []byte) []byte {
	h := NewBlob(objectFormat, int64(len(content)))
	h.Write(content)
	return h.Sum(ids)
}

func (i *identity) Size() int { return NewBlob(i.objectFormat, 0).Size() }

func (i *identity) BlockSize() int { return 1 }

// storedText returns what git stores of text that it wrote with CR LF at the end
// of every line (gitattributes(5), eol), and whether that is such text.
func storedText(content []byte) (stored []byte, converted bool) {
	lines := bytes.Count(content, []byte("\n"))
	if lines == 0 || bytes.Count(content, []byte("\r\n")) != lines {
		return nil, false
	}
	return bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n")), true
}

// StateOf returns the state of a path with content that Identify knows by ids.
func StateOf(objectFormat, path string, ids []byte, mode uint32) *State {
	size := NewBlob(objectFormat, 0).Size()
	blob, text := ids[:size], ids[size:]
	return &State{Path: path, Blob: hex.EncodeToString(blob), Text: hex.EncodeToString(text), Mode: mode}
}

// Same reports whether git may record the same for two states, neither of them
// absence.
func (s State) Same(other State) bool {
	theirs := other.ids()
	return s.Path == other.Path && s.Mode == other.Mode &&
		slices.ContainsFunc(s.ids(), func(id string) bool { return slices.Contains(theirs, id) })
}

// ids returns the object ids that content may be recorded under; none for
// absence.
func (s State) ids() []string {
	return slices.DeleteFunc([]string{s.Blob, s.Text}, func(id string) bool { return id == "" })
}
