//go:build linux || darwin || freebsd || netbsd || openbsd

package guard

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"cage/internal/limittest"
	"cage/internal/safefile"
	"cage/rules"
	"cage/snapshot"
	"cage/watch"

	"golang.org/x/sys/unix"
)

// workflows protects a directory with a file in it, and returns both.
func (r *rig) workflows(t *testing.T) (dir, file rules.Path) {
	t.Helper()
	dir = rules.Path{Rel: ".github/workflows"}
	if err := os.MkdirAll(r.abs(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	file = r.protect(t, ".github/workflows/ci.yml", baseline)
	r.Manifest.NoteDirectories(r.Trees, []rules.Path{dir})
	r.tended = []rules.Path{dir}
	return dir, file
}

// Promise: a look that failed says nothing. No row is made of it, it is told, and
// the next rescan looks again.
func TestFailedLookIsRepeated(t *testing.T) {
	r := newRig(t)
	dir, file := r.workflows(t)
	added := dir.Join("evil.yml")
	if err := os.WriteFile(r.abs(added), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	restored := limittest.NoFiles(t)
	for _, p := range []rules.Path{dir, file, added} {
		r.dirty.add(p)
	}
	r.work(t.Context())
	r.digest(r.compareAll(t.Context(), request{}))
	r.work(t.Context())
	restored()
	r.wantRows(t)
	if lacks := r.WatchStatus().Degraded; len(lacks) != 1 || lacks[0] != lookFailed(unix.EMFILE) {
		t.Errorf("it is told as %v", lacks)
	}
	r.digest(r.compareAll(t.Context(), request{}))
	r.work(t.Context())
	if _, settles := r.settling[added]; !settles {
		t.Error("what was added is not looked at again")
	}
	r.sweep(t.Context())
	r.wantRows(t, row{added.Rel, Removed, "", 1})
}

// Promise: what even the last comparison could not look at is never "unchanged".
func TestUnseenIsNotUnchanged(t *testing.T) {
	r := newRig(t)
	dir, _ := r.workflows(t)
	if err := os.WriteFile(r.abs(dir.Join("evil.yml")), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	restored := limittest.NoFiles(t)
	r.sweep(t.Context())
	restored()
	found := false
	for _, row := range r.Rows() {
		if row.Outcome != RevertFailed || row.Code != "EMFILE" {
			t.Errorf("the row is %+v", row)
		}
		found = found || row.Verdict.Rule == Unseen && row.Path == rules.Path{}
	}
	if !found {
		t.Errorf("no row says that the root was not seen: %+v", r.Rows())
	}
	// Another one may see it.
	r.sweep(t.Context())
	r.wantRows(t, row{".github/workflows/evil.yml", Removed, "", 1})
}

// What was taken from the program is had back before the last comparison, and
// when a look failed for want of it.
func TestUpkeep(t *testing.T) {
	lack := watch.Lack{Reason: "somebody took it"}
	upkeep := func(r *rig, t *testing.T) {
		restored := limittest.NoFiles(t)
		r.Upkeep = func() []watch.Lack { restored(); return []watch.Lack{lack} }
	}
	t.Run("before the last comparison", func(t *testing.T) {
		r := newRig(t)
		added := rules.Path{Rel: ".env"}
		if err := os.WriteFile(r.abs(added), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		upkeep(r, t)
		r.sweep(t.Context())
		r.wantRows(t, row{".env", Removed, "", 1})
		if lacks := r.WatchStatus().Degraded; len(lacks) != 1 || lacks[0] != lack {
			t.Errorf("it is told as %v", lacks)
		}
	})
	t.Run("at once", func(t *testing.T) {
		r := newRig(t)
		dir, file := r.workflows(t)
		if err := os.WriteFile(r.abs(file), []byte("evil\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		r.dirty.add(file)
		upkeep(r, t)
		r.work(t.Context())
		r.wantRows(t, row{file.Rel, Reverted, "", 1})
		r.dirty.add(dir)
		upkeep(r, t)
		r.work(t.Context())
		r.wantRows(t, row{file.Rel, Reverted, "", 1})
		r.dirty.add(rules.Path{Rel: ".env"})
		upkeep(r, t)
		r.work(t.Context())
		r.wantRows(t, row{file.Rel, Reverted, "", 1})
		if len(r.unlooked) > 0 {
			t.Errorf("%v were not looked at", r.unlooked)
		}
	})
}

// A path that cannot be looked at for a moment is no ground that moved.
func TestUnknownGroundDoesNotHalt(t *testing.T) {
	r := newRig(t)
	restored := limittest.NoFiles(t)
	r.digest(r.compareAll(t.Context(), request{}))
	restored()
	for _, e := range r.Take() {
		if _, moved := e.(GroundMoved); moved {
			t.Error("the ground is said to have moved")
		}
	}
	r.wantRows(t)
}

// A walk that did not see everything is repeated soon, and then more and more
// rarely.
func TestIncompleteWalkIsRepeated(t *testing.T) {
	r := newRig(t)
	r.Interval = time.Second
	blind := findings{walked: true, unseen: []snapshot.Unseen{{Err: unix.EIO}}}
	for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		if r.rescan.retry = r.retryAfter(blind); r.rescan.retry != want {
			t.Errorf("it comes after %v, want %v", r.rescan.retry, want)
		}
	}
	if r.rescan.retry = r.retryAfter(findings{walked: true}); r.rescan.retry != 0 {
		t.Error("a complete walk is repeated")
	}
}

func TestUnseenRows(t *testing.T) {
	r := newRig(t)
	var places []snapshot.Unseen
	for _, rel := range []string{"a/b/c", "a/b/d", "a/bc"} {
		places = append(places, snapshot.Unseen{Path: rules.Path{Rel: filepath.FromSlash(rel)}, Err: unix.EIO})
	}
	places = append(places, snapshot.Unseen{Path: rules.Path{Anchor: rules.CommonDir, Rel: "hooks"}, Err: safefile.ErrBusy})
	r.noteUnseen(places)
	rows := r.Rows()
	if len(rows) != 2 || rows[0].Path.Rel != "a" || rows[0].Code != "EIO" || rows[1].Path.Rel != "hooks" {
		t.Errorf("the rows are %+v", rows)
	}
}
