package guard

import (
	"errors"
	"maps"
	"os"
	"slices"
	"syscall"
	"testing"

	"cage/internal/safefile"
	"cage/restore"
	"cage/rules"
)

type noQuarantine struct{}

func (noQuarantine) Dir() (*safefile.Dir, error) { return nil, errors.New("no quarantine") }

// Promise: what a restore made or set aside is excused, whatever else has its
// name or lies in it is not.
func TestExcuses(t *testing.T) {
	r := newRig(t)
	p := r.protect(t, ".env", baseline)
	r.restorer = restore.New(r.Trees, r.Plan, r.Manifest, r.Store, noQuarantine{}, r.FileBytes)
	t.Cleanup(r.restorer.Close)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Remove(r.abs(p)))
	must(syscall.Mkfifo(r.abs(p), 0o600))
	r.judge(t.Context(), p)
	r.wantRows(t, row{".env", Reverted, "", 1})
	places := slices.Collect(maps.Keys(r.aside))
	if len(places) != 1 {
		t.Fatalf("set aside: %v", places)
	}
	aside := places[0]
	hidden := aside.Dir()
	own := hidden.Dir()
	want := func(p rules.Path, want bool) {
		t.Helper()
		if got := r.excuses(p); got != want {
			t.Errorf("%s is excused: %v", p.Rel, got)
		}
	}
	want(aside, true)
	want(hidden, true)
	want(own, true)
	want(aside.Join("below"), false)
	want(own.Join(".env"), false)
	want(rules.Path{Rel: safefile.Token()}, false)

	must(os.WriteFile(r.abs(own.Join(".env")), []byte("EVIL=1\n"), 0o600))
	r.exiting = true
	r.judge(t.Context(), own.Join(".env"))
	if _, err := os.Lstat(r.abs(own.Join(".env"))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what is in it stays: %v", err)
	}

	must(os.Chmod(r.abs(own), 0o300)) // who closes it hides something
	want(own, false)
	must(os.Chmod(r.abs(own), 0o700))
	want(own, true)
	must(os.Remove(r.abs(aside)))
	want(aside, true) // nothing stands there
	must(os.WriteFile(r.abs(aside), nil, 0o600))
	want(aside, false)
	must(os.RemoveAll(r.abs(own)))
	must(os.WriteFile(r.abs(own), nil, 0o600))
	want(own, false)
	must(os.Remove(r.abs(own)))
}
