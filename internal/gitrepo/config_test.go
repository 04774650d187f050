package gitrepo

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestConfig(t *testing.T) {
	home := alone(t)
	base := physicalTemp(t)
	r := initRepo(t, base+"/r")
	mkdir(t, r+"/real")
	mkdir(t, r+"/deep/real")
	link(t, "deep/real", r+"/v2")
	write(t, r+"/deep/inc", "[include]\n path = sibling\n")
	link(t, "real", r+"/via")
	link(t, "linked.target", r+"/linked")
	write(t, r+"/linked.target", "")
	write(t, r+"/nested/one", "[include]\n path = two\n[includeIf \"gitdir:/never/\"]\n path = inactive-nested\n")
	write(t, r+"/nested/two", "[core]\n hooksPath = hk/inner\n")
	write(t, r+"/inactive", "[include]\n path = read-ahead\n path = inactive\n")
	write(t, r+"/read-ahead", "[includeIf \"onbranch:never\"]\n path = read/further\n")
	write(t, r+"/read/further", "no configuration")
	write(t, base+"/absolute", "")
	write(t, home+"/tilde", "[includeIf \"onbranch:never\"]\n path = outside\n")
	write(t, home+"/outside", "[include]\n path = not-asked\n")
	write(t, home+"/.gitconfig", "[include]\n path = from-home\n")
	write(t, r+"/.git/config", strings.Join([]string{
		"[core]", "repositoryformatversion = 0", "hooksPath = first",
		"[extensions]", "worktreeConfig = true",
		"[include]", "path = ../nested/one", "path = ~/tilde", "path = " + base + "/absolute",
		"path = ../via/file", "path = ../linked", "path = ../via/../dotdot", "path = ../v2/../inc",
		"path = \"../with \\\"quotes\\\"\\nand newline\"",
		"[includeIf \"onbranch:never\"]", "path = ../inactive", "path = ~nobody-of-that-name/x",
		"[includeIf \"hasconfig:remote.*.url:x.path\"]", "PATH = ../inactive2",
		"[INCLUDE \"sub\"]", "path = no-include",
	}, "\n")+"\n")
	write(t, r+"/.git/config.worktree", "[include]\n path = ../of-worktree\n")
	link(t, mkdir(t, base+"/hooks"), r+"/hk")

	repo := discover(t, mkdir(t, r+"/below"))
	config, err := repo.Config(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		home + "/from-home", home + "/tilde", home + "/outside", base + "/absolute",
		r + "/nested/one", r + "/nested/two", r + "/nested/inactive-nested",
		r + "/via", r + "/real/file", r + "/linked", r + "/linked.target", r + "/dotdot", r + "/v2", r + "/deep/inc", r + "/deep/sibling",
		r + "/with \"quotes\"\nand newline", r + "/.git/~nobody-of-that-name/x",
		r + "/inactive", r + "/read-ahead", r + "/read/further", r + "/inactive2", r + "/of-worktree",
	}
	slices.Sort(want)
	if !slices.Equal(config.Includes, want) {
		t.Errorf("includes\n got %q\nwant %q", config.Includes, want)
	}
	if repo.HooksDir != base+"/hooks/inner" || !slices.Equal(config.HooksLinks, []string{r + "/hk"}) {
		t.Errorf("hooks %q by %q", repo.HooksDir, config.HooksLinks)
	}
}

