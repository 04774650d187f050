//go:build linux || darwin || freebsd || netbsd || openbsd

package suggest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cage/internal/safefile"
	"cage/rules"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// tree is a folder that stands for a root outside git.
type tree struct {
	rapid.TB
	root   *safefile.Root
	layout rules.Layout
}

type cleaner interface{ Cleanup(func()) }

// plant makes a tree of empty files; what ends with a slash is a directory.
func plant(t rapid.TB, dir string, names ...string) *tree {
	t.Helper()
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(path, 0o755)
		} else if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
			err = os.WriteFile(path, nil, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	root, err := safefile.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.(cleaner).Cleanup(func() { root.Close() })
	return &tree{TB: t, root: root, layout: rules.Layout{Root: dir}}
}

// look proposes beside a rule file.
func (tr *tree) look(config string) Proposal {
	tr.Helper()
	plan, err := rules.New(rules.Inputs{Layout: tr.layout, Config: rules.File{Present: config != "", Data: []byte(config)}})
	if err != nil {
		tr.Fatalf("%v in\n%s", err, config)
	}
	proposal, err := Look(tr.root, tr.layout, plan)
	if err != nil {
		tr.Fatal(err)
	}
	return proposal
}

// values spells the entries of a proposal.
func (p Proposal) values() []string {
	var values []string
	for _, e := range p.Entries {
		values = append(values, string(e.Category)+" "+e.Value)
	}
	return values
}

