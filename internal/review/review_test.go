//go:build linux || darwin || freebsd || netbsd || openbsd

package review

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cage/internal/kept"
	"cage/internal/program"
	"cage/internal/safefile"
	"cage/rules"
	"cage/snapshot"
)

const id = "0123456789abcdef"

// scene is a repository, and what one session displaced there.
type scene struct {
	testing.TB
	dir    string
	layout rules.Layout
	desk   *Desk
	ledger *kept.Ledger
	keeper *kept.Keeper
}

func newScene(t testing.TB) *scene {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{TB: t, dir: dir}
	s.layout = rules.Layout{Root: s.path(""), CommonDir: s.path(".git")}
	for _, folder := range []string{".git/hooks", ".github/workflows"} {
		s.must(os.MkdirAll(s.path(folder), 0o755))
	}
	s.write(".env", "A=1")
	s.write(".github/workflows/ci.yml", "on: push")
	trees, err := snapshot.OpenTrees(s.layout)
	s.must(err)
	t.Cleanup(trees.Close)
	sessions := filepath.Join(dir, "sessions")
	s.desk = &Desk{Trees: trees, Sessions: sessions, Spare: func(string) string { return filepath.Join(dir, "spare") }}
	options := kept.Options{
		GitDir: trees.Root(rules.CommonDir), Store: filepath.Join(sessions, id), Spare: s.desk.Spare(id), Session: id, DigestLimit: 1 << 20,
	}
	s.keeper = kept.Open(options)
	t.Cleanup(s.keeper.Finish)
	s.ledger = kept.NewLedger(options, kept.Index{Session: id, Command: "sh", Started: time.Unix(1, 0), Layout: s.layout})
	return s
}

func (s *scene) path(name string) string { return filepath.Join(s.dir, "repo", name) }

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *scene) write(name, content string) {
	s.Helper()
	s.must(os.WriteFile(s.path(name), []byte(content), 0o644))
}

func (s *scene) holds(name, content string) {
	s.Helper()
	if data, err := os.ReadFile(s.path(name)); err != nil || string(data) != content {
		s.Errorf("%s holds %q (%v), want %q", name, data, err, content)
	}
}

// displace has the keeper take charge of what make puts into the quarantine, as
// if it had stood at a path instead of what stands there now.
func (s *scene) displace(path rules.Path, make func(path string) error) {
	s.Helper()
	before, _, err := s.desk.see(path)
	s.must(err)
	quarantine, err := s.keeper.Dir()
	s.must(err)
	defer quarantine.Close()
	name := safefile.Token()
	s.must(make(quarantine.Abs(name)))
	version := kept.Version{Path: path, Quarantined: name}
	if version.File, version.Info, err = quarantine.Open(name); err != nil {
		version.Info, err = quarantine.Stat(name)
		s.must(err)
	}
	s.keeper.Keep(version)
	s.ledger.Note(s.seal(), before, time.Now())
	s.must(s.ledger.Write(true))
}

func (s *scene) seal() kept.Sealed {
	s.Helper()
	const patience = 30 * time.Second
	select {
	case <-s.keeper.Ready():
	case <-time.After(patience):
		s.Fatal("nothing was sealed")
	}
	return s.keeper.Take()[0]
}

func file(content string, perm fs.FileMode) func(string) error {
	return func(path string) error {
		return errors.Join(os.WriteFile(path, []byte(content), perm), os.Chmod(path, perm))
	}
}

func link(target string) func(string) error {
	return func(path string) error { return os.Symlink(target, path) }
}

func root(rel string) rules.Path { return rules.Path{Rel: rel} }

// last returns the session with its last version.
func (s *scene) last() (*Session, *Version) {
	s.Helper()
	sessions, unusable, err := Sessions(s.desk.Sessions)
	s.must(err)
	if len(sessions) != 1 || len(unusable) > 0 {
		s.Fatalf("%+v %+v", sessions, unusable)
	}
	versions := sessions[0].Versions
	return &sessions[0], &versions[len(versions)-1]
}

func (s *scene) plan(in rules.Inputs) *rules.Plan {
	s.Helper()
	in.Layout = s.layout
	plan, err := rules.New(in)
	s.must(err)
	return plan
}

// accept takes the last version back by the built-in rules.
func (s *scene) accept() (Accepted, error) {
	s.Helper()
	session, version := s.last()
	return s.desk.Accept(s.plan(rules.Inputs{}), session, version)
}

