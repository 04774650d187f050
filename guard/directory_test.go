package guard

import (
	"os"
	"testing"

	"cage/internal/safefile"
	"cage/rules"
	"cage/snapshot"
)

// Promise: a directory in the place of a link stays for a while only where
// nothing protected was read by way of the link.
func TestLeadsAway(t *testing.T) {
	r := newRig(t)
	if err := os.Mkdir(r.abs(rules.Path{Rel: "held"}), 0o755); err != nil {
		t.Fatal(err)
	}
	r.protect(t, "held/.env", baseline)
	for _, tt := range []struct {
		path, link string
		want       bool
	}{
		{".github", "gh", true},
		{".github", "not/held", true},
		{".github", "../beside", true},
		{".github", "held", false},
		{".github", "held/.env/below", false},
		{".github", ".", false},
		{".github", "..", false},
		{".github", ".circleci", false},
		{".github", "/elsewhere", false},
		{".github", "a/../gh", false},
		{".github", "gh/", false},
		{".github/workflows", "../gh", false},
		{"other", "gh", false},
	} {
		e := &snapshot.Entry{Path: rules.Path{Rel: tt.path}}
		e.State.Kind, e.State.Link = safefile.Symlink, tt.link
		if got := r.leadsAway(e); got != tt.want {
			t.Errorf("%s -> %s: %v", tt.path, tt.link, got)
		}
	}
}
