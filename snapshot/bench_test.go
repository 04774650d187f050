package snapshot_test

import (
	"bytes"
	"fmt"
	"testing"

	"cage/internal/safefile"
	"cage/rules"
	"cage/snapshot"
)

// BenchmarkCompare looks at a thousand files of 1 KB, each in a directory of
// its own, which is what a rescan does once a second.
func BenchmarkCompare(b *testing.B) {
	files := make(map[string]string)
	for i := range 1000 {
		files[fmt.Sprintf("tree/%d/%d/.env", i/100, i%100)] = string(bytes.Repeat([]byte{byte(i)}, 1<<10))
	}
	s := newScene(b, "", files)
	m, err := s.take(snapshot.Limits{FileBytes: 1 << 20, Files: 5000, TotalBytes: 64 << 20})
	s.must(err)
	b.ReportAllocs()
	for b.Loop() {
		look := snapshot.NewLooker(s.trees, s.store, 1<<20)
		for _, p := range m.Paths() {
			e, _ := m.Entry(p)
			if sight := look.Compare(e); !sight.Same {
				b.Fatalf("%q differs: %v", p.Rel, sight.Err)
			}
		}
		look.Forget()
	}
}

// BenchmarkCompareLarge looks at a file of 5 MB, whole and changed at its
// beginning.
func BenchmarkCompareLarge(b *testing.B) {
	content := string(bytes.Repeat([]byte("0123456789abcdef"), 5<<16))
	for _, c := range []struct{ name, now string }{{"same", content}, {"changed", "x" + content[1:]}} {
		b.Run(c.name, func(b *testing.B) {
			s := newScene(b, "", map[string]string{".env": content})
			m, err := s.take(snapshot.Limits{FileBytes: 5 << 20, Files: 5, TotalBytes: 64 << 20})
			s.must(err)
			s.write(".env", c.now)
			e, _ := m.Entry(root(".env"))
			b.ReportAllocs()
			for b.Loop() {
				look := snapshot.NewLooker(s.trees, s.store, 5<<20)
				if sight := look.Compare(e); sight.Same != (c.name == "same") {
					b.Fatal(sight)
				}
				look.Forget()
			}
		})
	}
}

// BenchmarkWalk goes through ten thousand directories in which nothing is
// protected.
func BenchmarkWalk(b *testing.B) {
	files := make(map[string]string)
	for i := range 10_000 {
		files[fmt.Sprintf("tree/%d/%d/file", i/100, i%100)] = ""
	}
	s := newScene(b, "", files)
	b.ReportAllocs()
	for b.Loop() {
		dirs := 0
		snapshot.Walk(s.trees, s.plan, snapshot.Visitor{
			Enter: func(rules.Path) { dirs++ },
			Found: func(p rules.Path, _ safefile.Kind, _ rules.Verdict) { b.Fatalf("%q is protected", p.Rel) },
		})
		if dirs < 10_000 {
			b.Fatalf("%d directories", dirs)
		}
	}
}
