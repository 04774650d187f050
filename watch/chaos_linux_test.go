package watch

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// TestEveryDirectoryIsWatchedAfterChaos makes, moves, exchanges and removes
// directories from several sides at once. Whatever stands in the end is
// watched, by the name it has then; where symlinks led watches astray, after
// the next scan.
func TestEveryDirectoryIsWatchedAfterChaos(t *testing.T) {
	for seed := range uint64(4) {
		links := seed%2 == 1
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := newScene(t)
			var sides sync.WaitGroup
			for side := range uint64(3) {
				sides.Go(func() { s.disturb(rand.New(rand.NewPCG(seed, side)), links, 1500) })
			}
			sides.Wait()
			s.settle()
			// The kernel may have dropped events: then that is what was said.
			if links || s.w.Status().Overflows > 0 {
				s.w.Refresh()
				s.w.Scan()
			}
			var probes []string
			s.must(filepath.WalkDir(s.root, func(abs string, d fs.DirEntry, err error) error {
				if err != nil || !d.IsDir() {
					return err
				}
				rel, _ := filepath.Rel(s.root, abs)
				if rel == ".git" {
					return filepath.SkipDir
				}
				probes = append(probes, filepath.Join(rel, ".env.probe"))
				return nil
			}))
			for _, probe := range probes {
				s.must(os.WriteFile(s.abs(probe), []byte("x"), 0o600))
			}
			s.hinted(probes...)
		})
	}
}

// disturb does n things to directories of few names, most of which exist. What
// fails because somebody else was faster does not matter.
func (s *scene) disturb(r *rand.Rand, links bool, n int) {
	names := []string{"src", "infra", "infra/prod", "dir", "dir/deep", "a", "a/b", "a/b/c", "b", "b/a", "b/a/c", "c"}
	pick := func() string { return s.abs(names[r.IntN(len(names))]) }
	for range n {
		switch one, other := pick(), pick(); r.IntN(8) {
		case 0, 1, 2:
			os.MkdirAll(one, 0o755)
		case 3, 4:
			os.Rename(one, other)
		case 5:
			unix.Renameat2(unix.AT_FDCWD, one, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
		case 6:
			os.RemoveAll(one)
		case 7:
			if links {
				os.Symlink(other, one)
			}
			os.WriteFile(filepath.Join(one, "x"), nil, 0o600)
		}
	}
}
