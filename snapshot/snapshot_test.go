package snapshot_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cage/internal/safefile"
	"cage/rules"
	"cage/snapshot"
)

// scene is a root with files in it.
type scene struct {
	testing.TB
	dir   string
	trees *snapshot.Trees
	plan  *rules.Plan
	store *snapshot.Store
}

func ample() snapshot.Limits {
	return snapshot.Limits{FileBytes: 1 << 20, Files: 100, TotalBytes: 4 << 20}
}

// newScene makes a root with the given files, protected by a config.
func newScene(t testing.TB, config string, files map[string]string) *scene {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{TB: t, dir: dir, store: snapshot.NewStore()}
	for name, content := range files {
		s.write(name, content)
	}
	layout := rules.Layout{Root: dir}
	if s.plan, err = rules.New(rules.Inputs{Layout: layout, Config: rules.File{Present: config != "", Data: []byte(config)}}); err != nil {
		t.Fatal(err)
	}
	if s.trees, err = snapshot.OpenTrees(layout); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.trees.Close)
	return s
}

func (s *scene) abs(name string) string { return filepath.Join(s.dir, name) }

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *scene) write(name, content string) {
	s.Helper()
	s.must(os.MkdirAll(filepath.Dir(s.abs(name)), 0o755))
	s.must(os.WriteFile(s.abs(name), []byte(content), 0o644))
}

func (s *scene) take(limits snapshot.Limits) (*snapshot.Manifest, error) {
	s.Helper()
	found := snapshot.Look(s.trees, s.plan, nil, nil).Found
	return snapshot.Take(context.Background(), s.trees, s.plan, found, s.store, limits)
}

func (s *scene) baseline() *snapshot.Manifest {
	s.Helper()
	m, err := s.take(ample())
	s.must(err)
	return m
}

func root(rel string) rules.Path { return rules.Path{Rel: rel} }

func (s *scene) compare(m *snapshot.Manifest, name string) snapshot.Sight {
	s.Helper()
	e, ok := m.Entry(root(name))
	if !ok {
		s.Fatalf("no entry for %q", name)
	}
	look := snapshot.NewLooker(s.trees, s.store, 1<<20)
	defer look.Forget()
	return look.Compare(e)
}

func TestBaselineHoldsWhatStoodThere(t *testing.T) {
	odd := "odd\n\xff/.env"
	s := newScene(t, "", map[string]string{
		".env": "A=1", "sub/.env.local": "B=2", "go.sum": "sums", "main.go": "no", odd: "C=3", ".gitlab-ci.yml": "",
	})
	s.must(os.Chmod(s.abs(".env"), 0o750|os.ModeSetuid))
	s.must(os.Symlink("../main.go", s.abs("sub/.env")))
	m := s.baseline()
	var names []string
	for _, p := range m.Paths() {
		names = append(names, p.Rel)
	}
	if want := []string{".env", ".gitlab-ci.yml", "go.sum", odd, "sub/.env", "sub/.env.local"}; !slices.Equal(names, want) {
		t.Fatalf("entries %q, want %q", names, want)
	}
	e, _ := m.Entry(root(".env"))
	content, ok := s.store.Get(e.State.Content)
	if !ok || string(content) != "A=1" || e.State.Content != snapshot.IDOf([]byte("A=1")) {
		t.Errorf("content %q", content)
	}
	if e.State.Perm != 0o4750 || e.State.Size != 3 || !e.Kept || e.State.Digest != snapshot.DigestOf([]byte("A=1")) {
		t.Errorf("state %+v", e.State)
	}
	if link, _ := m.Entry(root("sub/.env")); link.State.Link != "../main.go" || link.State.Kind != safefile.Symlink || !link.Restorable() {
		t.Errorf("link %+v", link.State)
	}
	if sums, _ := m.Entry(root("go.sum")); sums.Kept || sums.State.Content != snapshot.IDOf([]byte("sums")) {
		t.Errorf("a file that is only reported is kept: %+v", sums)
	}
	if _, known := m.Directory(root("sub")); !known {
		t.Error("the directory of an entry is not known")
	}
}

