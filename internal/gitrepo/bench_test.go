package gitrepo

import (
	"context"
	"testing"

	"cage/internal/program"
)

// BenchmarkStart is what a session asks before its command runs; the figure
// beside it is the floor, one git that does nothing.
func BenchmarkStart(b *testing.B) {
	alone(b)
	r := initRepo(b, physicalTemp(b))
	write(b, r+"/.cage.yaml", "protect: []\n")
	commit(b, r)
	binary := realGit(b)
	ctx := context.Background()
	fail := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	repo := discover(b, r)
	b.Run("floor", func(b *testing.B) {
		for b.Loop() {
			_, err := program.Exec(ctx, program.Call{Path: binary, Args: []string{"version"}, Env: repo.env, Dir: r})
			fail(err)
		}
	})
	b.Run("discover", func(b *testing.B) {
		for b.Loop() {
			_, err := Discover(ctx, program.Exec, binary, r)
			fail(err)
		}
	})
	b.Run("discover and config", func(b *testing.B) {
		for b.Loop() {
			found, err := Discover(ctx, program.Exec, binary, r)
			fail(err)
			_, err = found.Config(ctx)
			fail(err)
		}
	})
	b.Run("references", func(b *testing.B) {
		for b.Loop() {
			_, err := repo.StartRefs(ctx)
			fail(err)
		}
	})
	b.Run("committed blob", func(b *testing.B) {
		for b.Loop() {
			_, _, err := repo.CommittedBlob(ctx, ".cage.yaml")
			fail(err)
		}
	})
	b.Run("parse config", func(b *testing.B) {
		content := []byte("[core]\n\tbare = false\n")
		for b.Loop() {
			_, err := repo.ParseConfig(ctx, content)
			fail(err)
		}
	})
}
