package gitrepo

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Bounds of one search through the history.
const (
	// maxCommits is how many commits that touch the asked paths are looked at.
	maxCommits = 50_000
	// maxRoots is how many commits without parents are looked at.
	maxRoots = 100
	// commitsAtOnce is how many of them one call looks at, so that a long
	// history is not held in memory whole.
	commitsAtOnce = 2_000
)

// Reached reports of every state whether it stood at its path in a commit that
// is reachable from refs. Absence stood there where such a commit has nothing
// at the path. Where it fails, is ended by ctx or meets a bound, those that are
// true are proved, and the others count as not reached.
func (r *Repo) Reached(ctx context.Context, refs Refs, states []State) ([]bool, error) {
	s := &search{repo: r, refs: refs, states: states, reached: make([]bool, len(states))}
	for i, state := range states {
		if askable(state.Path) && (state.Blob == "" || r.IsID(state.Blob)) {
			s.open = append(s.open, i)
		}
	}
	if len(refs) == 0 {
		return s.reached, nil
	}
	// From the cheap and likely to the dear.
	for _, step := range []func(context.Context) error{s.dropUnknown, s.lookAtHead, s.lookAtRoots, s.walk} {
		if len(s.open) == 0 {
			break
		}
		if err := step(ctx); err != nil {
			return s.reached, fmt.Errorf("look states up in the history of %q: %w", r.Root, err)
		}
	}
	return s.reached, nil
}

// IsID reports whether s is an object id of the repository's format.
func (r *Repo) IsID(s string) bool {
	size := 40
	if r.ObjectFormat == SHA256 {
		size = 64
	}
	_, err := hex.DecodeString(s)
	return err == nil && len(s) == size && strings.ToLower(s) == s
}

// search is one search for states in the commits reachable from refs.
type search struct {
	repo    *Repo
	refs    Refs
	states  []State
	reached []bool
	// open are the indexes of states that are not found yet and may still be.
	open []int
}

// settle marks the open states that found holds as reached.
func (s *search) settle(found func(State) bool) {
	s.open = slices.DeleteFunc(s.open, func(i int) bool {
		s.reached[i] = found(s.states[i])
		return s.reached[i]
	})
}

// paths returns the paths of the open states, each once.
func (s *search) paths() []string {
	open := make([]State, 0, len(s.open))
	for _, i := range s.open {
		open = append(open, s.states[i])
	}
	return askablePaths(open)
}

// stdin returns the references as git reads revisions from its input.
func (s *search) stdin() []byte { return []byte(strings.Join(s.refs, "\n") + "\n") }

// dropUnknown closes the states whose content is no object of the repository:
// what somebody typed is told apart from what git wrote without any walk.
func (s *search) dropUnknown(ctx context.Context) error {
	var ask strings.Builder
	for _, i := range s.open {
		for _, id := range s.states[i].ids() {
			ask.WriteString(id + "\n")
		}
	}
	if ask.Len() == 0 {
		return nil
	}
	out, err := s.repo.ask(ctx, []byte(ask.String()), "cat-file", "--batch-check=%(objectname) %(objecttype)")
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		id, kind, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		known[id] = kind == "blob"
	}
	s.open = slices.DeleteFunc(s.open, func(i int) bool {
		ids := s.states[i].ids()
		return len(ids) > 0 && !slices.ContainsFunc(ids, func(id string) bool { return known[id] })
	})
	return nil
}

// lookAtHead looks at HEAD's commit where a reference pointed to it: after a
// switch to a branch that existed at the start nothing else is needed.
func (s *search) lookAtHead(ctx context.Context) error {
	head, err := s.repo.head(ctx)
	if err != nil {
		return err
	}
	if !slices.Contains(s.refs, head) {
		return nil
	}
	return s.lookAt(ctx, head)
}

// lookAtRoots looks for absence at the commits that a history begins with. A
// path that is in all of them can be absent only after a commit that deletes
// it, which the walk finds.
func (s *search) lookAtRoots(ctx context.Context) error {
	if !slices.ContainsFunc(s.open, func(i int) bool { return s.states[i].Blob == "" }) {
		return nil
	}
	out, err := s.repo.ask(ctx, s.stdin(), "rev-list", "--ignore-missing",
		"--max-parents=0", fmt.Sprintf("--max-count=%d", maxRoots), "--stdin")
	if err != nil {
		return err
	}
	for root := range strings.FieldsSeq(string(out)) {
		if len(s.open) == 0 {
			return nil
		}
		if err := s.lookAt(ctx, root); err != nil {
			return err
		}
	}
	return nil
}

// lookAt settles what one reachable commit holds.
func (s *search) lookAt(ctx context.Context, commit string) error {
	found, err := s.repo.committed(ctx, commit, s.paths())
	if err != nil {
		return err
	}
	s.settle(found.hold)
	return nil
}

// walk looks at all commits that change one of the paths, following every
// parent, the newest first. A state at any commit was brought about by one of
// those, or came with a root: so what they change the paths to is all there is.
func (s *search) walk(ctx context.Context) error {
	out, err := s.repo.ask(ctx, s.stdin(), append([]string{"rev-list", "--ignore-missing", "--full-history",
		fmt.Sprintf("--max-count=%d", maxCommits), "--stdin", "--"}, scopes(s.paths())...)...)
	if err != nil {
		return err
	}
	for commits := range slices.Chunk(strings.Fields(string(out)), commitsAtOnce) {
		if len(s.open) == 0 {
			return nil
		}
		brought, err := s.repo.broughtAbout(ctx, commits, s.paths())
		if err != nil {
			return err
		}
		s.settle(brought.include)
	}
	return nil
}

// changes are what commits changed paths to; absence is a record of mode 0.
type changes struct{ records }

// include reports whether a commit changed a path to the state.
func (c changes) include(state State) bool {
	return slices.ContainsFunc(c.records[state.Path], func(r record) bool {
		if state.Blob == "" {
			return r.mode == 0
		}
		return state.is(r)
	})
}

// broughtAbout returns what commits changed the paths to. Of a merge only what
// differs from all its parents counts: the rest stood at one of them.
func (r *Repo) broughtAbout(ctx context.Context, commits, paths []string) (changes, error) {
	out, err := r.ask(ctx, []byte(strings.Join(commits, "\n")+"\n"), append([]string{"diff-tree", "--stdin", "--no-commit-id",
		"-r", "-c", "--root", "-z", "--raw", "--no-abbrev", "--no-renames", "--"}, scopes(paths)...)...)
	if err != nil {
		return changes{}, err
	}
	brought := changes{recordsAt(paths)}
	return brought, brought.read(string(out))
}

// read adds what git diff-tree --raw -c -z prints: one colon for each parent,
// the parents' modes and the commit's own, the parents' ids and the commit's
// own, and letters; then the path. Each of the two is ended by a NUL.
func (c changes) read(listing string) error {
	for listing != "" {
		var head, path string
		head, listing, _ = strings.Cut(listing, "\x00")
		path, listing, _ = strings.Cut(listing, "\x00")
		words := strings.TrimLeft(head, ":")
		parents := len(head) - len(words)
		fields := strings.Split(words, " ")
		if parents == 0 || len(fields) != 2*parents+3 || path == "" {
			return errListing
		}
		mode, err := parseMode(fields[parents])
		if err != nil {
			return err
		}
		c.add(path, record{mode: mode, oid: fields[2*parents+1]})
	}
	return nil
}
