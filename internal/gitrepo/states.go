package gitrepo

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"strings"
)

// Modes of files as git records them.
const (
	ModeFile       uint32 = 0o100644
	ModeExecutable uint32 = 0o100755
	ModeLink       uint32 = 0o120000
)

// State is what stood, or did not stand, at a path.
type State struct {
	// Path is relative to the root, slash-separated, in the bytes of its name.
	Path string
	// Blob is the object id of the content, or of a link's target; it is empty
	// where nothing stands at the path.
	Blob string
	// Text is the object id of what git stores of it if it wrote it with other
	// line ends; empty where it has none of those.
	Text string
	// Mode is the mode git would record; 0 means any.
	Mode uint32
}

// BlobID returns the object id that git gives content in an object format,
// without any conversion that attributes might ask for.
func BlobID(objectFormat string, content []byte) string {
	h := NewBlob(objectFormat, int64(len(content)))
	h.Write(content)
	return hex.EncodeToString(h.Sum(nil))
}

// NewBlob returns the hash that makes the object id of content of a size in
// bytes, once the content has been written to it.
func NewBlob(objectFormat string, size int64) hash.Hash {
	var h hash.Hash
	if objectFormat == SHA256 {
		h = sha256.New()
	} else {
		h = sha1.New()
	}
	fmt.Fprintf(h, "blob %d\x00", size)
	return h
}

// CommittedBlob returns the object id of the regular file that HEAD records at
// a path relative to the root, and whether there is one.
func (r *Repo) CommittedBlob(ctx context.Context, path string) (oid string, ok bool, err error) {
	if !askable(path) {
		return "", false, nil
	}
	records, err := r.committed(ctx, "HEAD", []string{path})
	if err != nil {
		return "", false, fmt.Errorf("look up %q in HEAD: %w", path, err)
	}
	for _, record := range records[path] {
		if record.mode == ModeFile || record.mode == ModeExecutable {
			return record.oid, true, nil
		}
	}
	return "", false, nil
}

// Refs are the object ids that references and HEAD point to, sorted, each once.
type Refs []string

// StartRefs returns what all references and HEAD point to now. A HEAD without
// a commit adds nothing.
func (r *Repo) StartRefs(ctx context.Context) (Refs, error) {
	out, err := r.ask(ctx, nil, "for-each-ref", "--format=%(HEAD)%(objectname)")
	if err != nil {
		return nil, fmt.Errorf("list the references of %q: %w", r.Root, err)
	}
	var refs Refs
	headListed := false
	for line := range strings.Lines(string(out)) {
		id := strings.TrimSuffix(line, "\n")
		if current, isCurrent := strings.CutPrefix(id, "*"); isCurrent {
			headListed, id = true, current
		}
		refs = append(refs, strings.TrimPrefix(id, " "))
	}
	if !headListed {
		head, err := r.head(ctx)
		if err != nil {
			return nil, fmt.Errorf("list the references of %q: %w", r.Root, err)
		}
		if head != "" {
			refs = append(refs, head)
		}
	}
	slices.Sort(refs)
	return slices.Compact(refs), nil
}

// head returns what HEAD points to, or "" where there is nothing.
func (r *Repo) head(ctx context.Context) (string, error) {
	out, err := r.ask(ctx, nil, "rev-parse", "-q", "--verify", "HEAD")
	var refused *Error
	if errors.As(err, &refused) && refused.ExitCode == 1 && refused.Words == "" {
		return "", nil
	}
	return strings.TrimSuffix(string(out), "\n"), err
}

// unborn reports whether HEAD names a branch that has no commit yet. Where what
// it points to is gone, or cannot be read, it is broken and not unborn.
func (r *Repo) unborn(ctx context.Context) bool {
	if head, err := r.head(ctx); err != nil || head != "" {
		return false
	}
	_, err := r.ask(ctx, nil, "symbolic-ref", "-q", "HEAD")
	return err == nil
}

// Held reports of every state whether HEAD or the index now holds it at its
// path; an index with conflicts holds what any of its stages says. Absence is
// held where HEAD or the index has nothing at the path.
func (r *Repo) Held(ctx context.Context, states []State) ([]bool, error) {
	held := make([]bool, len(states))
	paths := askablePaths(states)
	if len(paths) == 0 {
		return held, nil
	}
	head, err := r.committed(ctx, "HEAD", paths)
	if err != nil {
		return held, fmt.Errorf("look states up in HEAD: %w", err)
	}
	staged, err := r.staged(ctx, paths)
	if err != nil {
		return held, fmt.Errorf("look states up in the index: %w", err)
	}
	for i, state := range states {
		held[i] = askable(state.Path) && (head.hold(state) || staged.hold(state))
	}
	if r.cameBy {
		r.heldOnTheWay(ctx, states, held)
	}
	return held, nil
}