// Promise: a version comes back with all that it was, and what stood there is
// kept.
func TestAccept(t *testing.T) {
	s := newScene(t)
	s.displace(root(".env"), file("A=2", 0o640))
	accepted, err := s.accept()
	s.must(err)
	if len(accepted.Kept) != 1 || accepted.Late || accepted.Already || len(accepted.Unset) > 0 {
		t.Errorf("%+v", accepted)
	}
	if data, err := os.ReadFile(accepted.Kept[0]); string(data) != "A=1" {
		t.Errorf("kept: %q (%v)", data, err)
	}
	s.holds(".env", "A=2")
	if info, err := os.Stat(s.path(".env")); err != nil || info.Mode() != 0o640 {
		t.Errorf("%v (%v)", info.Mode(), err)
	}
	if accepted, err := s.accept(); err != nil || !accepted.Already {
		t.Errorf("again: %+v (%v)", accepted, err)
	}
	_, err = os.Lstat(s.path(".git/gantry-cage-kept/" + id + "/x"))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// Promise: what was added comes back into a directory that is made for it, and
// a link as a link.
func TestAcceptAdded(t *testing.T) {
	s := newScene(t)
	s.displace(root(".circleci/sub/config.yml"), file("version: 2", 0o600))
	_, err := s.accept()
	s.must(err)
	s.holds(".circleci/sub/config.yml", "version: 2")

	s.displace(root(".env"), link("config/real"))
	_, err = s.accept()
	s.must(err)
	if target, err := os.Readlink(s.path(".env")); target != "config/real" {
		t.Errorf("%q (%v)", target, err)
	}
	s.displace(rules.Path{Anchor: rules.CommonDir, Rel: "hooks/pre-commit"}, file("#!/bin/sh\n", 0o755))
	_, err = s.accept()
	s.must(err)
	if info, err := os.Stat(s.path(".git/hooks/pre-commit")); err != nil || info.Mode() != 0o755 {
		t.Errorf("%v (%v)", info.Mode(), err)
	}
}

// Promise: what was set aside beside its path comes back too, and is not taken
// for anything else.
func TestAcceptSetAside(t *testing.T) {
	s := newScene(t)
	aside := root("aside/.git/" + safefile.Token())
	s.must(os.MkdirAll(s.path("aside/.git"), 0o700))
	s.must(os.Symlink("target", s.path(aside.Rel)))
	before, _, err := s.desk.see(root(".env"))
	s.must(err)
	s.keeper.Keep(kept.Version{Path: root(".env"), Info: safefile.Info{Kind: safefile.Symlink, UID: before.UID, GID: before.GID}, Beside: s.path(aside.Rel)})
	s.ledger.Note(s.seal(), before, time.Now())
	s.must(s.ledger.Write(true))
	_, err = s.accept()
	s.must(err)
	if target, err := os.Readlink(s.path(".env")); target != "target" {
		t.Errorf("%q (%v)", target, err)
	}
	s.must(os.Remove(s.path(aside.Rel)))
	s.must(os.Symlink("elsewhere", s.path(aside.Rel)))
	s.must(os.Remove(s.path(".env")))
	s.write(".env", "A=1")
	var no *Error
	if _, err := s.accept(); !errors.As(err, &no) || !strings.Contains(no.Error(), "somebody changed it since") {
		t.Error(err)
	}
}

// Promise: where anything but what the session protected stands, nothing is
// done, and it is said what.
func TestNotTheBaseline(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(s *scene) error
		want   string
	}{
		{"content", func(s *scene) error { return os.WriteFile(s.path(".github/workflows/ci.yml"), []byte("mine"), 0o644) }, "its content is another"},
		{"mode", func(s *scene) error { return os.Chmod(s.path(".github/workflows/ci.yml"), 0o600) }, "its mode is 0600 and was 0644"},
		{"gone", func(s *scene) error { return os.Remove(s.path(".github/workflows/ci.yml")) }, "nothing stands there"},
		{"parent gone", func(s *scene) error { return os.RemoveAll(s.path(".github")) }, "nothing stands there"},
		{"link", func(s *scene) error {
			return errors.Join(os.Rename(s.path(".github/workflows/ci.yml"), s.path("ci")), os.Symlink("../../ci", s.path(".github/workflows/ci.yml")))
		}, "it is a symlink now"},
		{"directory", func(s *scene) error {
			return errors.Join(os.Remove(s.path(".github/workflows/ci.yml")), os.Mkdir(s.path(".github/workflows/ci.yml"), 0o755))
		}, "it is a directory now"},
		{"link for the parent", func(s *scene) error {
			return errors.Join(os.Rename(s.path(".github"), s.path("other")), os.Symlink("other", s.path(".github")))
		}, "it cannot be compared"},
		{"file for the parent", func(s *scene) error {
			return errors.Join(os.RemoveAll(s.path(".github")), os.WriteFile(s.path(".github"), nil, 0o644))
		}, "it cannot be compared"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			s.displace(root(".github/workflows/ci.yml"), file("evil", 0o644))
			s.must(c.change(s))
			before := tree(s, s.path(""))
			_, err := s.accept()
			var no *Error
			if !errors.As(err, &no) || !no.Changed || !strings.Contains(no.Error(), c.want) || no.Hint == "" {
				t.Errorf("%v, want %q", err, c.want)
			}
			if after := tree(s, s.path("")); after != before {
				t.Errorf("was\n%sis\n%s", before, after)
			}
		})
	}
	s := newScene(t)
	s.displace(root(".env.new"), file("evil", 0o644))
	s.write(".env.new", "mine")
	var no *Error
	if _, err := s.accept(); !errors.As(err, &no) || !no.Changed {
		t.Error(err)
	}
	s.holds(".env.new", "mine")
}

