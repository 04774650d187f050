package rules

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"": "", ".": "", "a": "a", "a/": "a", "./a": "a", "a//b": "a/b", "a/./b/.": "a/b",
		"a\nb": "a\nb", "\xff/\xfe": "\xff/\xfe", "...": "...", "..a/b..": "..a/b..",
	} {
		got, err := Clean(CommonDir, in)
		if err != nil || got != (Path{CommonDir, want}) {
			t.Errorf("Clean(%q) = %v, %v, want %q", in, got, err, want)
		}
	}
	for _, in := range []string{"/", "/a", "..", "../a", "a/..", "a/../b", "a\x00b", "\x00"} {
		if got, err := Clean(Root, in); !errors.Is(err, errPath) {
			t.Errorf("Clean(%q) = %v, %v, want a refusal", in, got, err)
		}
	}
}

func TestPathParts(t *testing.T) {
	p := root("a/b")
	if p.Base() != "b" || p.Dir() != root("a") || p.Dir().Dir() != root("") || root("").Dir() != root("") {
		t.Errorf("parts of %v are wrong", p)
	}
	if root("").Join("a") != root("a") || root("a").Join("b") != p {
		t.Error("Join is wrong")
	}
	for _, c := range []struct {
		path, dir Path
		want      bool
	}{
		{root("a/b"), root("a"), true},
		{root("a"), root("a"), true},
		{root("ab"), root("a"), false},
		{root("a"), root("a/b"), false},
		{root("a"), root(""), true},
		{root(""), root(""), true},
		{common("a"), root(""), false},
	} {
		if got := c.path.Within(c.dir); got != c.want {
			t.Errorf("%v within %v = %v", c.path, c.dir, got)
		}
	}
}

func TestLocate(t *testing.T) {
	around := Layout{Root: "/w/repo", CommonDir: "/w/repo/.git", HooksDir: "/w"}
	one := Layout{Root: "/w", CommonDir: "/w/.git", GitDir: "/w/.git", HooksDir: "/w"}
	slash := Layout{Root: "/"}
	for _, c := range []struct {
		layout Layout
		abs    string
		want   Path
	}{
		{ordinary(), "/w/repo", root("")},
		{ordinary(), "/w/repo/a/b", root("a/b")},
		{ordinary(), "/w/repo/.git", common("")},
		{ordinary(), "/w/repo/.git/config", common("config")},
		{ordinary(), "/w/repo/.gitignore", root(".gitignore")},
		{ordinary(), "/w/repository", Path{Outside, "w/repository"}},
		{worktree(), "/w/repo/.git/worktrees/tree/HEAD", Path{GitDir, "HEAD"}},
		{worktree(), "/w/repo/.git/worktrees/trees/HEAD", common("worktrees/trees/HEAD")},
		{around, "/w/pre-commit", Path{HooksDir, "pre-commit"}},
		{around, "/w/repo/x", root("x")},
		{one, "/w/x", root("x")},
		{one, "/w", root("")},
		{one, "/w/.git/config", common("config")},
		{slash, "/etc/x", root("etc/x")},
		{slash, "/", root("")},
	} {
		if got := c.layout.Locate(c.abs); got != c.want {
			t.Errorf("%+v locates %s at %v, want %v", c.layout, c.abs, got, c.want)
		}
		if got := c.layout.Abs(c.want); got != c.abs {
			t.Errorf("%v stands at %s, want %s", c.want, got, c.abs)
		}
	}
}

func TestDisplay(t *testing.T) {
	l := worktree()
	for path, want := range map[Path]string{
		root("a/b"):        "a/b",
		common("config"):   "../repo/.git/config",
		{GitDir, "gitdir"}: "../repo/.git/worktrees/tree/gitdir",
		{Outside, "etc/x"}: "/etc/x",
	} {
		if got := l.Display(path); got != want {
			t.Errorf("%v is displayed as %s, want %s", path, got, want)
		}
	}
}

func TestCleanIsStable(t *testing.T) {
	segment := rapid.StringMatching(`(\.|[a-z\xff\n.]{1,4}|)`)
	rapid.Check(t, func(t *rapid.T) {
		spelled := strings.Join(rapid.SliceOfN(segment, 0, 6).Draw(t, "segments"), "/")
		clean, err := Clean(Root, spelled)
		if err != nil {
			return
		}
		again, err := Clean(Root, clean.Rel)
		if err != nil || again != clean {
			t.Fatalf("Clean(%q) = %v, then %v, %v", spelled, clean, again, err)
		}
		joined := root("")
		for segment := range strings.SplitSeq(clean.Rel, "/") {
			joined = joined.Join(segment)
		}
		if joined != clean {
			t.Fatalf("%v does not rejoin: %v", clean, joined)
		}
	})
}