// Indexed reports of every state whether the index holds it at its path, and
// without a conflict there: that is what git compares the work tree with, and
// what a checkout of the path brings. Absence is held where the index has
// nothing at the path.
func (r *Repo) Indexed(ctx context.Context, states []State) ([]bool, error) {
	indexed := make([]bool, len(states))
	paths := askablePaths(states)
	if len(paths) == 0 {
		return indexed, nil
	}
	staged, err := r.staged(ctx, paths)
	if err != nil {
		return indexed, fmt.Errorf("look states up in the index: %w", err)
	}
	conflict := func(r record) bool { return r.unmerged }
	for i, state := range states {
		indexed[i] = askable(state.Path) && staged.hold(state) && !slices.ContainsFunc(staged[state.Path], conflict)
	}
	return indexed, nil
}

// committed returns what a commit records at the paths. A HEAD without a
// commit records nothing.
func (r *Repo) committed(ctx context.Context, commit string, paths []string) (records, error) {
	found := recordsAt(paths)
	out, err := r.ask(ctx, nil, append([]string{"ls-tree", "-r", "-t", "-z", "--full-tree", commit, "--"}, scopes(paths)...)...)
	var refused *Error
	if commit == "HEAD" && errors.As(err, &refused) && r.unborn(ctx) {
		return found, nil
	}
	if err != nil {
		return nil, err
	}
	// mode, type, id; tab; path.
	return found, found.read(out, 2)
}

// staged returns what the index records at the paths, in any stage.
func (r *Repo) staged(ctx context.Context, paths []string) (records, error) {
	found := recordsAt(paths)
	out, err := r.ask(ctx, nil, append([]string{"ls-files", "-s", "-z", "--full-name", "--"}, scopes(paths)...)...)
	if err != nil {
		return nil, err
	}
	// mode, id, stage; tab; path.
	return found, found.read(out, 1)
}

// record is what git records at a path.
type record struct {
	mode uint32
	oid  string
	// unmerged is set for an entry of the index that is one side of a conflict.
	unmerged bool
}

// records are what git records at the paths that it was asked about. Every one
// of them is a key, though it may have nothing.
type records map[string][]record

// recordsAt returns records with nothing at the paths.
func recordsAt(paths []string) records {
	r := make(records, len(paths))
	for _, path := range paths {
		r[path] = nil
	}
	return r
}

// add adds what git records at a path, if it was asked about it.
func (r records) add(path string, found record) {
	if before, asked := r[path]; asked {
		r[path] = append(before, found)
	}
}

// errListing is returned for a listing that is not what git documents.
var errListing = errors.New("git's listing is not understood")

// read adds a listing whose entries are ended by a NUL: mode and two more
// words, the one numbered idWord the object id, then a tab and the path.
func (r records) read(listing []byte, idWord int) error {
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(listing), "\x00"), "\x00") {
		if entry == "" {
			continue
		}
		head, path, found := strings.Cut(entry, "\t")
		fields := strings.Split(head, " ")
		if !found || len(fields) != 3 {
			return errListing
		}
		mode, err := parseMode(fields[0])
		if err != nil {
			return err
		}
		const stage = 2 // the word behind the id in a listing of the index
		r.add(path, record{mode: mode, oid: fields[idWord], unmerged: idWord < stage && fields[stage] != "0"})
	}
	return nil
}

// parseMode reads a mode as git prints it.
func parseMode(s string) (uint32, error) {
	mode, err := strconv.ParseUint(s, 8, 32)
	if err != nil {
		return 0, errListing
	}
	return uint32(mode), nil
}

// hold reports whether one of the records is the state.
func (r records) hold(state State) bool {
	if state.Blob == "" {
		return len(r[state.Path]) == 0
	}
	return slices.ContainsFunc(r[state.Path], state.is)
}

// is reports whether a record says the same as a state that is not absence.
func (s State) is(r record) bool {
	return (r.oid == s.Blob || r.oid == s.Text) && (s.Mode == 0 || s.Mode == r.mode)
}

// askable reports whether git can be asked about a path: a relative one whose
// segments are all names.
func askable(path string) bool {
	if strings.IndexByte(path, 0) >= 0 {
		return false
	}
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return false
		}
	}
	return true
}

// askablePaths returns the paths of states that git can be asked about, each
// once.
func askablePaths(states []State) []string {
	var paths []string
	for _, state := range states {
		if askable(state.Path) {
			paths = append(paths, state.Path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// maxScopes is how many paths a question is limited to. git compares every
// entry of every tree with each of them, so that thousands would take it
// minutes.
const maxScopes = 32

// scopes returns at most maxScopes paths that the given ones are or lie below,
// the deepest given up first. None means everything.
func scopes(paths []string) []string {
	covering := slices.Clone(paths)
	for len(covering) > maxScopes {
		deepest := 0
		for _, path := range covering {
			deepest = max(deepest, strings.Count(path, "/"))
		}
		if deepest == 0 {
			return nil
		}
		for i, path := range covering {
			if strings.Count(path, "/") == deepest {
				covering[i] = path[:strings.LastIndexByte(path, '/')]
			}
		}
		slices.Sort(covering)
		covering = slices.Compact(covering)
	}
	return covering
}
