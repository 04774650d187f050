package report

import "strings"

// DoctorSchemaID is the value of doctor_schema.
const DoctorSchemaID = "gantry.cage-doctor.v1"

// Diagnosis is what `cage doctor` found out about a root and its machine.
type Diagnosis struct {
	DoctorSchema string         `json:"doctor_schema"`
	Root         string         `json:"root"`
	Findings     List[Finding]  `json:"findings"`
	Leftovers    List[Leftover] `json:"leftovers"`
}

// Verdict says what a finding means for a session.
type Verdict string

// The verdicts.
const (
	// VerdictOK: a session has what it needs.
	VerdictOK Verdict = "ok"
	// VerdictNote: good to know, and nothing is weaker for it.
	VerdictNote Verdict = "note"
	// VerdictDegraded: a session would not start, or would protect less or later
	// than it can.
	VerdictDegraded Verdict = "degraded"
)

// Finding is one thing that was looked at.
type Finding struct {
	// Area is what it is about, in one word.
	Area    string  `json:"area"`
	Verdict Verdict `json:"verdict"`
	Text    string  `json:"text"`
	// Fix is what to do about it; empty where nothing is to be done.
	Fix string `json:"fix"`
}

// LeftoverKind says what a leftover is.
type LeftoverKind string

// The kinds of leftovers.
const (
	// LeftoverRunning is a session that has not ended: nothing to clean.
	LeftoverRunning LeftoverKind = "running"
	// LeftoverInterrupted is the journal of a session that was killed.
	LeftoverInterrupted LeftoverKind = "interrupted"
	// LeftoverCorrupt is a journal that cannot be trusted.
	LeftoverCorrupt LeftoverKind = "corrupt"
	// LeftoverLost is a session that did not end and whose journal is gone.
	LeftoverLost LeftoverKind = "lost"
	// LeftoverQuarantine is a folder with displaced versions that were not copied.
	LeftoverQuarantine LeftoverKind = "quarantine"
	// LeftoverPushGuard is a folder of hooks that nothing leads git to any more.
	LeftoverPushGuard LeftoverKind = "push_guard"
	// LeftoverPrivateTmp is a temporary directory of a run that is gone.
	LeftoverPrivateTmp LeftoverKind = "private_tmp"
)

// Leftover is one thing that an earlier session left, or a running one holds.
type Leftover struct {
	Kind LeftoverKind `json:"kind"`
	// Place is an absolute path.
	Place string `json:"place"`
	// Text says what it is, Fix what to do about it; Fix is empty where nothing
	// is to be done.
	Text string `json:"text"`
	Fix  string `json:"fix"`
}

// Whole reports whether a session would be fully protected and nothing of an
// earlier one waits to be cleaned up.
func (d Diagnosis) Whole() bool {
	for _, f := range d.Findings {
		if f.Verdict == VerdictDegraded {
			return false
		}
	}
	for _, l := range d.Leftovers {
		if l.Kind != LeftoverRunning {
			return false
		}
	}
	return true
}

// JSON renders the document like [Document.JSON].
func (d Diagnosis) JSON() ([]byte, error) {
	d.DoctorSchema = DoctorSchemaID
	return encode(d, "  ")
}

// Text renders it for people.
func (d Diagnosis) Text(colour bool) string {
	t := diagnosisText{paint: paint(colour)}
	t.line("root", "", Quote(d.Root))
	for _, f := range d.Findings {
		t.line(f.Area, f.Verdict, f.Text)
		t.fix(f.Fix)
	}
	if len(d.Leftovers) == 0 {
		t.line("leftovers", VerdictOK, "nothing is left over from earlier sessions")
	}
	for _, l := range d.Leftovers {
		verdict := VerdictDegraded
		if l.Kind == LeftoverRunning {
			verdict = VerdictNote
		}
		t.line("leftovers", verdict, string(l.Kind)+": "+Quote(l.Place)+": "+l.Text)
		t.fix(l.Fix)
	}
	return t.String()
}

// diagnosisText lays findings out in three columns.
type diagnosisText struct {
	strings.Builder
	paint paint
}

// The widths of the first two columns.
const (
	areaWidth    = 12
	verdictWidth = 10
)

func (t *diagnosisText) line(area string, verdict Verdict, text string) {
	style := map[Verdict]string{VerdictOK: green, VerdictNote: dim, VerdictDegraded: bold + yellow}[verdict]
	word := pad(string(verdict), verdictWidth)
	if style != "" {
		word = t.paint.in(style, word)
	}
	t.WriteString(pad(area, areaWidth) + word + plain(text) + "\n")
}

func (t *diagnosisText) fix(hint string) {
	if hint != "" {
		t.WriteString(pad("", areaWidth+verdictWidth) + "fix: " + plain(hint) + "\n")
	}
}
