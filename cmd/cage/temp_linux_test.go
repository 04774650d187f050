package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Promise: the temporary directory of a command whose cage was killed is shown,
// and removed by the next start.
func TestPrivateTmpOfAKilledCage(t *testing.T) {
	t.Parallel()
	f := newField(t)
	r := f.cage(`mkdir -p "$TMPDIR/a/b"; ln -s "$PWD" "$TMPDIR/a/link"; chmod 0 "$TMPDIR/a"; : >ready; exec sleep 1000`, "--private-tmp")
	f.appears("ready")
	directories := func() int {
		found, err := filepath.Glob(filepath.Join(f.work, "tmp", "gantry-cage-tmp-*"))
		f.must(err)
		return len(found)
	}
	f.eventually("the journal knows the command", func() bool { return f.doctor("running") })
	if f.doctor("private_tmp") || directories() != 1 {
		t.Errorf("%d directories, one of which was left", directories())
	}
	r.signal(syscall.SIGKILL)
	<-r.over
	git := f.prepare("git", "init", "-q", "--template=", "../other")
	git.begin()
	git.exits(0)
	other := f.prepare("cage", "doctor", "--json")
	other.cmd.Dir = f.path("../other")
	other.begin()
	other.exits(1)
	if !strings.Contains(other.stdout.String(), `"kind": "private_tmp"`) {
		t.Errorf("elsewhere the doctor says %s", &other.stdout)
	}
	next := f.cage("true")
	next.exits(0)
	if directories() != 0 {
		t.Error("it is still there")
	}
	f.whole(".env", dotenv)
}

// doctor reports whether it finds a leftover of that kind.
func (f *field) doctor(kind string) bool {
	r := f.prepare("cage", "doctor", "--json")
	r.begin()
	<-r.over
	return strings.Contains(r.stdout.String(), `"kind": "`+kind+`"`)
}
