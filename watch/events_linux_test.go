package watch

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestEventHints does to protected files, through the real kernel, what can be
// done to them, and expects the hint.
func TestEventHints(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(s *scene)
		want []string
	}{
		{"pwrite", func(s *scene) {
			f, err := os.OpenFile(s.abs(".env"), os.O_WRONLY, 0)
			s.must(err)
			defer f.Close()
			_, err = f.WriteAt([]byte("x"), 1)
			s.must(err)
		}, []string{".env"}},
		{"truncate", func(s *scene) { s.must(os.Truncate(s.abs("src/.env"), 0)) }, []string{"src/.env"}},
		{"chmod", func(s *scene) { s.must(os.Chmod(s.abs(".env"), 0o600)) }, []string{".env"}},
		{"setxattr", func(s *scene) { s.must(unix.Setxattr(s.abs(".env"), "user.cage", []byte("1"), 0)) }, []string{".env"}},
		{"unlink", func(s *scene) { s.must(os.Remove(s.abs(".env"))) }, []string{".env"}},
		{"git config", func(s *scene) { s.write(".git/config", "[x]\n") }, []string{".git/config"}},
		{"new hook", func(s *scene) { s.write(".git/hooks/post-commit", "#!/bin/sh\n") }, []string{".git/hooks/post-commit"}},
		{"new file in a tree", func(s *scene) { s.write(".github/workflows/x.yml", "x") }, []string{".github/workflows/x.yml"}},
		{"new name", func(s *scene) { s.write("src/.env.local", "x") }, []string{"src/.env.local"}},
		{"new glob", func(s *scene) { s.write("src/b.pem", "x") }, []string{"src/b.pem"}},
		{"literal target", func(s *scene) { s.write(".gitlab-ci.yml", "x") }, []string{".gitlab-ci.yml"}},
		{"file behind new directories", func(s *scene) { s.write("a/b/c/.env", "x") }, []string{"a/b/c/.env"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			tt.do(s)
			s.hinted(tt.want...)
		})
	}
}
