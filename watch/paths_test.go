package watch

import (
	"reflect"
	"slices"
	"testing"

	"cage/rules"

	"pgregory.net/rapid"
)

// TestBeneathAgreesWithWithin compares the search with its definition.
func TestBeneathAgreesWithWithin(t *testing.T) {
	paths := rapid.Custom(func(t *rapid.T) rules.Path {
		segments := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "a-", "a0", "b", "\xff", "a/b"}), 0, 4).Draw(t, "segments")
		p := rules.Path{Anchor: rapid.SampledFrom([]rules.Anchor{rules.Root, rules.CommonDir, rules.Outside}).Draw(t, "anchor")}
		for _, s := range segments {
			p = p.Join(s)
		}
		return p
	})
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOf(paths).Draw(t, "paths")
		dir := paths.Draw(t, "dir")
		set := newPathSet(all)
		var want []rules.Path
		for _, p := range set {
			if p != dir && p.Within(dir) {
				want = append(want, p)
			}
		}
		got := slices.DeleteFunc(slices.Clone(set.beneath(dir)), func(p rules.Path) bool { return p == dir })
		if !slices.Equal(got, want) {
			t.Fatalf("beneath %v of %v: %v, want %v", dir, set, got, want)
		}
		for _, p := range all {
			if !set.contains(p) {
				t.Fatalf("%v is not in %v", p, set)
			}
		}
	})
}

func TestHintsCollapse(t *testing.T) {
	var h hints
	h.init(3)
	paths := make([]rules.Path, 5)
	for i, rel := range []string{"a", "b", "c", "d", "e"} {
		paths[i] = rules.Path{Rel: rel}
	}
	h.add(paths[1], paths[0], paths[1])
	if got := h.take(); !slices.Equal(got.Paths, []rules.Path{paths[1], paths[0]}) || got.Rescan || got.Walk {
		t.Errorf("took %+v", got)
	}
	if got := h.take(); !reflect.DeepEqual(got, Batch{}) {
		t.Errorf("took again %+v", got)
	}
	h.add(paths...)
	if got := h.take(); len(got.Paths) != 0 || !got.Rescan || !got.Walk {
		t.Errorf("took %+v of a flood", got)
	}
	h.lose(false)
	h.add(paths[4])
	if got := h.take(); len(got.Paths) != 1 || !got.Rescan || got.Walk {
		t.Errorf("took %+v after a loss", got)
	}
	for range 2 * maxErrs {
		h.fail(errNoInstance)
	}
	if got := h.take(); len(got.Errs) != maxErrs {
		t.Errorf("%d errors wait", len(got.Errs))
	}
}
