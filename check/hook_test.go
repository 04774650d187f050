package check

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"cage/report"
)

// Promise: of what an agent tells, exactly the files that its tool is about to
// change are taken, however the patch is wrapped; what is not clear is refused.
func TestEditedFiles(t *testing.T) {
	const patch = `*** Begin Patch\n*** Add File: a b\n+*** Delete File: no\n*** Update File: c\r\n*** Move to: ../d\n-x\n*** Delete File: e\n*** End Patch`
	for _, c := range []struct {
		call  string
		files []string
		edits bool
	}{
		{`{"tool_name":"Edit","tool_input":{"file_path":"a"}}`, []string{"a"}, true},
		{`{"hook_event_name":"PermissionRequest","tool_name":"NotebookEdit","tool_input":{"notebook_path":"n","cell":1}}`, []string{"n"}, true},
		{`{"hook_event_name":"PreToolUse","tool_name":"MultiEdit","tool_input":{"file_path":"a","edits":[{"file_path":"b"}]}}`, []string{"a"}, true},
		{`{"tool_name":"apply_patch","tool_input":{"command":"` + patch + `"}}`, []string{"a b", "c", "../d", "e"}, true},
		{`{"tool_name":"apply_patch","tool_input":{"command":["apply_patch","` + patch + `"]}}`, []string{"a b", "c", "../d", "e"}, true},
		{`{"tool_name":"Read","tool_input":{"file_path":".env"}}`, nil, false},
		{`{"tool_name":"Bash","tool_input":{"command":"*** Add File: a"}}`, nil, false},
		{`{"hook_event_name":"PostToolUse","tool_name":"Edit","tool_input":{"file_path":"a"}}`, nil, false},
		{`{"hook_event_name":"Stop","stop_hook_active":true}`, nil, false},
		{`{}`, nil, false},
	} {
		call, err := ReadCall(strings.NewReader(c.call))
		if err != nil {
			t.Errorf("%s: %v", c.call, err)
			continue
		}
		if files, edits, err := call.edited(); err != nil || edits != c.edits || !slices.Equal(files, c.files) {
			t.Errorf("%s: got %q, %v (%v)", c.call, files, edits, err)
		}
	}
	for _, unclear := range []string{
		`{"tool_name":"Edit"}`, `{"tool_name":"Edit","tool_input":[]}`, `{"tool_name":"Write","tool_input":{"file_path":7}}`,
		`{"tool_name":"Write","tool_input":{"FILE_PATH":"a"}}`, `{"tool_name":"apply_patch","tool_input":{"command":"x"}}`,
	} {
		call, err := ReadCall(strings.NewReader(unclear))
		if err == nil {
			_, _, err = call.edited()
		}
		var refusal *report.Refusal
		if !errors.As(err, &refusal) || refusal.ErrorCode != codeInput {
			t.Errorf("%s: %v", unclear, err)
		}
	}
	for _, nonsense := range []string{"", "x", "[]", `"a"`, `{"tool_name":1}`} {
		if call, err := ReadCall(strings.NewReader(nonsense)); err == nil {
			t.Errorf("%q is %+v", nonsense, call)
		}
	}
}

func TestRangeEnds(t *testing.T) {
	for spelled, want := range map[string]string{
		"a..b": "a b", "a...b": "a ...b", "a..": "a HEAD", "a...": "a ...HEAD", "a/b..c~1": "a/b c~1", "a....b": "a ....b",
	} {
		from, to, symmetric, err := ends(spelled)
		if symmetric {
			to = "..." + to
		}
		if err != nil || from+" "+to != want {
			t.Errorf("%s is %q to %q (%v), want %s", spelled, from, to, err, want)
		}
	}
	for _, bad := range []string{"", "a", "..", "...", "..b", "...b"} {
		if _, _, _, err := ends(bad); err == nil {
			t.Errorf("%q is a range", bad)
		}
	}
}
