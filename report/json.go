package report

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// List is an array of a document: JSON has [] where a nil slice would be null.
type List[T any] []T

// MarshalJSON implements [json.Marshaler].
func (l List[T]) MarshalJSON() ([]byte, error) {
	if l == nil {
		return []byte("[]"), nil
	}
	return encode([]T(l), "")
}

// JSON renders the document: two spaces of indentation, a newline at the end,
// rows and lists in their order.
func (d Document) JSON() ([]byte, error) {
	d.ReportSchema = SchemaID
	d.Changes = slices.Clone(d.Changes)
	slices.SortFunc(d.Changes, func(a, b Change) int {
		return strings.Compare(a.Bytes(), b.Bytes())
	})
	d.Overrides = sortedUnique(d.Overrides)
	d.Watch.Contested = sortedUnique(d.Watch.Contested)
	return encode(d, "  ")
}

// JSON renders the document like [Document.JSON].
func (f Failure) JSON() ([]byte, error) {
	f.Status = Failed
	return encode(f, "  ")
}

func sortedUnique(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

// encode leaves <, > and & as they are: these documents are read in terminals
// and by programs, not inside HTML.
func encode(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
