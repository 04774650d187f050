package check

import (
	"slices"
	"strconv"
	"testing"

	"cage/internal/gitrepo"
)

func TestApart(t *testing.T) {
	// c and d on b, m of both; y on x; z for itself.
	steps := []gitrepo.Step{
		{Commit: "m", Parent: "c"}, {Commit: "m", Parent: "d"},
		{Commit: "y", Parent: "x"},
		{Commit: "d", Parent: "b"}, {Commit: "c", Parent: "b"},
	}
	for _, c := range []struct{ commits, want []string }{
		{[]string{"m", "c", "d", "b"}, []string{"m"}},
		{[]string{"d", "y", "c", "x", "z", "z"}, []string{"d", "y", "z"}},
		{[]string{"x", "b"}, []string{"x", "b"}},
		{nil, nil},
	} {
		if got := apart(c.commits, steps); !slices.Equal(got, c.want) {
			t.Errorf("of %q apart are %q, want %q", c.commits, got, c.want)
		}
	}
	var long []gitrepo.Step
	const many = 100_000
	for i := range many {
		long = append(long, gitrepo.Step{Commit: strconv.Itoa(i + 1), Parent: strconv.Itoa(i)})
	}
	if got := apart([]string{"0", strconv.Itoa(many)}, long); len(got) != 1 {
		t.Errorf("the ends of a long history are apart: %q", got)
	}
}
