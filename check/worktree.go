package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"cage/internal/gitrepo"
	"cage/report"
	"cage/rules"
)

// WorkTree judges the index against HEAD, the protected files of the work tree
// against the index, and those that git neither tracks nor ignores. An error is
// a *report.Refusal.
func WorkTree(ctx context.Context, o Options) (*report.Check, error) {
	return run(ctx, o, report.ScopeWorkTree, func(c *checker) error { return c.workTree(ctx) })
}

func (c *checker) workTree(ctx context.Context) error {
	plan, changes, err := c.present(ctx)
	if err != nil {
		return err
	}
	untracked, err := c.repo.Untracked(ctx)
	if err != nil {
		return err
	}
	changes = concerned(plan, changes)
	appeared := concerned(plan, untrackedChanges(untracked))
	if plan, err = c.settled(ctx, plan, "", slices.Concat(changes, appeared)); err != nil {
		return err
	}
	unstaged, err := c.unstaged(ctx, plan)
	if err != nil {
		return err
	}
	made, err := c.repo.MergedChanges(ctx, changes)
	if err != nil {
		return err
	}
	c.judge(plan, "", made)
	staged := make(map[string]bool, len(made))
	for _, change := range made {
		staged[change.Path] = true
	}
	for _, change := range slices.Concat(unstaged, appeared) {
		// What is staged and changed once more is one finding, of what is staged.
		if !staged[change.Path] {
			c.judge(plan, "", []gitrepo.Change{change})
		}
	}
	return nil
}

// untrackedChanges returns untracked paths as changes: nothing stood there.
func untrackedChanges(paths []string) []gitrepo.Change {
	var changes []gitrepo.Change
	for _, path := range paths {
		// A repository in the work tree is one name with a slash at its end.
		rel := strings.TrimSuffix(path, "/")
		mode := gitrepo.ModeFile
		if rel != path {
			mode = gitrepo.ModeSubmodule
		}
		changes = append(changes, gitrepo.Change{Path: rel, After: gitrepo.Record{Mode: mode}})
	}
	return changes
}

// unstaged returns what the work tree changes against the index at protected
// paths. A submodule there is judged by what is staged of it.
func (c *checker) unstaged(ctx context.Context, plan *rules.Plan) ([]gitrepo.Change, error) {
	tracked, err := c.repo.Tracked(ctx)
	if err != nil {
		return nil, err
	}
	var changes, skipped []gitrepo.Change
	for _, path := range slices.Sorted(maps.Keys(tracked)) {
		entry := tracked[path]
		if _, ok := plan.ClassifyRecorded(rules.Path{Anchor: rules.Root, Rel: path}); !ok || entry.Mode == gitrepo.ModeSubmodule {
			continue
		}
		after, changed, err := c.inWorkTree(ctx, path, entry)
		if err != nil {
			return nil, err
		}
		change := gitrepo.Change{Path: path, Before: entry.Record, After: after}
		switch {
		case !changed:
		case after.Mode == 0 && entry.Skipped:
			skipped = append(skipped, change)
		default:
			changes = append(changes, change)
		}
	}
	if len(skipped) == 0 {
		return changes, nil
	}
	// A sparse checkout has not taken them away.
	sparse, err := c.repo.Sparse(ctx)
	if err != nil || sparse {
		return changes, err
	}
	return append(changes, skipped...), nil
}

// inWorkTree compares what stands at a path with what the index records there.
func (c *checker) inWorkTree(ctx context.Context, path string, entry gitrepo.Entry) (after gitrepo.Record, changed bool, err error) {
	stands, content, err := c.look(path)
	if errors.Is(err, fs.ErrNotExist) {
		return gitrepo.Record{}, true, nil
	}
	if err != nil {
		return gitrepo.Record{}, false, report.Refuse(codeInput, "make it readable", fmt.Errorf("look at %s: %w", report.Quote(path), err))
	}
	switch {
	case stands == entry.Record:
		return stands, false, nil
	case !regular(stands) || !regular(entry.Record):
		return stands, true, nil
	case stands.Mode != entry.Mode:
		if changed, err = c.repo.Executables(ctx); changed || err != nil {
			return stands, changed, err
		}
	}
	if stands.ID == entry.ID {
		return stands, false, nil
	}
	same, err := c.repo.Converts(ctx, path, content, entry)
	return stands, !same, err
}

func regular(record gitrepo.Record) bool {
	return record.Mode == gitrepo.ModeFile || record.Mode == gitrepo.ModeExecutable
}

// look reads what stands at a path, and does not wait for anybody.
func (c *checker) look(path string) (gitrepo.Record, []byte, error) {
	if err := c.plainWay(path); err != nil {
		return gitrepo.Record{}, nil, err
	}
	name := filepath.Join(c.layout.Root, path)
	info, err := os.Lstat(name)
	if err != nil {
		return gitrepo.Record{}, nil, err
	}
	mode := gitrepo.ModeFile
	var content []byte
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		mode = gitrepo.ModeLink
		target, err := os.Readlink(name)
		if err != nil {
			return gitrepo.Record{}, nil, err
		}
		content = []byte(target)
	case !info.Mode().IsRegular(), info.Size() > maxContent:
		return gitrepo.Record{Mode: modeOther}, nil, nil
	default:
		if info.Mode().Perm()&0o100 != 0 {
			mode = gitrepo.ModeExecutable
		}
		if content, err = readRegular(name); err != nil {
			return gitrepo.Record{}, nil, err
		}
	}
	return gitrepo.Record{Mode: mode, ID: gitrepo.BlobID(c.repo.ObjectFormat, content)}, content, nil
}

// modeOther stands for what is not read, since it is no version of a file that
// git has: a directory, a pipe, more bytes than anybody protects.
const (
	modeOther  uint32 = 0o000001
	maxContent        = 256 << 20
)

// readRegular reads a file that was regular a moment ago.
func readRegular(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// plainWay reports that nothing stands at a path that a link leads to: git does
// not look behind links.
func (c *checker) plainWay(path string) error {
	dir := c.layout.Root
	segments := strings.Split(path, "/")
	for _, segment := range segments[:len(segments)-1] {
		dir = filepath.Join(dir, segment)
		info, err := os.Lstat(dir)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return fs.ErrNotExist
		}
	}
	return nil
}
