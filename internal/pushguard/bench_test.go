package pushguard

import (
	"testing"

	"cage/internal/gitrepo"
)

// BenchmarkGuard is what a session pays for its push guard.
func BenchmarkGuard(b *testing.B) {
	o := Options{Temp: b.TempDir(), Session: "0123456789abcdef", Program: "/bin/true"}
	o.Judge.Repo = &gitrepo.Repo{CommonDir: "/nowhere/.git", HooksDir: "/nowhere/.git/hooks"}
	for b.Loop() {
		g, err := Open(o)
		if err != nil {
			b.Fatal(err)
		}
		if err := g.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