// TestCompare changes one thing at a time.
func TestCompare(t *testing.T) {
	const content = "0123456789"
	type want struct{ same, prefix, undressed bool }
	tests := map[string]struct {
		change func(s *scene, name string)
		want   want
	}{
		"nothing":  {func(*scene, string) {}, want{same: true}},
		"touch":    {func(s *scene, n string) { s.must(os.Chtimes(n, time.Unix(1, 0), time.Unix(1, 0))) }, want{same: true}},
		"rewrite":  {func(s *scene, n string) { s.must(os.WriteFile(n, []byte(content), 0o644)) }, want{same: true}},
		"one byte": {func(s *scene, n string) { s.must(os.WriteFile(n, []byte("0123x56789"), 0o644)) }, want{}},
		"longer":   {func(s *scene, n string) { s.must(os.WriteFile(n, []byte(content+"x"), 0o644)) }, want{}},
		"empty":    {func(s *scene, n string) { s.must(os.Truncate(n, 0)) }, want{prefix: true}},
		"prefix":   {func(s *scene, n string) { s.must(os.Truncate(n, 4)) }, want{prefix: true}},
		"prefix with another mode": {func(s *scene, n string) {
			s.must(os.Truncate(n, 4))
			s.must(os.Chmod(n, 0o600))
		}, want{prefix: true}},
		"shorter":    {func(s *scene, n string) { s.must(os.WriteFile(n, []byte("x"), 0o644)) }, want{}},
		"mode":       {func(s *scene, n string) { s.must(os.Chmod(n, 0o755)) }, want{undressed: true}},
		"setuid bit": {func(s *scene, n string) { s.must(os.Chmod(n, 0o644|os.ModeSetuid)) }, want{undressed: true}},
		"mode and content": {func(s *scene, n string) {
			s.must(os.WriteFile(n, []byte("0123x56789"), 0o644))
			s.must(os.Chmod(n, 0o755))
		}, want{}},
		"terabyte": {func(s *scene, n string) { s.must(os.Truncate(n, 1<<40)) }, want{}},
		"attribute": {func(s *scene, n string) {
			if err := setAttribute(n); err != nil {
				s.Skip("no user attributes on this file system:", err)
			}
		}, want{undressed: true}},
		"gone":      {func(s *scene, n string) { s.must(os.Remove(n)) }, want{}},
		"symlink":   {func(s *scene, n string) { s.must(os.Remove(n)); s.must(os.Symlink("/etc/passwd", n)) }, want{}},
		"directory": {func(s *scene, n string) { s.must(os.Remove(n)); s.must(os.Mkdir(n, 0o755)) }, want{}},
		"fifo":      {func(s *scene, n string) { s.must(os.Remove(n)); s.must(syscall.Mkfifo(n, 0o644)) }, want{}},
		"parent is a link": {func(s *scene, n string) {
			s.must(os.Rename(s.abs("sub"), s.abs("moved")))
			s.must(os.Symlink("moved", s.abs("sub")))
		}, want{}},
		"parent is a file": {func(s *scene, n string) {
			s.must(os.RemoveAll(s.abs("sub")))
			s.write("sub", "")
		}, want{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "", map[string]string{"sub/.env": content})
			m := s.baseline()
			test.change(s, s.abs("sub/.env"))
			sight := s.compare(m, "sub/.env")
			if got := (want{sight.Same, sight.Prefix, sight.Undressed}); got != test.want || sight.Err != nil {
				t.Errorf("%+v %v, want %+v", got, sight.Err, test.want)
			}
		})
	}
}

// TestCompareByDigest covers files whose content is not kept.
func TestCompareByDigest(t *testing.T) {
	s := newScene(t, "", map[string]string{"go.sum": "sums"})
	m := s.baseline()
	if !s.compare(m, "go.sum").Same {
		t.Error("an unchanged file is not the same")
	}
	s.write("go.sum", "SUMS")
	if s.compare(m, "go.sum").Same {
		t.Error("content of the same length is taken for the same")
	}
}

