package gitrepo

import (
	"slices"
	"strings"
	"testing"
)

func TestPushed(t *testing.T) {
	repo := &Repo{ObjectFormat: SHA1}
	one, two, none := strings.Repeat("1", 40), strings.Repeat("2", 40), strings.Repeat("0", 40)
	told := "refs/heads/a " + one + " refs/heads/a " + none + "\n" +
		"HEAD^{/b " + two + " c} " + two + " refs/heads/x " + one + "\n" +
		"(delete) " + none + " refs/heads/y " + two
	sent, there, err := repo.Pushed([]byte(told))
	if err != nil || !slices.Equal(sent, []string{one, two}) || !slices.Equal(there, []string{one, two}) {
		t.Errorf("sent are %q, there are %q (%v)", sent, there, err)
	}
	if sent, there, err := repo.Pushed(nil); err != nil || len(sent)+len(there) > 0 {
		t.Errorf("nothing is %q, %q (%v)", sent, there, err)
	}
	for _, bad := range []string{"\n", "x\n", one + " refs/heads/x " + none, "a " + one[1:] + " refs/heads/x " + none, "a " + one + " b c " + none,
		"a " + one + " refs/heads/x " + none + " \n", "a  " + one + "  refs/heads/x " + none} {
		if sent, there, err := repo.Pushed([]byte(bad)); err == nil {
			t.Errorf("%q is %q, %q", bad, sent, there)
		}
	}
}
