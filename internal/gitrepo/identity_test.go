package gitrepo

import (
	"bytes"
	"context"
	"testing"
)

func TestIdentity(t *testing.T) {
	for _, format := range []string{SHA1, SHA256} {
		for content, text := range map[string]string{
			"":               "",
			"a":              "",
			"a\n":            "",
			"a\r\n":          "a\n",
			"a\r\nb":         "a\nb",
			"a\r\n\r\nb\r\n": "a\n\nb\n",
			"a\r\nb\n":       "",
			"a\n\r\n":        "",
			"a\rb\r\n":       "a\rb\n",
			"a\r\r\n":        "a\r\n",
		} {
			h := NewIdentity(format, int64(len(content)))
			h.Write([]byte(content))
			ids := h.Sum(nil)
			if !bytes.Equal(ids, Identify(format, []byte(content))) {
				t.Errorf("%s: the hash and Identify differ over %q", format, content)
			}
			want := State{Path: "p", Blob: BlobID(format, []byte(content)), Mode: ModeFile}
			if text != "" {
				want.Text = BlobID(format, []byte(text))
			}
			if got := *StateOf(format, "p", ids, ModeFile); got != want {
				t.Errorf("%s: %q is %+v, want %+v", format, content, got, want)
			}
		}
	}
	large := NewIdentity(SHA1, maxText+1)
	if size := len(large.Sum(nil)); size != large.Size() {
		t.Errorf("the identity of what is large has %d bytes", size)
	}
}

func TestSame(t *testing.T) {
	state := func(content string) State { return *StateOf(SHA1, "p", Identify(SHA1, []byte(content)), ModeFile) }
	executable := state("a\n")
	executable.Mode = ModeExecutable
	for _, c := range []struct {
		a, b State
		want bool
	}{
		{state("a\n"), state("a\n"), true},
		{state("a\r\n"), state("a\r\n"), true},
		{state("a\r\n"), state("a\n"), true},
		{state("a\n"), state("b\n"), false},
		{state("a\r\n"), state("b\r\n"), false},
		{state("a\n"), executable, false},
		{state("a\n"), State{Path: "p", Mode: ModeFile}, false},
	} {
		if c.a.Same(c.b) != c.want || c.b.Same(c.a) != c.want {
			t.Errorf("%+v and %+v: want %v", c.a, c.b, c.want)
		}
	}
}

// What git wrote with other line ends than it stores is found and held.
func TestTextIsWhatGitStores(t *testing.T) {
	alone(t)
	r := initRepo(t, physicalTemp(t))
	write(t, r+"/a", "one\ntwo\n")
	commit(t, r)
	repo := discover(t, r)
	refs, err := repo.StartRefs(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	state := func(content string) State {
		return *StateOf(repo.ObjectFormat, "a", Identify(repo.ObjectFormat, []byte(content)), ModeFile)
	}
	want := map[State]bool{
		state("one\r\ntwo\r\n"):  true,
		state("one\ntwo\n"):      true,
		state("one\r\ntwo\n"):    false,
		state("one\r\nevil\r\n"): false,
	}
	for name, ask := range map[string]func([]State) ([]bool, error){
		"reached": func(states []State) ([]bool, error) { return repo.Reached(context.Background(), refs, states) },
		"held":    func(states []State) ([]bool, error) { return repo.Held(context.Background(), states) },
		"indexed": func(states []State) ([]bool, error) { return repo.Indexed(context.Background(), states) },
	} {
		t.Run(name, func(t *testing.T) { expect(t, ask, want) })
	}
}