func TestLimits(t *testing.T) {
	tests := map[string]struct {
		limits   snapshot.Limits
		oversize int
	}{
		"files":     {snapshot.Limits{Files: 2, FileBytes: 1 << 20, TotalBytes: 1 << 20}, 0},
		"bytes":     {snapshot.Limits{Files: 9, FileBytes: 1 << 20, TotalBytes: 999}, 0},
		"file size": {snapshot.Limits{Files: 9, FileBytes: 500, TotalBytes: 1 << 20}, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "", map[string]string{
				".env": "A", "a/.env": string(make([]byte, 1000)), "go.sum": string(make([]byte, 600)),
			})
			_, err := s.take(test.limits)
			var over *snapshot.LimitsError
			if !errors.As(err, &over) {
				t.Fatalf("error %v", err)
			}
			if over.Files != 3 || over.Bytes != 1601 || over.Largest[0].Path != root("a/.env") || len(over.Oversize) != test.oversize {
				t.Errorf("%+v", over)
			}
		})
	}
}

// TestOversizeIsDetected hashes what it may not keep.
func TestOversizeIsDetected(t *testing.T) {
	big := string(bytes.Repeat([]byte("x"), 1000))
	s := newScene(t, "", map[string]string{".env": "A", "a/.env": big, "b/.env": "BB"})
	m, err := s.take(snapshot.Limits{Files: 9, FileBytes: 500, TotalBytes: 2, DetectOversize: true})
	s.must(err)
	kept := map[string]bool{".env": true, "a/.env": false, "b/.env": false} // the total is reached by then
	for name, want := range kept {
		if e, _ := m.Entry(root(name)); e.Kept != want {
			t.Errorf("%s kept: %v", name, e.Kept)
		}
	}
	s.write("a/.env", "y"+big[1:])
	if s.compare(m, "a/.env").Same {
		t.Error("a change to an oversize file is not seen")
	}
}

// TestHalfAFileIsNoBaseline has a writer who never ends.
func TestHalfAFileIsNoBaseline(t *testing.T) {
	s := newScene(t, "", map[string]string{".env": "A"})
	f, err := os.OpenFile(s.abs(".env"), os.O_WRONLY, 0)
	s.must(err)
	defer f.Close()
	if !leases(f.Name()) {
		t.Skip("no leases on this file system")
	}
	var entry *snapshot.EntryError
	if _, err := s.take(ample()); !errors.Is(err, snapshot.ErrBeingWritten) || !errors.As(err, &entry) || entry.Path != root(".env") {
		t.Fatalf("error %v", err)
	}
}

// TestWriterIsWaitedFor has one who ends while the baseline waits.
func TestWriterIsWaitedFor(t *testing.T) {
	s := newScene(t, "", map[string]string{".env": "A"})
	f, err := os.OpenFile(s.abs(".env"), os.O_WRONLY|os.O_TRUNC, 0)
	s.must(err)
	taken := make(chan error, 1)
	var m *snapshot.Manifest
	go func() {
		var err error
		m, err = s.take(ample())
		taken <- err
	}()
	_, err = fmt.Fprint(f, "whole")
	s.must(errors.Join(err, f.Close()))
	s.must(<-taken)
	e, _ := m.Entry(root(".env"))
	content, _ := s.store.Get(e.State.Content)
	// Without leases an empty file that stood still may be the baseline.
	if string(content) != "whole" && leases(f.Name()) {
		t.Errorf("the baseline is %q", content)
	}
}

// TestNothingButTheBaselineIsKept has one who appends without end for a while:
// what was read meanwhile takes no room from what is kept at last.
func TestNothingButTheBaselineIsKept(t *testing.T) {
	s := newScene(t, "", map[string]string{".env": strings.Repeat("A", 1<<19)})
	appended := make(chan error, 1)
	go func() {
		for until := time.Now().Add(300 * time.Millisecond); time.Now().Before(until); {
			f, err := os.OpenFile(s.abs(".env"), os.O_WRONLY|os.O_APPEND, 0)
			if err == nil {
				_, err = f.WriteString("B")
				err = errors.Join(err, f.Close())
			}
			if err != nil {
				appended <- err
				return
			}
		}
		appended <- nil
	}()
	m := s.baseline()
	s.must(<-appended)
	e, _ := m.Entry(root(".env"))
	if !e.Kept || s.store.Size() != e.State.Size {
		t.Errorf("%d bytes are kept of a file of %d (%v)", s.store.Size(), e.State.Size, e.Kept)
	}
}

