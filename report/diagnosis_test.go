package report_test

import (
	"strings"
	"testing"

	"cage/report"
	"cage/report/reporttest"
)

func diagnosis() report.Diagnosis {
	return report.Diagnosis{
		Root: "/home/ada/shop",
		Findings: []report.Finding{
			{Area: "session", Verdict: report.VerdictOK, Text: "would protect 7 file(s)"},
			{Area: "rules", Verdict: report.VerdictNote, Text: ".cage.yaml is not committed: the rules of the working tree apply"},
			{Area: "watching", Verdict: report.VerdictDegraded, Text: "the inotify watches of the user are used up", Fix: "raise fs.inotify.max_user_watches, now 8192 for all programs of the user together"},
		},
		Leftovers: []report.Leftover{
			{Kind: report.LeftoverRunning, Place: "/home/ada/shop/.git/gantry-cage-journal", Text: "a session runs here"},
			{Kind: report.LeftoverQuarantine, Place: "/home/ada/a\nb", Text: "2 displaced versions lie here", Fix: "look at them, then remove the folder"},
		},
	}
}

func TestDiagnosis(t *testing.T) {
	for name, d := range map[string]report.Diagnosis{"doctor": diagnosis(), "doctor_fine": {Root: "/home/ada/shop"}} {
		t.Run(name, func(t *testing.T) {
			out, err := d.JSON()
			if err != nil {
				t.Fatal(err)
			}
			if err := reporttest.ValidateBy(report.DoctorSchema(), out); err != nil {
				t.Error(err)
			}
			golden(t, name+".json", string(out))
			plain := d.Text(false)
			golden(t, name+".txt", plain)
			coloured := d.Text(true)
			for _, style := range []string{"0", "2", "32", "1;33"} {
				coloured = strings.ReplaceAll(coloured, "\x1b["+style+"m", "")
			}
			if coloured != plain {
				t.Errorf("colour changes what is said:\n%s", coloured)
			}
		})
	}
}

// Promise: nothing that somebody called a file reaches the terminal as an order.
func TestDiagnosisIsPlain(t *testing.T) {
	const evil = "a\x1b[2J\nleftovers   ok"
	text := report.Diagnosis{
		Findings:  report.List[report.Finding]{{Area: "session", Verdict: report.VerdictDegraded, Text: evil, Fix: evil}},
		Leftovers: report.List[report.Leftover]{{Kind: report.LeftoverQuarantine, Place: evil, Text: evil, Fix: evil}},
	}.Text(false)
	if lines := strings.Count(text, "\n"); strings.Contains(text, "\x1b") || lines != 5 {
		t.Errorf("%d lines:\n%q", lines, text)
	}
}

func TestDiagnosisIsWholeWithoutAnythingToMend(t *testing.T) {
	running := report.List[report.Leftover]{{Kind: report.LeftoverRunning}}
	for _, c := range []struct {
		name string
		d    report.Diagnosis
		want bool
	}{
		{"nothing", report.Diagnosis{}, true},
		{"a note", report.Diagnosis{Findings: report.List[report.Finding]{{Verdict: report.VerdictNote}}, Leftovers: running}, true},
		{"a lack", report.Diagnosis{Findings: report.List[report.Finding]{{Verdict: report.VerdictOK}, {Verdict: report.VerdictDegraded}}}, false},
		{"a leftover", report.Diagnosis{Leftovers: append(running, report.Leftover{Kind: report.LeftoverLost})}, false},
	} {
		if got := c.d.Whole(); got != c.want {
			t.Errorf("%s: whole is %v", c.name, got)
		}
	}
}