func wantValues(t testing.TB, p Proposal, want ...string) {
	t.Helper()
	if got := p.values(); !slices.Equal(got, want) {
		t.Errorf("proposed\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Promise: every category is proposed, sorted, and nothing beside it.
func TestCategories(t *testing.T) {
	tr := plant(t, t.TempDir(),
		"src/main.go", "README.md", "src/migrations.go", "db/migrate/1.sql", "app/migrations/1.py", "x/db/migrate/1.sql",
		"CLAUDE.md", ".claude/settings.json", ".claude/settings.local.json", ".claude/agents/a.md", "sub/.claude/settings.json",
		".github/actions/build/action.yml", ".github/CODEOWNERS", "Jenkinsfile", "Dockerfile", "svc/Dockerfile", "svc/Dockerfile.dev",
		"compose.yml", ".npmrc", ".pre-commit-config.yaml", "deploy/k8s/app.yaml", "main.tf", "mod/net.tf", "certs/a.pem", "Dockerfile.",
		"login_test.go", "web/a.spec.ts", "test_.py", "tests/unit/Dockerfile", "pip.conf/", "Makefile/Jenkinsfile/")
	wantValues(t, tr.look(""),
		"agents .claude/agents/", "agents .claude/settings.json", "agents CLAUDE.md",
		"ci .github/actions/", "ci Jenkinsfile",
		"code_owners .github/CODEOWNERS",
		"containers **/Dockerfile.*", "containers Dockerfile", "containers compose.yml", "containers svc/Dockerfile",
		"git_hooks .pre-commit-config.yaml",
		"infrastructure **/*.tf", "infrastructure deploy/k8s/",
		"keys **/*.pem",
		"migrations app/migrations/", "migrations db/migrate/",
		"package_registry .npmrc",
		"tests **/*.spec.ts", "tests **/*_test.go", "tests tests/")
}

// Promise: what rules cover already is counted and not proposed, and neither is
// what somebody chose to have only listed.
func TestCovered(t *testing.T) {
	tr := plant(t, t.TempDir(), ".github/workflows/Dockerfile", ".circleci/tests/a", "Dockerfile", "infra/a.tf", "k8s/a", "web/k8s/b", "certs/a.key", ".npmrc", "e2e/a")
	proposal := tr.look("protect:\n  - path: infra\n  - glob: 'web/**'\n  - glob: '**/*.key'\n  - {path: .npmrc, mode: report}\n  - glob: 'e2e/*'\n")
	wantValues(t, proposal, "containers Dockerfile", "infrastructure k8s/", "tests e2e/")
	if proposal.Covered != 6 {
		t.Errorf("%d are covered, want 6", proposal.Covered)
	}
}

// Promise: the walk stays out of what is made or somebody else's, and out of
// every git directory; it follows no link and opens no file.
func TestStaysOut(t *testing.T) {
	dir := t.TempDir()
	var names []string
	for _, skipped := range []string{"node_modules", ".git", ".venv", "venv", "__pycache__", "dist", "build", "vendor", "target"} {
		names = append(names, skipped+"/Dockerfile", "a/"+skipped+"/tests/x")
	}
	tr := plant(t, dir, append(names, "real/Jenkinsfile")...)
	for link, target := range map[string]string{"tests": "real", "sub": "real", "CLAUDE.md": "AGENTS.md"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(dir, "Dockerfile"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantValues(t, tr.look(""), "agents CLAUDE.md", "ci real/Jenkinsfile")
}

// Promise: many places of one name become one glob that covers them all.
func TestManyBecomeOne(t *testing.T) {
	var names []string
	for i := range mostPaths + 1 {
		names = append(names, fmt.Sprintf("p%d/tests/a", i), fmt.Sprintf("p%d/Dockerfile", i), fmt.Sprintf("p%d/Jenkinsfile", i))
	}
	tr := plant(t, t.TempDir(), names[1:]...)
	proposal := tr.look("")
	wantValues(t, proposal, "ci **/Jenkinsfile", "containers **/Dockerfile",
		"tests p1/tests/", "tests p2/tests/", "tests p3/tests/", "tests p4/tests/", "tests p5/tests/", "tests p6/tests/", "tests p7/tests/", "tests p8/tests/")
	tr = plant(t, tr.layout.Root, names[0])
	wantValues(t, tr.look(""), "ci **/Jenkinsfile", "containers **/Dockerfile", "tests **/tests/**")
	wantValues(t, tr.look(string(tr.look("").YAML())))

	long := strings.Repeat(strings.Repeat("x", 200)+"/", mostPathBytes/400)
	tr = plant(t, t.TempDir(), "k8s/a", "a/"+long+"k8s/a", "b/"+long+"k8s/a", "c/"+long+"k8s/a")
	wantValues(t, tr.look(""), "infrastructure **/k8s/**")
}

// Promise: a path that no entry can name is said, not dropped.
func TestUnspellable(t *testing.T) {
	tr := plant(t, t.TempDir(), "c:/tests/a", "ok/tests/a", "b\xff/k8s/a")
	proposal := tr.look("")
	wantValues(t, proposal, "tests ok/tests/")
	if want := []string{"b\xff/k8s", "c:/tests"}; !slices.Equal(proposal.Unspellable, want) {
		t.Errorf("left out: %q, want %q", proposal.Unspellable, want)
	}
}

func TestUnread(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may look everywhere")
	}
	tr := plant(t, t.TempDir(), "closed/Dockerfile", "open/Dockerfile")
	closed := filepath.Join(tr.layout.Root, "closed")
	if err := os.Chmod(closed, 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(closed, 0o755)
	proposal := tr.look("")
	wantValues(t, proposal, "containers open/Dockerfile")
	if want := []string{"closed"}; !slices.Equal(proposal.Unread, want) {
		t.Errorf("unread: %q, want %q", proposal.Unread, want)
	}
}

// segment draws the name of a directory: anything that a file system takes, and
// often what YAML would take for something else.
func segment() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{
			"null", "~", "true", "on", "1", "0x1f", "1e3", ".inf", "2001-01-01", "- a", "a: b", "a #b", "#", "&a", "*a", "!t", "|", ">", "'", `"`, `\`,
			"{a}", "[a]", "%a", "@", "`", "?", "a\nb", "\t", " ", " a ", "\x7f", "\u0085", "\u2028", "\ufeff", "\ufffd", "\ud7ff", "\U0010ffff", "é", "c:",
			"...", "---", "a\\", "**", "x",
		}),
		rapid.StringN(1, 20, 60),
		rapid.Map(rapid.SliceOfN(rapid.ByteRange(1, 255), 1, 20), func(b []byte) string { return string(b) }),
	).Filter(func(name string) bool {
		return name != "." && name != ".." && !strings.ContainsAny(name, "/\x00") && len(name) <= 255
	})
}

// leaf draws a file or directory that a pattern is about, or one that none is.
func leaf() *rapid.Generator[string] {
	var names []string
	for _, p := range patterns {
		names = append(names, strings.TrimPrefix(strings.ReplaceAll(p.text, "*", "x"), "/"))
	}
	return rapid.OneOf(rapid.SampledFrom(names), segment())
}

// Promise: whatever is in the tree, the loader takes what is proposed, with it
// nothing is left to propose, and the order in which the tree grew does not
// show.
func TestAnyTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			return strings.Join(append(rapid.SliceOfN(segment(), 0, 3).Draw(t, "dirs"), leaf().Draw(t, "leaf")), "/")
		}), 0, 6).Draw(t, "names")
		var first []byte
		for range 2 {
			dir, err := os.MkdirTemp("", "suggest-*")
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			tr := plant(t, dir, disjoint(names)...)
			proposal := tr.look("")
			document := proposal.YAML()
			again := tr.look(string(document))
			if len(again.Entries) > 0 || !slices.Equal(again.Unspellable, proposal.Unspellable) {
				t.Fatalf("with\n%s\nthis is proposed: %q %q", document, again.values(), again.Unspellable)
			}
			if first == nil {
				first = document
				slices.Reverse(names)
			} else if string(first) != string(document) {
				t.Fatalf("once\n%s\nthen\n%s", first, document)
			}
		}
	})
}