// TestGrownFileIsRefused has a file grow past the limit while another one is
// waited for: it must not be in the baseline without what a restore needs.
func TestGrownFileIsRefused(t *testing.T) {
	for _, detect := range []bool{false, true} {
		s := newScene(t, "", map[string]string{".env": "A", ".env.grows": "B"})
		limits := ample()
		limits.DetectOversize = detect
		writer, err := os.OpenFile(s.abs(".env"), os.O_WRONLY, 0)
		s.must(err)
		go func() {
			defer writer.Close()
			time.Sleep(50 * time.Millisecond) // whatever the moment, it must not be kept by halves
			os.WriteFile(s.abs(".env.grows"), make([]byte, limits.FileBytes+1), 0o644)
		}()
		m, err := s.take(limits)
		if !detect {
			var tooLarge *snapshot.LimitsError
			if !errors.Is(err, snapshot.ErrGrown) && !errors.As(err, &tooLarge) {
				t.Errorf("the baseline ends with %v", err)
			}
			continue
		}
		s.must(err)
		if e, ok := m.Entry(root(".env.grows")); !ok || e.Kept || e.State.Size != limits.FileBytes+1 {
			t.Errorf("to be detected is %+v", e)
		}
	}
}

// TestOddTypesAreEntriesOfTheirType never opens what would block.
func TestOddTypesAreEntriesOfTheirType(t *testing.T) {
	s := newScene(t, "", nil)
	s.must(syscall.Mkfifo(s.abs(".env"), 0o600))
	m := s.baseline()
	if e, ok := m.Entry(root(".env")); !ok || e.State.Kind != safefile.FIFO || e.Restorable() {
		t.Errorf("%+v", e)
	}
	if !s.compare(m, ".env").Same {
		t.Error("an unchanged FIFO is not the same")
	}
}

// TestTargetsOfLinks follows a chain that leaves the root.
func TestTargetsOfLinks(t *testing.T) {
	outside, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := newScene(t, "", map[string]string{"config/real": "A", "config/deep/x": ""})
	s.must(os.WriteFile(filepath.Join(outside, "env"), nil, 0o600))
	s.must(os.Symlink("config/step", s.abs(".env")))
	s.must(os.Symlink("deep/../real", s.abs("config/step")))
	s.must(os.Symlink(filepath.Join(outside, "env"), s.abs(".env.outside")))
	s.must(os.Symlink("nowhere", s.abs(".env.dead")))
	s.must(os.Symlink(".env.loop", s.abs(".env.loop")))
	s.must(os.Symlink("config", s.abs(".env.dir")))
	found := snapshot.Look(s.trees, s.plan, nil, nil).Found
	var got []string
	for _, joined := range snapshot.Follow(s.trees, s.plan, found).Joined {
		if joined.Verdict.Rule != rules.Secrets {
			t.Errorf("%+v", joined)
		}
		got = append(got, s.trees.Layout().Abs(joined.Path))
	}
	slices.Sort(got)
	want := []string{filepath.Join(outside, "env"), s.abs("config/real"), s.abs("config/step")}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("targets %q, want %q", got, want)
	}
}

// Promise: whatever link decides what is read at a protected place is found, and
// the places that links lead astray are named.
func TestLinksOnTheWay(t *testing.T) {
	outside, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := newScene(t, "protect: [{path: lead/file}, {path: lead/dir}, {path: guarded/x}, {path: tree}, {path: r/s, mode: report}]\n",
		map[string]string{"real/file": "", "real/dir/a": "", "tree/x/a": ""})
	s.must(os.Symlink(outside, s.abs("way")))
	s.must(os.Symlink("step", filepath.Join(outside, "link")))
	s.must(os.Mkdir(filepath.Join(outside, "step"), 0o755))
	s.must(os.WriteFile(filepath.Join(outside, "step/env"), nil, 0o600))
	for link, target := range map[string]string{
		".env": "way/link/env", "lead": "real", "guarded": "tree", "r": "real", ".github": "nowhere", "other": "real",
	} {
		s.must(os.Symlink(target, s.abs(link)))
	}
	links := snapshot.Follow(s.trees, s.plan, snapshot.Look(s.trees, s.plan, nil, nil).Found)
	var got []string
	for _, joined := range links.Joined {
		got = append(got, s.trees.Layout().Abs(joined.Path)+" "+string(joined.Verdict.Rule))
	}
	slices.Sort(got)
	want := []string{
		filepath.Join(outside, "link") + " secrets", filepath.Join(outside, "step/env") + " secrets", s.abs("way") + " secrets",
		s.abs("lead") + " cage_protect", s.abs("real/file") + " cage_protect", s.abs("guarded") + " cage_protect", s.abs(".github") + " ci_config",
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("joined\n%q, want\n%q", got, want)
	}
	var astray []string
	for _, a := range links.Astray {
		astray = append(astray, a.Place.Rel+" "+a.End.Rel)
	}
	slices.Sort(astray)
	if want := []string{".github/workflows nowhere/workflows", "lead/dir real/dir"}; !slices.Equal(astray, want) {
		t.Errorf("astray %q, want %q", astray, want)
	}
}

