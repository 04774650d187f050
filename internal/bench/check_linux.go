package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// stagedFiles is how many files are staged where a check is measured.
const stagedFiles = 50_000

// checking measures a check of many staged files beside the one comparison by
// git that it needs.
func checking(ctx context.Context, st *stage) ([]figure, error) {
	dir, err := st.staged(ctx)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	floor := []string{st.git, "diff-index", "--cached", "--raw", "-z", "--no-abbrev", "--no-renames", "HEAD", "--"}
	f := figure{name: fmt.Sprintf("`cage check` of %d staged files over `git diff-index`", stagedFiles), unit: milliseconds, goal: 2, goalUnit: factor}
	f.value = func() float64 { return f.cage.median() / f.floor.median() }
	for range max(1, int(50*st.scale)) {
		for _, contender := range []struct {
			took *sample
			argv []string
		}{{&f.floor, floor}, {&f.cage, []string{st.cage, "check"}}} {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			took, err := once(dir, st.environment(), contender.argv...)
			if err != nil {
				return nil, err
			}
			*contender.took = append(*contender.took, ms(took))
		}
	}
	return []figure{f}, nil
}

func factor(v float64) string { return fmt.Sprintf("%.2f ×", v) }

// staged makes a repository whose index changes and adds many files that exist
// nowhere else, none of them protected.
func (st *stage) staged(ctx context.Context) (string, error) {
	dir, err := st.repository(ctx)
	if err != nil {
		return "", err
	}
	if err := st.stageMany(ctx, dir); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}

func (st *stage) stageMany(ctx context.Context, dir string) error {
	const protect = "protect: [{path: infra}, {glob: '**/*.pem'}]\n"
	if err := os.WriteFile(filepath.Join(dir, ".cage.yaml"), []byte(protect), 0o644); err != nil {
		return err
	}
	one, err := st.ask(ctx, dir, "one\n", "hash-object", "-w", "--stdin")
	if err != nil {
		return err
	}
	two, err := st.ask(ctx, dir, "two\n", "hash-object", "-w", "--stdin")
	if err != nil {
		return err
	}
	var before, after strings.Builder
	for i := range stagedFiles {
		name := fmt.Sprintf("src/pkg%03d/dir%02d/file%05d.go", i%200, i%17, i)
		if i%10 == 0 {
			fmt.Fprintf(&before, "100644 %s\t%s\n", one, name)
		}
		fmt.Fprintf(&after, "100644 %s\t%s\n", two, name)
	}
	for _, step := range []struct {
		input string
		args  []string
	}{
		{"", []string{"add", "."}},
		{before.String(), []string{"update-index", "--index-info"}},
		{"", []string{"-c", "user.name=A", "-c", "user.email=a@example.invalid", "commit", "-q", "-m", "start"}},
		{after.String(), []string{"update-index", "--index-info"}},
	} {
		if _, err := st.ask(ctx, dir, step.input, step.args...); err != nil {
			return err
		}
	}
	return nil
}

// ask runs git and returns its output without the newline at its end.
func (st *stage) ask(ctx context.Context, dir, input string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, st.git, args...)
	c.Dir, c.Env, c.Stdin = dir, st.environment(), strings.NewReader(input)
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}
