package report

import (
	"fmt"
	"strings"
	"time"
)

// Start is what the line before the command says.
type Start struct {
	ProtectedFiles int
	// Events says that file events are had; without them, and with Interval,
	// rescans do the work; without either there is one check at the exit.
	Events bool
	// Interval is the time between rescans, 0 with the watch off.
	Interval   time.Duration
	ReportOnly bool
	// Degraded says why events are missing or incomplete, Setting what to
	// change; both empty where nothing is missing.
	Degraded string
	Setting  string
	// Log is the path of the session log, empty if there is none.
	Log string
	// Watched is the program that a watch lasts as long as; nil where there is
	// none.
	Watched *Process
}

// Line returns the start line, and a second one where events are missing.
func (s Start) Line() string {
	var b strings.Builder
	b.WriteString("cage: " + s.verb())
	if s.Log != "" {
		b.WriteString("; live events: " + Quote(s.Log))
	}
	if s.ReportOnly {
		b.WriteString("; report only, nothing is restored")
	}
	if s.Watched != nil {
		fmt.Fprintf(&b, "; until process %d (%s) ends", s.Watched.PID, plain(s.Watched.Name))
	}
	b.WriteByte('\n')
	if s.Degraded != "" {
		b.WriteString(Warning(s.gap()))
		b.WriteString(fixLine(s.Setting))
	}
	return b.String()
}

func (s Start) verb() string {
	switch {
	case s.Interval == 0:
		return fmt.Sprintf("checking %d protected file(s) at exit", s.ProtectedFiles)
	case s.Events:
		return fmt.Sprintf("watching %d protected file(s)", s.ProtectedFiles)
	default:
		return fmt.Sprintf("comparing %d protected file(s) every %v", s.ProtectedFiles, s.Interval)
	}
}

func (s Start) gap() string {
	if s.Events {
		return fmt.Sprintf("some file events are missing (%s); what they miss is found every %v", s.Degraded, s.Interval)
	}
	return fmt.Sprintf("no file events (%s); changes are found every %v, not at once", s.Degraded, s.Interval)
}

// Warning returns one line of warning.
func Warning(text string) string {
	return "cage: warning: " + plain(text) + "\n"
}

// Live returns the line about something that just happened, at the local time.
func Live(at time.Time, text string) string {
	return "cage: " + at.Local().Format(time.TimeOnly) + " " + plain(text) + "\n"
}

// Line says in some words what was changed, and what became of it.
func (c Change) Line() string {
	text := string(c.Outcome) + " " + string(c.Kind) + " " + Quote(c.Bytes()) + " (" + c.why() + ")"
	if c.ErrorCode != nil {
		text += " " + plain(*c.ErrorCode)
	}
	return text
}

// TrappedLine says that a signal, as in SIGTERM, ended the session.
func TrappedLine(signal string) string {
	return "cage: trapped " + plain(signal) + ": ending the command, then a last check of every protected file\n"
}

// OverrideBanner says which paths are not protected in this run; it is empty
// where there are none.
func OverrideBanner(overrides []string) string {
	if len(overrides) == 0 {
		return ""
	}
	return "cage: " + overrideText(overrides) + "\n"
}

func overrideText(overrides []string) string {
	return "OVERRIDE: changes to " + quoteAll(sortedUnique(overrides)) + " are reported, not undone, in this run"
}

// Line returns what stderr shows of a failure: the code and the message, then
// what would fix it.
func (f Failure) Line() string {
	return "cage: [" + plain(f.ErrorCode) + "] " + paragraph(f.Message) + "\n" +
		fixLine(strings.Join(f.FixHints, "; or "))
}

// Complaint returns what stderr shows of an error that is no Failure.
func Complaint(err error) string { return "cage: " + paragraph(err.Error()) + "\n" }

func fixLine(hint string) string {
	if hint == "" {
		return ""
	}
	return "fix: " + paragraph(hint) + "\n"
}

// paragraph keeps the lines of a text, the later ones indented, so that none
// of them can pass for a line of ours.
func paragraph(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = plain(line)
	}
	return strings.Join(lines, "\n  ")
}

// quoteAll spells a list of names in one line.
func quoteAll(paths []string) string {
	quoted := make([]string, len(paths))
	for i, path := range paths {
		quoted[i] = Quote(path)
	}
	return strings.Join(quoted, ", ")
}

// quoteSome spells the first few of a list of names, and says how many more
// there are.
func quoteSome(paths []string) string {
	text := quoteAll(paths[:min(len(paths), mostNamed)])
	if more := len(paths) - mostNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// EndedWith is what a sentence about an interrupted session adds about the
// processes that were ended; it is empty where there were none.
func EndedWith(ended int) string {
	if ended == 0 {
		return ""
	}
	return "; " + count(ended, "of its processes was ended", "of its processes were ended")
}

// changed names what a recovery puts back.
func (r Recovery) changed() string {
	var paths []string
	for _, c := range r.Changes {
		if c.Outcome.Violation() {
			paths = append(paths, c.Bytes())
		}
	}
	if len(paths) == 0 {
		return "no protected file changed"
	}
	return count(len(paths), "protected file changed: ", "protected files changed: ") + quoteSome(sortedUnique(paths))
}

// Line says what was done about an interrupted session, or, where this session
// only reports, what would have been.
func (r Recovery) Line(reportOnly bool) string {
	if reportOnly {
		return "cage: an interrupted session " + r.Session + " left " + r.changed() + EndedWith(r.ProcessesEnded) +
			"; --report-only puts nothing back\n"
	}
	text := fmt.Sprintf("cage: recovered an interrupted session %s: %s, %s", r.Session,
		count(r.Restored, "file put back", "files put back"), count(r.ProcessesEnded, "process ended", "processes ended"))
	left := 0
	for _, c := range r.Changes {
		if c.Outcome == OutcomeKept && c.Note == "" {
			left++
		}
	}
	if left > 0 {
		text += ", " + count(left, "file left as it is", "files left as they are")
	}
	return text + "\n"
}