// One attribute that cannot be set back lets no other one become the baseline.
func TestWithAttributes(t *testing.T) {
	attrs := func(pairs ...string) (list []safefile.Attr) {
		for _, pair := range pairs {
			name, value, _ := strings.Cut(pair, "=")
			list = append(list, safefile.Attr{Name: name, Value: []byte(value)})
		}
		return list
	}
	info := func(uid, perm uint32) safefile.Info { return safefile.Info{UID: uid, GID: uid, Perm: perm} }
	for name, c := range map[string]struct {
		baseline, reached, want snapshot.State
		unset                   []string
	}{
		"owner": {
			snapshot.State{Info: info(0, 0o640), Attrs: attrs("user.a=1")},
			snapshot.State{Info: info(1, 0o777), Attrs: attrs("user.b=2")},
			snapshot.State{Info: info(1, 0o640), Attrs: attrs("user.a=1")},
			[]string{safefile.OwnerAttr},
		},
		"a group's bit": {
			snapshot.State{Info: info(0, 0o2750)}, snapshot.State{Info: info(1, 0o777)}, snapshot.State{Info: info(1, 0o750)},
			[]string{safefile.OwnerAttr},
		},
		"a group's bit that was not there": {
			snapshot.State{Info: info(0, 0o750)}, snapshot.State{Info: info(1, 0o2777)}, snapshot.State{Info: info(1, 0o750)},
			[]string{safefile.OwnerAttr},
		},
		"an attribute is left out": {
			snapshot.State{Info: info(0, 0o640), Attrs: attrs("user.a=1", "user.c=3")},
			snapshot.State{Info: info(1, 0o777), Attrs: attrs("user.b=2", "user.c=4")},
			snapshot.State{Info: info(0, 0o640), Attrs: attrs("user.c=3")},
			[]string{"user.a"},
		},
		"attributes stay": {
			snapshot.State{Attrs: attrs("user.c=3")},
			snapshot.State{Attrs: attrs("user.b=2", "user.c=4", "user.d=5")},
			snapshot.State{Attrs: attrs("user.b=2", "user.c=4")},
			[]string{"user.c", "user.b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var unset []safefile.UnsetAttr
			for _, attr := range c.unset {
				unset = append(unset, safefile.UnsetAttr{Name: attr, Err: syscall.EPERM})
			}
			e := snapshot.Entry{State: c.baseline}
			before := slices.Clone(c.baseline.Attrs)
			got := e.WithAttributes(unset, c.reached).State
			if got.Info != c.want.Info || !safefile.SameAttrs(got.Attrs, c.want.Attrs) {
				t.Errorf("became %+v, want %+v", got, c.want)
			}
			if !safefile.SameAttrs(e.State.Attrs, before) {
				t.Errorf("the baseline's own became %+v", e.State.Attrs)
			}
		})
	}
}

func TestIDText(t *testing.T) {
	id := snapshot.IDOf([]byte("x"))
	text, _ := id.MarshalText()
	var again snapshot.ID
	if err := again.UnmarshalText(text); err != nil || again != id {
		t.Errorf("%v %v", again, err)
	}
	for _, bad := range []string{"", "xy", id.String() + "00", "g" + id.String()[1:]} {
		if _, err := snapshot.ParseID(bad); err == nil {
			t.Errorf("%q is taken for an id", bad)
		}
	}
}
