package guard

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"cage/internal/gitrepo"
	"cage/rules"
	"cage/snapshot"
)

// protect makes a file in the root and adds it to the baseline.
func (r *rig) protect(t *testing.T, name, content string) rules.Path {
	t.Helper()
	p := rules.Path{Rel: name}
	if err := os.WriteFile(r.abs(p), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	limits := snapshot.Limits{FileBytes: 1 << 20, Files: 100, TotalBytes: 1 << 20}
	one, err := snapshot.Take(t.Context(), r.Trees, r.Plan, []rules.Path{p}, r.Store, limits)
	if err != nil {
		t.Fatal(err)
	}
	e, ok := one.Entry(p)
	if !ok {
		t.Fatalf("%s is not protected", name)
	}
	r.Manifest.Add(e)
	r.stood.own(p, e.State.Inode, time.Now())
	return p
}

func (r *rig) abs(p rules.Path) string { return r.Trees.Layout().Abs(p) }

// seal takes displaced versions until there are as many as wanted.
func (r *rig) seal(t *testing.T, want int) {
	t.Helper()
	for left := want; left > 0; {
		select {
		case <-r.Keeper.Ready():
			before := len(r.unexplained)
			r.takeSealed()
			left -= before - len(r.unexplained)
		case <-time.After(30 * time.Second):
			t.Fatal("nothing is sealed")
		}
	}
}

// writer holds a file open.
type writer struct {
	*os.File
	t *testing.T
}

func (r *rig) open(t *testing.T, p rules.Path, flag int) writer {
	t.Helper()
	f, err := os.OpenFile(r.abs(p), os.O_WRONLY|flag, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return writer{f, t}
}

func (w writer) at(offset int64, content string) {
	w.t.Helper()
	if _, err := w.WriteAt([]byte(content), offset); err != nil {
		w.t.Fatal(err)
	}
}

// impatient judges a path as if everything had been seen so long ago that no
// crowd is an excuse.
func (r *rig) impatient(t *testing.T, p rules.Path) {
	t.Helper()
	r.judge(t.Context(), p)
	if state := r.settling[p]; state != nil {
		for h := range halves {
			if !state.first[h].IsZero() {
				state.first[h] = state.first[h].Add(-crowdPatience)
			}
		}
		r.judge(t.Context(), p)
	}
}

// row is what a test says of a row.
type row struct {
	path     string
	outcome  Outcome
	note     Note
	restores int
}

func (r *rig) wantRows(t *testing.T, want ...row) {
	t.Helper()
	var got []row
	for _, is := range r.Rows() {
		got = append(got, row{is.Path.Rel, is.Outcome, is.Note, is.Restores})
	}
	if !slices.Equal(got, want) {
		t.Errorf("rows %+v, want %+v", got, want)
	}
}

func (r *rig) wantCopies(t *testing.T, want int) {
	t.Helper()
	r.Keeper.Finish()
	entries, _ := os.ReadDir(r.Keeper.Store)
	if len(entries) != want {
		t.Errorf("%d displaced versions are kept, want %d", len(entries), want)
	}
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(r.file), "gantry-cage-kept", "*", "*"))
	if len(left) > 0 {
		t.Errorf("left in the quarantine: %q", left)
	}
}

const baseline = "ONE=1\nTWO=2\n"

// Promise: whoever cuts a file off and writes the same again, however slowly,
// has changed nothing: no row, no restore that counts, no copy.
func TestSlowRewriteIsTakenBack(t *testing.T) {
	r := newRig(t)
	p := r.protect(t, ".env", baseline)
	w := r.open(t, p, os.O_TRUNC)
	r.impatient(t, p)
	if r.live != 1 {
		t.Fatalf("%d restores of a file that was cut off", r.live)
	}
	w.at(0, baseline)
	w.Close()
	r.seal(t, 1)
	if r.live != 0 {
		t.Errorf("%d restores count", r.live)
	}
	r.wantRows(t)
	r.wantCopies(t, 0)
	if events := r.Take(); !slices.Contains(events, Event(Explained{Tag: 1, Unchanged: true})) {
		t.Errorf("nothing was taken back: %+v", events)
	}
}

// Promise: what was seen to be something else stays a change, whatever becomes
// of the file that was displaced.
func TestTraceIsNotWipedOut(t *testing.T) {
	r := newRig(t)
	p := r.protect(t, ".env", baseline)
	w := r.open(t, p, 0)
	w.at(0, "EVIL=1")
	r.impatient(t, p)
	w.at(0, baseline)
	w.Close()
	r.seal(t, 1)
	r.wantRows(t, row{".env", Reverted, "", 1})
	if r.live != 1 {
		t.Errorf("%d live restores", r.live)
	}
}

// A cut-off file that was not completed was a change, and so was one that got a
// longer or another rest.
func TestHalfThatStaysOneIsAChange(t *testing.T) {
	for name, rest := range map[string]string{"nothing": "", "a part": baseline[:3], "more": baseline + "X=1\n", "other": "EVIL=1\n"} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			p := r.protect(t, ".env", baseline)
			w := r.open(t, p, os.O_TRUNC)
			r.impatient(t, p)
			w.at(0, rest)
			w.Close()
			r.seal(t, 1)
			r.wantRows(t, row{".env", Reverted, "", 1})
			r.wantCopies(t, 1)
		})
	}
}

