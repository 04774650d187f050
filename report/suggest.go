package report

// SuggestSchemaID is what `report_schema` says in every [Suggestions].
const SuggestSchemaID = "gantry.cage-suggest.v1"

// Suggestions is what `cage suggest --json` prints.
type Suggestions struct {
	// ReportSchema is filled in by JSON.
	ReportSchema string `json:"report_schema"`
	// Root is absolute.
	Root string `json:"root"`
	// Suggestions are sorted by category, then by value.
	Suggestions List[Suggestion] `json:"suggestions"`
	// AlreadyCovered counts what was found and is protected by the rules there
	// are.
	AlreadyCovered int `json:"already_covered"`
	// LeftOut are paths about which no entry is proposed though one may be
	// wanted.
	LeftOut List[LeftOut] `json:"left_out"`
	// Written is the name of the file that was written, nil where none was.
	Written *string `json:"written"`
}

// Suggestion is one entry for `.cage.yaml`.
type Suggestion struct {
	// Kind is the key of the entry, path or glob; Value is its value.
	Kind     string `json:"kind"`
	Value    string `json:"value"`
	Mode     string `json:"mode"`
	Category string `json:"category"`
	Reason   string `json:"reason"`
}

// LeftOut is a path without an entry, and why.
type LeftOut struct {
	Name
	// Why is unspellable (no entry can name it) or unreadable (a directory that
	// could not be looked into).
	Why string `json:"why"`
}

// The reasons of a [LeftOut].
const (
	Unspellable = "unspellable"
	Unreadable  = "unreadable"
)

// JSON renders the document: two spaces of indentation, a newline at the end.
func (s Suggestions) JSON() ([]byte, error) {
	s.ReportSchema = SuggestSchemaID
	return encode(s, "  ")
}

// Summary returns the lines for people: what is proposed, and what is not.
func (s Suggestions) Summary() string {
	text := "cage: " + count(len(s.Suggestions), "entry", "entries") + " proposed"
	if s.Written != nil {
		text += " in " + Quote(*s.Written)
	}
	if s.AlreadyCovered > 0 {
		text += "; " + count(s.AlreadyCovered, "other place is", "other places are") + " protected already"
	}
	text += "\n"
	for _, left := range s.LeftOut {
		name := Quote(left.Bytes())
		if left.Why == Unreadable {
			text += Warning("cannot look into " + name + ": nothing in it is proposed")
		} else {
			text += Warning("no entry can name " + name + ": it is left out")
		}
	}
	return text
}
