package report_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"cage/report"
	"cage/report/reporttest"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("differs from %s (run with -update after a look at it); got:\n%s", file, got)
	}
}

func TestGoldenDocuments(t *testing.T) {
	for _, s := range samples() {
		t.Run(s.name, func(t *testing.T) {
			out, err := s.doc.JSON()
			if err != nil {
				t.Fatal(err)
			}
			if err := reporttest.Validate(out); err != nil {
				t.Error(err)
			}
			golden(t, s.name+".json", string(out))
		})
	}
}

func TestGoldenSummaries(t *testing.T) {
	for _, s := range samples() {
		t.Run(s.name, func(t *testing.T) {
			golden(t, s.name+".txt", report.Summary(s.doc, false))
		})
	}
}

// Colour changes how a summary looks, never what it says.
func TestColourAddsOnlyColour(t *testing.T) {
	for _, s := range samples() {
		coloured := report.Summary(s.doc, true)
		if !strings.Contains(coloured, "\x1b[") {
			t.Errorf("%s: no colour", s.name)
		}
		for _, style := range []string{"0", "2", "31", "32", "33", "1;31", "1;32", "1;33"} {
			coloured = strings.ReplaceAll(coloured, "\x1b["+style+"m", "")
		}
		if plain := report.Summary(s.doc, false); coloured != plain {
			t.Errorf("%s: without its colours:\n%s\nplain:\n%s", s.name, coloured, plain)
		}
	}
}

func TestSummaryHoldsNoControlByte(t *testing.T) {
	for _, s := range samples() {
		t.Run(s.name, func(t *testing.T) { checkSummary(t, s.doc) })
	}
}

// checkSummary wants whole lines that no terminal obeys.
func checkSummary(t *testing.T, d report.Document) {
	t.Helper()
	text := report.Summary(d, false)
	if !utf8.ValidString(text) || !strings.HasSuffix(text, "\n") {
		t.Errorf("no text of whole lines: %q", text)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
		t.Errorf("a control byte in %q", text)
	}
}

func TestUneventfulSummaryIsOneShortLine(t *testing.T) {
	for _, s := range samples()[:3] {
		text := report.Summary(s.doc, false)
		if strings.Count(text, "\n") != 1 || len(text) > 80 {
			t.Errorf("%s: %q", s.name, text)
		}
	}
}

// What needs a person is never among the rows that are left out.
func TestUrgentRowsComeFirst(t *testing.T) {
	for _, s := range samples() {
		if s.name != "halted_rule" {
			continue
		}
		text := report.Summary(s.doc, false)
		if !strings.Contains(text, "revert_failed  modified  .github/workflows/ci.yml") {
			t.Errorf("the one failure is missing:\n%s", text)
		}
		if !strings.Contains(text, "and 6 more") {
			t.Errorf("26 rows, 20 shown, but not said:\n%s", text)
		}
	}
}