// tree spells everything below a directory.
func tree(t testing.TB, top string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		b.WriteString(path + " " + info.Mode().String())
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			b.WriteString(" " + string(data))
			if err != nil {
				return err
			}
		}
		b.WriteString("\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Promise: what the index says is not believed where the version says otherwise,
// and takes nobody where no restore goes.
func TestNotTaken(t *testing.T) {
	type put struct {
		session *Session
		version *Version
		in      *rules.Inputs
	}
	for _, c := range []struct {
		name  string
		spoil func(s *scene, p put) error
		want  string
	}{
		{"content", func(s *scene, p put) error {
			return os.WriteFile(s.desk.Place(p.session, p.version), []byte("worse"), 0o600)
		}, "it cannot be read"},
		{"content and digest", func(s *scene, p put) error {
			p.version.Digest = snapshot.DigestOf([]byte("worse"))
			return nil
		}, "somebody changed it since"},
		{"gone", func(s *scene, p put) error { return os.Remove(s.desk.Place(p.session, p.version)) }, "it cannot be read"},
		{"a link to it", func(s *scene, p put) error {
			place := s.desk.Place(p.session, p.version)
			return errors.Join(os.Rename(place, s.path("x")), os.Symlink(s.path("x"), place))
		}, "it cannot be read"},
		{"another root", func(s *scene, p put) error { p.session.Layout.Root += "x"; return nil }, "another root"},
		{"another repository", func(s *scene, p put) error { p.session.Layout.CommonDir += "x"; return nil }, "another root"},
		{"no rule", func(s *scene, p put) error { p.version.Path = root("src/main.go"); return nil }, "no rule protects its path any more"},
		{"git's own", func(s *scene, p put) error {
			p.version.Path = rules.Path{Anchor: rules.CommonDir, Rel: "HEAD"}
			return nil
		}, "no rule protects its path any more"},
		{"hooks elsewhere", func(s *scene, p put) error {
			p.version.Path = rules.Path{Anchor: rules.HooksDir, Rel: "pre-commit"}
			return nil
		}, "outside the root"},
		{"no path", func(s *scene, p put) error { p.version.Path = rules.Path{}; return nil }, "nobody wrote down where it stood"},
		{"in the place of a directory", func(s *scene, p put) error {
			p.version.Before = snapshot.State{Info: safefile.Info{Kind: safefile.Directory}}
			return nil
		}, "it stood in the place of a directory"},
		{"unread before", func(s *scene, p put) error { p.version.Before.Digest = snapshot.Digest{}; return nil }, "nobody read"},
		{"unread", func(s *scene, p put) error { p.version.Digest = snapshot.Digest{}; return nil }, "it was not read, being too large or still being written"},
		{"guarded elsewhere", func(s *scene, p put) error {
			p.in.Elsewhere = []rules.Anchor{rules.CommonDir}
			p.version.Path = rules.Path{Anchor: rules.CommonDir, Rel: "config"}
			return nil
		}, "a session in another work tree guards its path"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			s.displace(root(".env"), file("evil", 0o644))
			session, version := s.last()
			var in rules.Inputs
			s.must(c.spoil(s, put{session, version, &in}))
			before := tree(s, s.path(""))
			_, err := s.desk.Accept(s.plan(in), session, version)
			var no *Error
			if !errors.As(err, &no) || no.Changed || !strings.Contains(no.Error(), c.want) || no.Hint == "" {
				t.Errorf("%v, want %q", err, c.want)
			}
			if after := tree(s, s.path("")); after != before {
				t.Errorf("was\n%sis\n%s", before, after)
			}
		})
	}
	s := newScene(t)
	s.displace(root(".env"), func(path string) error { return os.Mkdir(path, 0o755) })
	var no *Error
	if _, err := s.accept(); !errors.As(err, &no) || no.Error() != "it is a directory" {
		t.Error(err)
	}
}

