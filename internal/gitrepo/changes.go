package gitrepo

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// Modes of entries that hold no file of their own.
const (
	ModeSubmodule uint32 = 0o160000
	modeTree      uint32 = 0o040000
)

// Record is what git records at a path; the zero Record is nothing.
type Record struct {
	Mode uint32
	// ID is the object id of the content, of a link's target or of a
	// submodule's commit.
	ID string
}

// Change is a path that two trees, or a tree and the index, record differently.
// A rename is a path that went and one that came.
type Change struct {
	// Path is relative to the root, slash-separated, in the bytes of its name.
	Path          string
	Before, After Record
	// Unmerged is set where the index holds the sides of a conflict; After is
	// then nothing.
	Unmerged bool
}

// StagedChanges returns what the index changes against HEAD; everything in it
// is new where HEAD has no commit.
func (r *Repo) StagedChanges(ctx context.Context) ([]Change, error) {
	changes, err := r.stagedAgainst(ctx, "HEAD^{commit}")
	if err != nil && r.unborn(ctx) {
		changes, err = r.stagedAgainst(ctx, r.emptyTree())
	}
	if err != nil {
		return nil, fmt.Errorf("compare the index with HEAD: %w", err)
	}
	return changes, nil
}

// MergedChanges returns which of changes, the index's against HEAD, are no
// version that a merge in progress takes over from another repository: of a path
// that is as in one of the merged commits, that commit made it, and who has it
// has judged it. Merged commits that no remote branch known here holds count for
// nothing, and neither do those that HEAD or another one is based on: git drops
// them from the commit.
func (r *Repo) MergedChanges(ctx context.Context, changes []Change) ([]Change, error) {
	data, err := os.ReadFile(join(r.GitDir, "MERGE_HEAD"))
	if errors.Is(err, fs.ErrNotExist) || len(changes) == 0 {
		return changes, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find out what is merged: %w", err)
	}
	remote, err := r.RemoteRefs(ctx)
	if err != nil || len(remote) == 0 {
		return changes, err
	}
	parents, err := r.mergeParents(ctx, strings.Fields(string(data)))
	if err != nil || len(parents) == 0 {
		return changes, err
	}
	lists := [][]Change{changes}
	for _, merged := range parents {
		unknown, err := r.Commits(ctx, []string{merged}, remote)
		if errors.Is(err, ErrShallow) || err == nil && len(unknown) > 0 {
			continue
		}
		if err != nil {
			return nil, err
		}
		against, err := r.stagedAgainst(ctx, merged)
		if err != nil {
			return nil, fmt.Errorf("compare the index with %s: %w", merged, err)
		}
		lists = append(lists, against)
	}
	return inAll(lists), nil
}

// mergeParents returns which of the words of a MERGE_HEAD are parents that a
// merge of HEAD will have beside it; none where HEAD has no commit.
func (r *Repo) mergeParents(ctx context.Context, words []string) ([]string, error) {
	head, err := r.head(ctx)
	if err != nil || head == "" {
		return nil, err
	}
	parents, err := r.Independent(ctx, append([]string{head}, slices.DeleteFunc(words, func(word string) bool { return !r.IsID(word) })...))
	return slices.DeleteFunc(parents, func(id string) bool { return id == head }), err
}

func (r *Repo) stagedAgainst(ctx context.Context, treeish string) ([]Change, error) {
	out, err := r.ask(ctx, nil, append(append([]string{"diff-index", "--cached"}, rawDiff()...), "--ita-invisible-in-index", treeish, "--")...)
	if err != nil {
		return nil, err
	}
	return readChanges(out)
}

// rawDiff are the options of every comparison: object ids and modes of all
// paths, nothing that guesses, and nothing that a configuration could leave out.
func rawDiff() []string {
	return []string{"--raw", "-z", "--no-abbrev", "--no-renames", "--no-relative", "--ignore-submodules=none",
		"--no-ext-diff", "--no-textconv"}
}

// emptyTree is the id of the tree without entries, which git knows without
// having it.
func (r *Repo) emptyTree() string {
	const object = "tree 0\x00"
	if r.ObjectFormat == SHA256 {
		id := sha256.Sum256([]byte(object))
		return hex.EncodeToString(id[:])
	}
	id := sha1.Sum([]byte(object))
	return hex.EncodeToString(id[:])
}

