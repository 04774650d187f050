package report_test

import (
	"os/exec"
	"strings"
	"testing"

	"cage/report"
)

// The command that the summary offers means, to a real shell, exactly the
// paths that it is about.
func TestOfferedCommandIsSafeToPaste(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	paths := []string{
		"$(touch owned)", "*", "-rf", "=ls", "a b", "a\nb", "it's", "`x`", "~", "\\", "\x1b[31m'\\", "\xff\x01f", "größe", ":/", "a;b", "!x",
	}
	for _, raw := range paths {
		d := uneventful()
		d.Root = "/tmp/$HOME"
		c := workflow()
		c.Name, c.Note = report.NameOf(raw), report.NoteBranchSwitch
		d.Changes = []report.Change{c}
		_, offered, ok := strings.Cut(report.Summary(d, false), "to take git's version: ")
		if !ok {
			t.Fatalf("%q: no command is offered", raw)
		}
		script := `git() { printf '%s\0' "$@"; }; ` + offered
		out, err := exec.Command(bash, "--norc", "-c", script).Output()
		if err != nil {
			t.Fatalf("%q: %v in %s", raw, err, script)
		}
		words := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		if words[0] != "-C" || words[1] != d.Root || words[len(words)-2] != "--" || words[len(words)-1] != raw {
			t.Errorf("%q: the shell reads %q", raw, words)
		}
	}
}
