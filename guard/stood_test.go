package guard

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"cage/internal/safefile"
	"cage/rules"
	"cage/snapshot"
)

// again makes a file anew with the same content and gives it a mode at the end,
// as install(1) does.
func (r *rig) again(t *testing.T, p rules.Path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.Remove(r.abs(p)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.abs(p), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(r.abs(p), mode); err != nil {
		t.Fatal(err)
	}
}

// filesPass returns when the kernel's clock for files, which is behind, has passed
// a time.
func filesPass(t *testing.T, at time.Time) {
	t.Helper()
	probe := filepath.Join(t.TempDir(), "probe")
	for {
		if err := os.WriteFile(probe, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(probe)
		if err != nil {
			t.Fatal(err)
		}
		if info.ModTime().After(at) {
			return
		}
	}
}

// Promise: a file that is made anew with the same content has time to get its
// mode, also where the system gives it the number of the old one.
func TestUndressedSettles(t *testing.T) {
	r := newRig(t)
	p := r.protect(t, ".env", baseline)
	filesPass(t, time.Now())
	for range 20 {
		r.again(t, p, baseline, 0o600)
		r.judge(t.Context(), p)
		if state := r.settling[p]; state == nil || state.first[undressed].IsZero() {
			t.Fatal("it has no time to get its mode")
		}
		if err := os.Chmod(r.abs(p), 0o644); err != nil {
			t.Fatal(err)
		}
		r.judge(t.Context(), p)
		r.settling.over(p)
	}
	r.wantRows(t)
	if r.live != 0 {
		t.Errorf("%d restores", r.live)
	}
}

// Promise: who goes on making it anew gains nothing.
func TestUndressedIsPutBack(t *testing.T) {
	r := newRig(t)
	p := r.protect(t, ".env", baseline)
	filesPass(t, time.Now())
	r.again(t, p, baseline, 0o600)
	r.judge(t.Context(), p)
	r.again(t, p, baseline, 0o666)
	r.impatient(t, p)
	r.wantRows(t, row{".env", Reverted, "", 1})
	if info, err := os.Stat(r.abs(p)); err != nil || info.Mode() != 0o644 {
		t.Errorf("mode %v (%v)", info.Mode(), err)
	}
}

// Promise: who makes it anew, slowly, and gives it its mode by its name has
// changed nothing.
func TestSlowRemakeIsTakenBack(t *testing.T) {
	r := newRig(t)
	p := r.protect(t, ".env", baseline)
	filesPass(t, time.Now())
	r.again(t, p, baseline[:3], 0o600)
	w := r.open(t, p, 0)
	r.impatient(t, p)
	w.at(0, baseline)
	w.Close()
	if err := os.Chmod(r.abs(p), 0o644); err != nil {
		t.Fatal(err)
	}
	r.seal(t, 1)
	r.wantRows(t)
	r.wantCopies(t, 0)
}

// Promise: a mode that is changed on the file of the baseline, on one that was
// put back or on one that stood there whole is put back at once.
func TestModeOfItsOwnIsPutBackAtOnce(t *testing.T) {
	r := newRig(t)
	p := r.protect(t, ".env", baseline)
	chmod := func(want int) {
		t.Helper()
		if err := os.Chmod(r.abs(p), 0o600); err != nil {
			t.Fatal(err)
		}
		r.judge(t.Context(), p)
		r.wantRows(t, row{".env", Reverted, "", want})
	}
	chmod(1)
	chmod(2)
	r.again(t, p, baseline, 0o644)
	filesPass(t, time.Now().Add(tick))
	r.judge(t.Context(), p)
	chmod(3)
}

// Promise: what tells is the number or, where that is the same, the birth.
func TestOtherInode(t *testing.T) {
	since := time.Date(2031, 5, 4, 3, 2, 1, 0, time.UTC)
	p, later := rules.Path{Rel: ".env"}, since.Add(time.Hour)
	e := &snapshot.Entry{Path: p}
	e.State.Inode = safefile.Inode{Ino: 1}
	seen := func(ino uint64, born time.Time) snapshot.Sight {
		s := snapshot.Sight{Born: born}
		s.State.Inode = safefile.Inode{Ino: ino}
		return s
	}
	s := newStood(since)
	for i, tt := range []struct {
		note func()
		ino  uint64
		born time.Time
		want bool
	}{
		{func() {}, 1, since.Add(-time.Hour), false},
		{func() {}, 1, time.Time{}, false},
		{func() {}, 1, since.Add(ms), true},
		{func() {}, 2, since.Add(-time.Hour), true},
		{func() {}, 2, time.Time{}, true},
		{func() { s.own(p, safefile.Inode{Ino: 2}, later) }, 2, later, false},
		{func() {}, 2, later.Add(ms), true},
		{func() {}, 1, since, true},
		{func() { s.whole(p, safefile.Inode{Ino: 2}, later) }, 2, later.Add(-tick), false},
		{func() {}, 2, later, true},
	} {
		tt.note()
		if got := s.isOther(e, seen(tt.ino, tt.born)); got != tt.want {
			t.Errorf("%d: %v", i, got)
		}
	}
}