func TestConfigOfAnUntouchedRepository(t *testing.T) {
	alone(t)
	r := initRepo(t, physicalTemp(t))
	link(t, "elsewhere", r+"/.git/hooks2")
	if err := os.RemoveAll(r + "/.git/hooks"); err != nil {
		t.Fatal(err)
	}
	link(t, "hooks2", r+"/.git/hooks")
	config, err := discover(t, r).Config(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if len(config.Includes) != 0 {
		t.Errorf("%+v", config)
	}
	if want := []string{r + "/.git/hooks", r + "/.git/hooks2"}; !slices.Equal(config.HooksLinks, want) {
		t.Errorf("links %q, want %q", config.HooksLinks, want)
	}
}

func TestConfigWithALoopOfLinks(t *testing.T) {
	alone(t)
	r := initRepo(t, physicalTemp(t))
	repo := discover(t, r)
	link(t, "loop", r+"/loop")
	git(t, r, "config", "includeIf.onbranch:never.path", r+"/loop/x")
	if _, err := repo.Config(context.Background()); err == nil {
		t.Error("an include that cannot be resolved is passed over")
	}
}

func TestConfigIgnoresAMovedDotGit(t *testing.T) {
	alone(t)
	base := physicalTemp(t)
	r, other := initRepo(t, base+"/r", "--separate-git-dir", base+"/store"), initRepo(t, base+"/other")
	git(t, other, "config", "include.path", "/planted")
	repo := discover(t, r)
	write(t, r+"/.git", "gitdir: "+other+"/.git\n")
	config, err := repo.Config(context.Background())
	if err != nil || len(config.Includes) != 0 {
		t.Errorf("%+v, %v", config, err)
	}
}

func TestParseConfig(t *testing.T) {
	alone(t)
	repo := discover(t, initRepo(t, physicalTemp(t)))
	for name, c := range map[string]struct {
		content string
		want    []Setting
	}{
		"empty":    {"", nil},
		"comments": {"# a\n; b\n[x]\n", nil},
		"kinds of values": {"[A]\n NoValue\n Empty=\n Quoted = \" a;\\tb\" # c\n Two = 1\n two = 2\n", []Setting{
			{Key: "a.novalue", NoValue: true}, {Key: "a.empty"}, {Key: "a.quoted", Value: " a;\tb"},
			{Key: "a.two", Value: "1"}, {Key: "a.two", Value: "2"}}},
		"newline in a value":       {"[a]\nx = \"1\\n2\"\n", []Setting{{Key: "a.x", Value: "1\n2"}}},
		"continued line":           {"[a]\nx = 1\\\n 2\n", []Setting{{Key: "a.x", Value: "1 2"}}},
		"subsection":               {"[Remote \"A.b \\\"c\"]\nURL = u\n", []Setting{{Key: "remote.A.b \"c.url", Value: "u"}}},
		"subsection the old way":   {"[remote.New]\nurl = u\n", []Setting{{Key: "remote.new.url", Value: "u"}}},
		"on the line of a section": {"[a] x = 1\n[a]y=2", []Setting{{Key: "a.x", Value: "1"}, {Key: "a.y", Value: "2"}}},
		"includes are settings":    {"[include]\npath = /dev/null/none\n", []Setting{{Key: "include.path", Value: "/dev/null/none"}}},
		"byte order mark, CR LF":   {"\xef\xbb\xbf[a]\r\nx = 1\r\n", []Setting{{Key: "a.x", Value: "1"}}},
		"invalid UTF-8":            {"[a \"\xff\"]\nx = \xfe\n", []Setting{{Key: "a.\xff.x", Value: "\xfe"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := repo.ParseConfig(context.Background(), []byte(c.content))
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%+v, %v; want %+v", got, err, c.want)
			}
		})
	}
	for _, content := range []string{"[a", "[a]\nx = \"1\n", "[a]\n= 1\n", "[a]\n1x = 2\n", "[a \"b\nc\"]\nx=1\n",
		"[a]\nx = SECRET\\q\n", "[a]\nx = 1\x00\n", "<<<<<<< x\n"} {
		settings, err := repo.ParseConfig(context.Background(), []byte(content))
		if !errors.Is(err, errConfig) || settings != nil {
			t.Errorf("%q: %+v, %v", content, settings, err)
		} else if strings.Contains(err.Error(), "SECRET") {
			t.Errorf("an error tells what the content says: %v", err)
		}
	}
}

func TestParseConfigNeedsNoConfiguration(t *testing.T) {
	home := alone(t)
	r := initRepo(t, physicalTemp(t))
	repo := discover(t, r)
	write(t, home+"/.gitconfig", "[broken\n")
	write(t, r+"/.git/config", "[broken\n")
	got, err := repo.ParseConfig(context.Background(), []byte("[a]\nx=1\n"))
	if err != nil || !slices.Equal(got, []Setting{{Key: "a.x", Value: "1"}}) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestParseConfigEndsWithTheContext(t *testing.T) {
	alone(t)
	repo := discover(t, initRepo(t, physicalTemp(t)))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := repo.ParseConfig(ctx, nil); !errors.Is(err, context.Canceled) || errors.Is(err, errConfig) {
		t.Errorf("%v, want the end of the context", err)
	}
}
