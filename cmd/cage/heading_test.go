package main

import (
	"strings"
	"testing"

	"cage/internal/review"
)

// Promise: no session has an empty place where others have their command.
func TestHeadingNamesAWatch(t *testing.T) {
	for want, s := range map[string]review.Session{
		"  (watch)  ": {Watch: true},
		"  node  ":    {Watch: true, Command: "node"},
		"  watch  ":   {Command: "watch"},
	} {
		s.ID, s.Layout.Root = "s", "/w"
		if got := heading(&s); !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
}
