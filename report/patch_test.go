package report_test

import (
	"regexp"
	"strings"
	"testing"

	"cage/report"
)

// Promise: no line of a patch reaches a terminal with anything that the terminal
// would obey, and none can be taken for two.
func TestPatchIsHarmless(t *testing.T) {
	const patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,4 @@ f\n same\tcolumn\n-old\n+new\x1b[8mhidden\x1b[0m\n+a\rb\u202ec\u0085d\xffe\n+--- z\n--- y\n\\ No newline at end of file"
	const want = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,4 @@ f\n same\tcolumn\n-old\n+new\\x1b[8mhidden\\x1b[0m\n+a\\rb\\u202ec\\u0085d\\xffe\n+--- z\n--- y\n\\ No newline at end of file"
	if got := report.Patch(patch, false); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	coloured := report.Patch(patch, true)
	if plain := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(coloured, ""); plain != want {
		t.Errorf("under its colours: %q, want %q", plain, want)
	}
	for _, line := range []string{"\x1b[1;39m--- a/x\x1b[0m", "\x1b[36m@@ -1,2 +1,4 @@ f\x1b[0m", "\x1b[31m-old\x1b[0m", "\x1b[32m+--- z\x1b[0m", "\x1b[31m--- y\x1b[0m"} {
		if !strings.Contains(coloured, line+"\n") {
			t.Errorf("no line %q in %q", line, coloured)
		}
	}
	if got := report.Patch("", true); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}