// readChanges reads what git prints with --raw -z: a colon, two modes, two ids
// and a letter; then the path. Each of the two is ended by a NUL.
func readChanges(listing []byte) ([]Change, error) {
	changes, rest, err := readSome(make([]Change, 0, bytes.Count(listing, []byte{0})/2), string(listing))
	if err == nil && rest != "" {
		err = errListing
	}
	return changes, err
}

// readSome adds changes to some, up to what is none.
func readSome(some []Change, listing string) (changes []Change, rest string, err error) {
	for changes, rest = some, listing; strings.HasPrefix(rest, ":"); {
		head, behind, _ := strings.Cut(rest, "\x00")
		path, behind, found := strings.Cut(behind, "\x00")
		if !found || path == "" {
			return nil, "", errListing
		}
		change, err := readChange(head, path)
		if err != nil {
			return nil, "", err
		}
		changes, rest = append(changes, change), behind
	}
	return changes, rest, nil
}

func readChange(head, path string) (Change, error) {
	modeBefore, words, _ := strings.Cut(head[1:], " ")
	modeAfter, words, _ := strings.Cut(words, " ")
	idBefore, words, _ := strings.Cut(words, " ")
	idAfter, letter, found := strings.Cut(words, " ")
	if !found {
		return Change{}, errListing
	}
	before, err := readRecord(modeBefore, idBefore)
	if err != nil {
		return Change{}, err
	}
	after, err := readRecord(modeAfter, idAfter)
	return Change{Path: path, Before: before, After: after, Unmerged: letter == "U"}, err
}

// readRecord reads a mode and an id; mode 0 is nothing, whatever the id.
func readRecord(mode, id string) (Record, error) {
	bits, err := parseMode(mode)
	if err != nil || bits == 0 {
		return Record{}, err
	}
	return Record{Mode: bits, ID: id}, nil
}

// At returns what a commit or tree records at paths relative to the root,
// files, links and submodules. A HEAD without a commit records nothing.
func (r *Repo) At(ctx context.Context, treeish string, paths []string) (map[string]Record, error) {
	found, err := r.committed(ctx, treeish, paths)
	if err != nil {
		return nil, fmt.Errorf("look into %s: %w", treeish, err)
	}
	at := make(map[string]Record, len(paths))
	for path, records := range found {
		for _, record := range records {
			if record.mode != modeTree {
				at[path] = Record{Mode: record.mode, ID: record.oid}
			}
		}
	}
	return at, nil
}

// Link is a symlink that git records.
type Link struct {
	// Path is relative to the root.
	Path string
	// ID is the object id of its target.
	ID string
}

// Links returns the symlinks that a commit or tree records. A HEAD without a
// commit records none.
func (r *Repo) Links(ctx context.Context, treeish string) ([]Link, error) {
	out, err := r.ask(ctx, nil, "ls-tree", "-r", "-z", "--full-tree", treeish)
	if err != nil {
		if treeish == "HEAD" && r.unborn(ctx) {
			return nil, nil
		}
		return nil, fmt.Errorf("list the links of %s: %w", treeish, err)
	}
	var links []Link
	const mode = "120000 blob "
	for entry := range bytes.SplitSeq(out, []byte{0}) {
		if !bytes.HasPrefix(entry, []byte(mode)) {
			continue
		}
		id, path, found := strings.Cut(string(entry[len(mode):]), "\t")
		if !found {
			return nil, errListing
		}
		links = append(links, Link{path, id})
	}
	return links, nil
}

// Paths returns the paths that a commit or tree records, or the index where
// treeish is empty.
func (r *Repo) Paths(ctx context.Context, treeish string) ([]string, error) {
	question := []string{"ls-files", "-z", "--full-name"}
	if treeish != "" {
		question = []string{"ls-tree", "-r", "-z", "--name-only", "--full-tree", treeish}
	}
	out, err := r.ask(ctx, nil, question...)
	if err != nil {
		return nil, fmt.Errorf("list the paths of %q: %w", r.Root, err)
	}
	return strings.FieldsFunc(string(out), func(c rune) bool { return c == 0 }), nil
}
