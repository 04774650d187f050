package gitrepo

import (
	"context"
	"os"
	"reflect"
	"strings"
	"testing"

	"cage/internal/program"
)

// Wherever a setting stands that includes a file or moves the hooks, it is
// found; where there is none, git is called once.
func TestFoundAnswersAsTheRepositoryDoes(t *testing.T) {
	type place struct{ dir, home string }
	set := func(file, config string) func(*testing.T, place) {
		return func(t *testing.T, p place) {
			file := strings.NewReplacer("ROOT", p.dir, "HOME", p.home).Replace(file)
			old, err := os.ReadFile(file)
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			write(t, file, string(old)+config)
		}
	}
	for name, c := range map[string]struct {
		change func(*testing.T, place)
		calls  int
	}{
		"nothing":                     {func(*testing.T, place) {}, 1},
		"a setting like one":          {set("ROOT/.git/config", "[x \"include.path\"]\n\tpath = core.hooksPath\n"), 1},
		"a link to the hooks":         {func(t *testing.T, p place) { move(t, p.dir+"/.git/hooks", p.dir+"/hk") }, 1},
		"an include":                  {set("ROOT/.git/config", "[include]\n\tpath = ../x\n"), 2},
		"an include in odd letters":   {set("ROOT/.git/config", "[iNCLUDE]\n\tPaTH = ../x\n"), 2},
		"an inactive include":         {set("ROOT/.git/config", "[includeIf \"gitdir:/never/\"]\n\tpath = ../x\n"), 2},
		"an include without a value":  {set("ROOT/.git/config", "[includeIf \"onbranch:a\"]\n\tpath =\n"), 2},
		"hooks":                       {set("ROOT/.git/config", "[core]\n\thooksPath = hk\n"), 2},
		"hooks of the user":           {set("HOME/.gitconfig", "[core]\n\thooksPath = /hk\n"), 2},
		"the user's other file":       {set("HOME/.config/git/config", "[include]\n\tpath = x\n"), 2},
		"a configuration of the tree": {set("ROOT/.git/config.worktree", "[include]\n\tpath = ../x\n"), 2},
	} {
		t.Run(name, func(t *testing.T) {
			p := place{home: alone(t)}
			p.dir = initRepo(t, physicalTemp(t))
			git(t, p.dir, "config", "extensions.worktreeConfig", "true")
			c.change(t, p)
			calls := 0
			count := func(ctx context.Context, c program.Call) (program.Result, error) {
				calls++
				return program.Exec(ctx, c)
			}
			ctx := context.Background()
			found, err := Discover(ctx, count, realGit(t), p.dir)
			if err != nil {
				t.Fatal(err)
			}
			config, err := found.Config(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := found.StartRefs(ctx); err != nil {
				t.Fatal(err)
			}
			if calls != c.calls {
				t.Errorf("%d calls of git, want %d", calls, c.calls)
			}
			want, err := found.Repo.Config(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(config, want) {
				t.Errorf("got %+v, want %+v", config, want)
			}
		})
	}
}

// move moves a directory and leaves a link to it.
func move(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
	link(t, to, from)
}

// What a repository can write into the trace cannot make it say less.
func TestTraceOfAnotherHand(t *testing.T) {
	for trace, plain := range map[string]bool{
		"": false, "warning: x\n": false,
		"version 2\ncmd_name rev-parse (rev-parse)\nexit 0\n":                             true,
		"version 2\ncmd_name rev-parse (rev-parse)\ndef_param scope:local include.path=x": false,
	} {
		if got := tracedPlain([]byte(trace)); got != plain {
			t.Errorf("%q: %v", trace, got)
		}
	}
}
