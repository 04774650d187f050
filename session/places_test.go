package session

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"cage/rules"
)

// Promise: the cage's own files stay out of what it guards; where they cannot,
// exactly they are exempt, and nothing around them.
func TestChoosePlaces(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	repo, elsewhere := filepath.Join(top, "repo"), filepath.Join(top, "elsewhere")
	for _, dir := range []string{repo, elsewhere} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	into := filepath.Join(top, "into")
	if err := os.Symlink(repo, into); err != nil {
		t.Fatal(err)
	}
	tmp := resolve("/tmp")
	inRepo := rules.Layout{Root: repo, CommonDir: filepath.Join(repo, ".git")}
	for _, c := range []struct {
		name        string
		layout      rules.Layout
		env         map[string]string
		temp, state string
		exempt      []string
		warnings    int
	}{
		{"as set", inRepo, map[string]string{"TMPDIR": elsewhere, "XDG_STATE_HOME": elsewhere},
			elsewhere, elsewhere + "/cage", nil, 0},
		{"not set", inRepo, map[string]string{"HOME": elsewhere}, tmp, elsewhere + "/.local/state/cage", nil, 0},
		{"no home", inRepo, nil, tmp, tmp + "/.local/state/cage", nil, 0},
		{"relative", inRepo, map[string]string{"TMPDIR": "x", "XDG_STATE_HOME": "y", "HOME": "z"}, tmp, tmp + "/.local/state/cage", nil, 0},
		{"inside", inRepo, map[string]string{"TMPDIR": repo + "/tmp", "XDG_STATE_HOME": repo + "/.git/state", "HOME": elsewhere},
			tmp, elsewhere + "/.local/state/cage", nil, 2},
		{"inside, through a link", inRepo, map[string]string{"TMPDIR": into + "/tmp", "HOME": elsewhere},
			tmp, elsewhere + "/.local/state/cage", nil, 1},
		{"inside, spelled oddly", inRepo, map[string]string{"TMPDIR": elsewhere + "/..//repo/.", "HOME": elsewhere},
			tmp, elsewhere + "/.local/state/cage", nil, 1},
		{"beside, with the same beginning", inRepo, map[string]string{"TMPDIR": repo + "2", "HOME": elsewhere},
			repo + "2", elsewhere + "/.local/state/cage", nil, 0},
		{"in a hooks folder around the root", rules.Layout{Root: repo, CommonDir: repo + "/.git", HooksDir: top},
			map[string]string{"TMPDIR": elsewhere, "XDG_STATE_HOME": elsewhere}, elsewhere, elsewhere + "/cage", nil, 0},
		{"the home", rules.Layout{Root: repo}, map[string]string{"HOME": repo},
			tmp, repo + "/.local/state/cage", []string{".local/state/cage"}, 0},
		{"the home, through a link", rules.Layout{Root: repo}, map[string]string{"HOME": into},
			tmp, repo + "/.local/state/cage", []string{".local/state/cage"}, 0},
		{"the temporary folder", rules.Layout{Root: tmp}, map[string]string{"HOME": "/home/x"},
			tmp, "/home/x/.local/state/cage", nil, 0},
		{"everything", rules.Layout{Root: "/"}, map[string]string{"HOME": "/home/x", "TMPDIR": "/var/tmp"},
			tmp, "/home/x/.local/state/cage", []string{"home/x/.local/state/cage"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := choosePlaces(c.layout, c.env)
			if p.temp != c.temp || p.state != c.state {
				t.Errorf("temp %s, state %s; want %s and %s", p.temp, p.state, c.temp, c.state)
			}
			var exempt []string
			for _, path := range p.exempt {
				exempt = append(exempt, path.Rel)
			}
			if !slices.Equal(exempt, c.exempt) {
				t.Errorf("exempt are %q, want %q", exempt, c.exempt)
			}
			if len(p.warnings) != c.warnings {
				t.Errorf("warnings: %q", p.warnings)
			}
		})
	}
}