// A path that was tampered with and also rewritten slowly keeps its row, with
// the restores that answered a change, and the copy of what was displaced then.
func TestTakenBackBesideAChange(t *testing.T) {
	r := newRig(t)
	p := r.protect(t, ".env", baseline)
	w := r.open(t, p, os.O_TRUNC)
	w.at(0, "EVIL=1\n")
	w.Close()
	r.impatient(t, p)
	w = r.open(t, p, os.O_TRUNC)
	r.impatient(t, p)
	w.at(0, baseline)
	w.Close()
	r.Keeper.Finish()
	r.takeSealed()
	r.wantRows(t, row{".env", Reverted, "", 1})
	r.wantCopies(t, 1)
}

// What could not be looked at is told by what its restore displaced: a file that
// was deleted in a directory that was then closed is no modified one.
func TestUnseenIsToldByItsRestore(t *testing.T) {
	unseen := snapshot.Sight{Err: &fs.PathError{Op: "open", Path: ".env", Err: fs.ErrPermission}}
	for want, change := range map[Kind]func(name string) error{
		Deleted:  os.Remove,
		Modified: func(name string) error { return os.WriteFile(name, []byte("EVIL=1\n"), 0o644) },
	} {
		r := newRig(t)
		p := r.protect(t, ".env", baseline)
		if err := change(r.abs(p)); err != nil {
			t.Fatal(err)
		}
		e, _ := r.Manifest.Entry(p)
		r.putBack(e, unseen)
		if rows := r.Rows(); len(rows) != 1 || rows[0].Kind != want || rows[0].Outcome != Reverted {
			t.Errorf("rows %+v, want one of a file that is %s", rows, want)
		}
	}
}

// The copy of a version that is a change for its mode alone has the content of
// the baseline: dropping another of the same content leaves it.
func TestCopyOfTheSameContentStays(t *testing.T) {
	r := newRig(t)
	p := r.protect(t, ".env", baseline)
	if err := os.Chmod(r.abs(p), 0o600); err != nil {
		t.Fatal(err)
	}
	r.impatient(t, p)
	r.seal(t, 1)
	w := r.open(t, p, os.O_TRUNC)
	r.impatient(t, p)
	w.at(0, baseline)
	w.Close()
	r.seal(t, 1)
	r.wantRows(t, row{".env", Reverted, "", 1})
	r.wantCopies(t, 1)
}

// Promise: bookkeeping softens a row only as long as nothing else happened.
func TestBookkeepingDoesNotSoftenTampering(t *testing.T) {
	r := newRig(t)
	r.see(t, r.books("1"))
	r.answerAll(t)
	r.wantRows(t, row{"config", Kept, GitBookkeeping, 0})
	kept := r.read(t)
	r.see(t, r.evil())
	r.answerAll(t)
	r.wantRows(t, row{"config", Reverted, "", 1})
	if now := r.read(t); now != kept {
		t.Errorf("the config is %q, want %q", now, kept)
	}
	r.see(t, r.books("2"))
	r.answerAll(t)
	r.wantRows(t, row{"config", Reverted, "", 1})
}

// What is gone again or whole by the time it would be undone makes no row.
func TestNoRowForWhatIsWholeAgain(t *testing.T) {
	r := newRig(t)
	p := r.protect(t, ".env", baseline)
	added := rules.Path{Rel: ".env.local.tmp1"}
	if err := os.WriteFile(r.abs(added), []byte("A=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.judge(t.Context(), added)
	if err := os.Remove(r.abs(added)); err != nil {
		t.Fatal(err)
	}
	r.impatient(t, added)
	if err := os.Remove(r.abs(p)); err != nil {
		t.Fatal(err)
	}
	r.judge(t.Context(), p)
	if err := os.WriteFile(r.abs(p), []byte(baseline), 0o644); err != nil {
		t.Fatal(err)
	}
	r.impatient(t, p)
	r.wantRows(t)
	if r.live != 0 {
		t.Errorf("%d live restores", r.live)
	}
}

// Promise: what git records as it does the baseline is no branch switch, except
// on the way back from one.
func TestAttributesAreNoSwitch(t *testing.T) {
	blob := func(id string, mode uint32) *gitrepo.State {
		return &gitrepo.State{Path: ".env", Blob: id, Mode: mode}
	}
	same, executable := blob("start", gitrepo.ModeFile), blob("start", gitrepo.ModeExecutable)
	other, gone := blob("other", gitrepo.ModeFile), blob("", 0)
	var row Row
	for i, c := range []struct {
		state *gitrepo.State
		want  Explained
	}{
		{same, Explained{}},
		{same, Explained{}},
		{other, Explained{State: other}},
		{same, Explained{Unchanged: true}},
		{same, Explained{}},
		{executable, Explained{State: executable}},
		{nil, Explained{}},
		{same, Explained{Unchanged: true}},
		{gone, Explained{State: gone}},
		{same, Explained{Unchanged: true}},
		{same, Explained{}},
	} {
		c.want.Tag = i
		if got := row.judged(i, c.state, blob("start", gitrepo.ModeFile)); got != c.want {
			t.Errorf("%d: %+v, want %+v", i, got, c.want)
		}
	}
	if got := row.judged(0, nil, nil); got != (Explained{}) {
		t.Errorf("outside git: %+v", got)
	}
}