// disjoint drops names that cannot stand beside others: one of them would have
// to be a file and a directory.
func disjoint(names []string) []string {
	sorted := slices.Sorted(slices.Values(names))
	var out []string
	for _, name := range sorted {
		clash := slices.ContainsFunc(sorted, func(other string) bool {
			plain, deeper := strings.TrimSuffix(name, "/"), strings.TrimSuffix(other, "/")
			return name != other && (plain == deeper || strings.HasPrefix(deeper, plain+"/") && !strings.HasSuffix(name, "/"))
		})
		if !clash {
			out = append(out, name)
		}
	}
	if len(names) > 1 && sorted[0] != names[0] {
		slices.Reverse(out)
	}
	return out
}

// Promise: Write replaces a regular file if asked to, and nothing else.
func TestWrite(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		stands  func(path string) error
		replace bool
		want    error
	}{
		{"nothing", func(string) error { return nil }, false, nil},
		{"nothing, replacing", func(string) error { return nil }, true, nil},
		{"file", func(path string) error { return os.WriteFile(path, []byte("old"), 0o600) }, false, ErrExists},
		{"file, replacing", func(path string) error { return os.WriteFile(path, []byte("old"), 0o600) }, true, nil},
		{"link, replacing", func(path string) error { return os.Symlink(outside, path) }, true, ErrOccupied},
		{"dangling link", func(path string) error { return os.Symlink(outside+"-gone", path) }, false, ErrOccupied},
		{"directory, replacing", func(path string) error { return os.Mkdir(path, 0o755) }, true, ErrOccupied},
		{"fifo, replacing", func(path string) error { return unix.Mkfifo(path, 0o600) }, true, ErrOccupied},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := plant(t, t.TempDir())
			path := filepath.Join(tr.layout.Root, FileName)
			if err := c.stands(path); err != nil {
				t.Fatal(err)
			}
			before, _ := os.Lstat(path)
			if err := Write(tr.root, []byte("new"), c.replace); !errors.Is(err, c.want) {
				t.Fatalf("%v, want %v", err, c.want)
			}
			after, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			if c.want != nil && !os.SameFile(before, after) {
				t.Error("something else stands there now")
			} else if c.want == nil {
				if data, err := os.ReadFile(path); err != nil || string(data) != "new" || after.Mode() != 0o644 {
					t.Errorf("it holds %q, %v (%v)", data, after.Mode(), err)
				}
			}
			if data, err := os.ReadFile(outside); string(data) != "mine" {
				t.Errorf("outside: %q (%v)", data, err)
			}
			if _, err := os.Lstat(outside + "-gone"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a link was followed: %v", err)
			}
			if entries, err := os.ReadDir(tr.layout.Root); len(entries) != 1 {
				t.Errorf("left behind: %v (%v)", entries, err)
			}
		})
	}
}
