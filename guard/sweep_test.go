package guard

import (
	"crypto/sha256"
	"hash"
	"os"
	"testing"

	"cage/rules"
)

// fights has a path changed again as soon as a restore hands on what it
// displaced.
func (r *rig) fights(t *testing.T, p rules.Path) {
	r.Keeper.Identify = func(int64) hash.Hash {
		r.tamper(t, p)
		return sha256.New()
	}
	r.tamper(t, p)
}

// tamper writes a file and does not let go of it, so that nobody but the guard
// looks at the displaced version.
func (r *rig) tamper(t *testing.T, p rules.Path) {
	t.Helper()
	f, err := os.OpenFile(r.abs(p), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	writer{f, t}.at(0, "EVIL=1\n")
}

// Promise: what somebody changes again after every restore of the sweep is not
// said to be back.
func TestUnsettledIsNotBack(t *testing.T) {
	t.Run("a file of the baseline", func(t *testing.T) {
		r := newRig(t)
		p := r.protect(t, ".env", baseline)
		r.fights(t, p)
		r.sweep(t.Context())
		r.wantRows(t, row{".env", RevertFailed, "", sweeps})
		// A hint that comes later changes nothing about that.
		r.dirty.add(p)
		r.work(t.Context())
		if r.dirty.len() > 0 {
			t.Error("the path is still to be judged")
		}
		r.wantRows(t, row{".env", RevertFailed, "", sweeps})
		if got := r.Rows()[0]; got.Code != "EBUSY" || got.Kind != Modified {
			t.Errorf("the row is %+v", got)
		}
	})
	t.Run("an added one", func(t *testing.T) {
		r := newRig(t)
		r.fights(t, rules.Path{Rel: ".env"})
		r.sweep(t.Context())
		r.wantRows(t, row{".env", RevertFailed, "", sweeps})
		if got := r.Rows()[0]; got.Code != "EBUSY" || got.Kind != Added {
			t.Errorf("the row is %+v", got)
		}
	})
	t.Run("not for long", func(t *testing.T) {
		r := newRig(t)
		p := r.protect(t, ".env", baseline)
		r.tamper(t, p)
		r.sweep(t.Context())
		r.wantRows(t, row{".env", Reverted, "", 1})
	})
	t.Run("a link on the way", func(t *testing.T) {
		r := newRig(t)
		p := rules.Path{Rel: ".github"}
		if err := os.Symlink("elsewhere", r.abs(p)); err != nil {
			t.Fatal(err)
		}
		r.noteUnsettled(t.Context(), []rules.Path{p})
		r.wantRows(t, row{".github", RevertFailed, "", 0})
		if got := r.Rows()[0]; got.Verdict.Rule != rules.CIConfig || got.Verdict.Mode != rules.Revert {
			t.Errorf("the row is %+v", got)
		}
	})
}
