//go:build linux || darwin || freebsd || netbsd || openbsd

package snapshot_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cage/internal/limittest"
	"cage/rules"
	"cage/snapshot"

	"golang.org/x/sys/unix"
)

// Promise: no depth of a tree takes more descriptors than there are.
func TestDeepWalk(t *testing.T) {
	const depth = 300
	deep := strings.Repeat("d/", depth)
	s := newScene(t, "", map[string]string{deep + ".env": "A=1\n", deep + "beside/.env": "", ".env": ""})
	restored := limittest.MoreFiles(t, 4)
	survey := snapshot.Look(s.trees, s.plan, nil, nil)
	restored()
	if len(survey.Unseen) > 0 {
		t.Errorf("nothing was learnt of %d directories: %v", len(survey.Unseen), survey.Unseen[0].Err)
	}
	for _, name := range []string{deep + ".env", deep + "beside/.env", ".env"} {
		if !slices.Contains(survey.Found, rules.Path{Rel: filepath.Clean(name)}) {
			t.Errorf("%d levels down a file was not found", strings.Count(name, "/"))
		}
	}
}

// Promise: what a walk learnt nothing about is told, and for no other reason
// than that.
func TestUnseenDirectories(t *testing.T) {
	s := newScene(t, "", map[string]string{"a/b/.env": "", "c/.env": ""})
	restored := limittest.MoreFiles(t, 0)
	survey := snapshot.Look(s.trees, s.plan, nil, nil)
	moved, unknown := s.trees.Moved()
	_, err := s.trees.IsLink(rules.Path{Rel: "a/b"})
	restored()
	if len(survey.Unseen) == 0 || !errors.Is(survey.Unseen[0].Err, unix.EMFILE) {
		t.Errorf("without a descriptor: %+v", survey)
	}
	if len(moved) > 0 || len(unknown) == 0 || !errors.Is(unknown[0].Err, unix.EMFILE) {
		t.Errorf("without a descriptor: moved %v, unknown %v", moved, unknown)
	}
	if !errors.Is(err, unix.EMFILE) {
		t.Errorf("without a descriptor: no link, %v", err)
	}
	if err := os.RemoveAll(filepath.Join(s.trees.Layout().Root, "c")); err != nil {
		t.Fatal(err)
	}
	survey = snapshot.Look(s.trees, s.plan, nil, nil)
	if moved, unknown := s.trees.Moved(); len(survey.Unseen)+len(moved)+len(unknown) > 0 {
		t.Errorf("unseen %v, moved %v, unknown %v", survey.Unseen, moved, unknown)
	}
}