// Promise: the patch shows both sides whatever their names are, says what it
// cannot show, and leaves no copy behind.
func TestPatch(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("no git")
	}
	s := newScene(t)
	s.displace(root(".env"), file("A=2", 0o755))
	s.displace(rules.Path{Anchor: rules.CommonDir, Rel: "config"}, file("[core]\n", 0o644))
	s.displace(root(".gitlab-ci.yml"), link("/etc/passwd"))
	s.displace(root(".circleci"), file("a file for the directory\n", 0o644))
	s.displace(root(".circleci/config.yml"), file("version: 2\n", 0o644))
	s.displace(root(".github/workflows"), func(path string) error { return os.Mkdir(path, 0o755) })
	s.write(".env", "mine")
	session, _ := s.last()
	temp := t.TempDir()
	patch, notes, err := s.desk.Patch(context.Background(), program.Exec, git, temp, session, session.Newest())
	s.must(err)
	for _, want := range []string{
		"diff --git a/.env b/.env\nold mode 100644\nnew mode 100755\n", "-mine\n", "+A=2\n", "+++ b/.git/config\n", "new file mode 120000\n", "+/etc/passwd\n",
		"+++ b/.circleci\n",
	} {
		if !strings.Contains(string(patch), want) {
			t.Errorf("no %q in\n%s", want, patch)
		}
	}
	var said []string
	for _, note := range notes {
		said = append(said, note.Version.Path.Rel+": "+note.Text)
	}
	for i, want := range []string{
		".circleci/config.yml: it is not shown beside the others: ",
		".env: this is not what the session protected any more: its content is another",
		".github/workflows: it is not shown: it is a directory; ",
	} {
		if i >= len(said) || !strings.HasPrefix(said[i], want) {
			t.Errorf("said %q, want %q", said, want)
		}
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

// Promise: a recovery's versions are its session's, unless they are of another
// place.
func TestRecoveredBelongTogether(t *testing.T) {
	s := newScene(t)
	s.displace(root(".env"), file("evil", 0o644))
	index, err := kept.ReadIndex(filepath.Join(s.desk.Sessions, id))
	s.must(err)
	index.Recovered = true
	folder := filepath.Join(s.desk.Sessions, id+kept.RecoveredSuffix)
	s.must(kept.WriteIndex(folder, index))
	session, version := s.last()
	if len(session.Versions) != 2 || version.Number != 2 || !version.Recovered || filepath.Dir(s.desk.Place(session, version)) != folder {
		t.Errorf("%+v", session)
	}
	index.Layout.Root += "x"
	s.must(kept.WriteIndex(folder, index))
	sessions, unusable, err := Sessions(s.desk.Sessions)
	if err != nil || len(sessions) != 1 || len(sessions[0].Versions) != 1 || len(unusable) != 1 {
		t.Errorf("%+v %+v (%v)", sessions, unusable, err)
	}
}

// Promise: whatever accepting a version would set is in the patch or named
// beside it.
func TestUnshown(t *testing.T) {
	me := uint32(os.Geteuid())
	file := func(perm uint32) snapshot.State {
		return snapshot.State{Info: safefile.Info{Kind: safefile.Regular, Perm: perm, UID: me, GID: 5}}
	}
	for _, c := range []struct {
		name       string
		now        snapshot.State
		perm, uid  uint32
		attributes []safefile.Attr
		want       string
	}{
		{"nothing more", file(0o600), 0o600, me, nil, ""},
		{"what git shows", file(0o644), 0o755, me, nil, ""},
		{"opened to all", file(0o600), 0o666, me, nil, "mode 0666"},
		{"setuid on what executes already", file(0o755), 0o4755, me, nil, "mode 4755"},
		{"added", snapshot.State{}, 0o755, me, nil, ""},
		{"added with setuid", snapshot.State{}, 0o4777, me + 1, nil, fmt.Sprintf("mode 4777, owner %d:5", me+1)},
		{"an attribute", file(0o644), 0o644, me, []safefile.Attr{{Name: "user.x"}}, "the attribute user.x"},
	} {
		v := &Version{Record: kept.Record{Info: safefile.Info{Kind: safefile.Regular, Perm: c.perm, UID: c.uid, GID: 5}, Attrs: c.attributes}}
		if got := unshown(c.now, v); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
