package check_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cage/check"
)

// BenchmarkStaged judges 50,000 staged files, one in ten of them modified and
// the rest new, and beside it runs the one git diff-index that this needs.
func BenchmarkStaged(b *testing.B) {
	dir := staged(b, 50_000)
	b.Run("diff-index", func(b *testing.B) {
		for b.Loop() {
			run(b, dir, "", "diff-index", "--cached", "--raw", "-z", "--no-abbrev", "--no-renames", "HEAD", "--")
		}
	})
	b.Run("check", func(b *testing.B) {
		for b.Loop() {
			doc, err := check.Staged(context.Background(), check.Options{Dir: dir, SearchPath: os.Getenv("PATH")})
			if err != nil || len(doc.Findings) != 2 {
				b.Fatal(doc, err)
			}
		}
	})
}

// staged makes a repository with that many staged changes, two of which are
// findings.
func staged(b *testing.B, files int) string {
	dir := b.TempDir()
	run(b, dir, "", "init", "-q", "--template=")
	if err := os.WriteFile(filepath.Join(dir, ".cage.yaml"), []byte("protect: [{path: infra}, {glob: '**/*.pem'}]\n"), 0o644); err != nil {
		b.Fatal(err)
	}
	run(b, dir, "", "add", ".cage.yaml")
	one := strings.TrimSpace(run(b, dir, "one\n", "hash-object", "-w", "--stdin"))
	two := strings.TrimSpace(run(b, dir, "two\n", "hash-object", "-w", "--stdin"))
	var before, after strings.Builder
	for i := range files - 2 {
		name := fmt.Sprintf("src/pkg%03d/dir%02d/file%05d.go", i%200, i%17, i)
		if i%10 == 0 {
			fmt.Fprintf(&before, "100644 %s\t%s\n", one, name)
		}
		fmt.Fprintf(&after, "100644 %s\t%s\n", two, name)
	}
	fmt.Fprintf(&after, "100644 %s\tinfra/main.tf\n100644 %s\tsrc/.env\n", two, two)
	run(b, dir, before.String(), "update-index", "--index-info")
	run(b, dir, "", "-c", "user.name=A", "-c", "user.email=a@example.invalid", "commit", "-q", "-m", "start")
	run(b, dir, after.String(), "update-index", "--index-info")
	return dir
}

func run(b *testing.B, dir, input string, args ...string) string {
	b.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(input)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("git %q: %v", args, err)
	}
	return string(out)
}
