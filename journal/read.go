package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"cage/internal/physical"
	"cage/internal/proc"
	"cage/internal/record"
	"cage/internal/safefile"
	"cage/rules"
	"cage/snapshot"
)

// errNone says that the folder holds no journal: the writer was killed before
// it was one, or after it had been one.
var errNone = errors.New("no journal")

// load reads what an earlier session left in the folder; nil where that is
// nothing.
func (j *Journal) load() (*Interrupted, error) {
	left, err := j.read()
	if errors.Is(err, errNone) {
		return nil, nil
	}
	if err != nil {
		return nil, &CorruptError{Folder: j.folder, Reason: err.Error()}
	}
	return left, nil
}

func (j *Journal) read() (*Interrupted, error) {
	names, err := j.names()
	if err != nil {
		return nil, err
	}
	if !slices.Contains(names, sessionName) {
		return nil, errNone
	}
	var session sessionRecord
	if err := readPair(j.dir, sessionName, &session); err != nil {
		return nil, err
	}
	if err := j.plausible(session); err != nil {
		return nil, err
	}
	var baseline baselineRecord
	if err := readPair(j.dir, baselineName, &baseline); err != nil {
		return nil, err
	}
	left := &Interrupted{
		folder: j.folder, anchors: session.Anchors,
		Session: session.Session, Started: session.Started, Cage: session.Cage.id(),
		SameBoot: session.Host.Boot == j.host.boot, SamePIDs: session.Host.PIDs == j.host.pids,
		Store: snapshot.NewStore(),
	}
	life, generation, err := j.readLife(names, left.SameBoot)
	if err != nil {
		return nil, err
	}
	left.life, left.generation = life, generation
	left.LastSign, left.Recovering = life.LastSign, life.Recovering
	left.Leaves, left.Ended = life.Leaves, life.Ended
	for _, p := range life.Processes {
		left.Processes = append(left.Processes, p.id())
	}
	if err := readPack(j.dir, baseline.Packed, left.Store); err != nil {
		return nil, err
	}
	return left, left.take(baseline, life)
}

// strangerError says what is in the folder and no part of a journal.
type strangerError struct {
	name string
	err  error
}

func (e *strangerError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("%q does not belong there", e.name)
	}
	return e.name + " " + e.err.Error()
}

func (e *strangerError) Unwrap() error { return e.err }

// names lists the folder. Everything in it must be a file of this user's with
// a name that a journal gives. What was not yet given its final name is left
// out: nobody reads it.
func (j *Journal) names() ([]string, error) {
	entries, err := fs.ReadDir(j.dir.FS(), ".")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		name := entry.Name()
		if !ours(name) {
			return nil, &strangerError{name: name}
		}
		if strings.HasSuffix(name, tempSuffix) {
			continue
		}
		info, err := j.dir.Lstat(name)
		if err != nil {
			return nil, err
		}
		if err := privateFile(info); err != nil {
			return nil, &strangerError{name, err}
		}
		names = append(names, name)
	}
	return names, nil
}

// plausible checks what a session says of itself.
func (j *Journal) plausible(s sessionRecord) error {
	switch {
	case s.Version != version:
		return fmt.Errorf("its version is %d, this program reads %d", s.Version, version)
	case !validSession(s.Session):
		return errors.New("it does not name its session")
	case s.Host.Machine != j.host.machine:
		return errors.New("it was written on another machine")
	case s.Folder != j.inode.Ino:
		return errors.New("it was copied here from another folder")
	case s.Cage.PID <= 0:
		return errors.New("it does not name its process")
	}
	return nil
}

func validSession(id string) bool {
	return len(id) == 16 && strings.Trim(id, "0123456789abcdef") == ""
}

// readLife reads the newest life record and returns its number too. In the same
// boot all that are there must be whole. After a power cut the newest may be
// torn, since it was not forced to disk; then the one before it counts.
func (j *Journal) readLife(names []string, sameBoot bool) (life lifeRecord, generation int, err error) {
	var generations []int
	for _, name := range names {
		if n, ok := generationOf(name); ok {
			generations = append(generations, n)
		}
	}
	slices.Sort(generations)
	err = errors.New("it does not say when it last lived")
	for _, n := range generations {
		var read lifeRecord
		if broken := readPair(j.dir, lifeName(n), &read); broken == nil {
			life, generation = read, n
		} else if err = broken; sameBoot {
			return lifeRecord{}, 0, err
		}
	}
	if generation == 0 {
		return lifeRecord{}, 0, err
	}
	return life, generation, nil
}

// packLimit bounds how much content a journal can make a reader keep: 16 GiB is
// more than any baseline.
const packLimit = 16 << 30

// readPack reads the content and checks every piece against its address.
func readPack(dir *os.Root, packed []packedRecord, store *snapshot.Store) error {
	f, err := openFile(dir, packName)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	left := info.Size()
	for _, piece := range packed {
		if piece.Size < 0 || piece.Size > left || piece.Size > packLimit {
			return fmt.Errorf("%s is too short", packName)
		}
		left -= piece.Size
		content := make([]byte, piece.Size)
		if _, err := io.ReadFull(f, content); err != nil {
			return fmt.Errorf("%s: %w", packName, err)
		}
		if store.Put(content) != piece.ID {
			return fmt.Errorf("%s does not hold what %s says", packName, baselineName)
		}
	}
	if left != 0 {
		return fmt.Errorf("%s is too long", packName)
	}
	return nil
}

// take reads the records into entries, which Build checks against the rules.
func (i *Interrupted) take(b baselineRecord, life lifeRecord) error {
	var err error
	if i.rules, err = b.Rules.rules(); err != nil {
		return err
	}
	i.entries = make(map[rules.Path]*snapshot.Entry, len(b.Entries))
	for _, written := range b.Entries {
		e, err := written.entry(i.Store)
		if err != nil {
			return err
		}
		if _, twice := i.entries[e.Path]; twice {
			return fmt.Errorf("%q is in it twice", e.Path.Rel)
		}
		i.entries[e.Path] = e
	}
	for _, amended := range life.Amended {
		i.Store.Put(amended.Content)
		e, err := amended.Entry.entry(i.Store)
		if err != nil {
			return err
		}
		if _, known := i.entries[e.Path]; !known {
			return fmt.Errorf("%q was amended and is not in it", e.Path.Rel)
		}
		i.entries[e.Path] = e
	}
	i.directories = make(map[rules.Path]safefile.Info, len(b.Directories))
	for _, written := range b.Directories {
		p, err := written.Path.Read()
		if err != nil {
			return err
		}
		i.directories[p] = written.Info.info()
	}
	return nil
}

func readPaths(written []record.Path) ([]rules.Path, error) {
	var paths []rules.Path
	for _, one := range written {
		p, err := one.Read()
		if err != nil {
			return nil, err
		}
		paths = append(paths, p)
	}
	return paths, nil
}

func (r entryRecord) entry(store *snapshot.Store) (*snapshot.Entry, error) {
	p, err := r.Path.Read()
	if err != nil {
		return nil, err
	}
	e := &snapshot.Entry{
		Path: p, Kept: r.Kept, MetadataOnly: r.MetadataOnly,
		State: snapshot.State{Info: r.Info.info(), Attrs: r.Attrs, Link: string(r.Link), Content: r.Content},
	}
	if p.Rel == "" || r.Info.Kind == safefile.None || r.Info.Kind > safefile.Device || r.Info.Perm > 0o7777 || len(r.Digest) != len(e.State.Digest) {
		return nil, fmt.Errorf("the entry of %q makes no sense", p.Rel)
	}
	copy(e.State.Digest[:], r.Digest)
	if e.Kept {
		content, ok := store.Get(r.Content)
		if !ok || r.Info.Kind != safefile.Regular || int64(len(content)) != r.Info.Size {
			return nil, fmt.Errorf("the content of %q is missing", p.Rel)
		}
	}
	return e, nil
}

func (r rulesRecord) rules() (recorded, error) {
	out := recorded{inputs: rules.Inputs{
		Git:    rules.Git{DotGitFile: r.DotGitFile},
		Config: r.Config.file(), ManifestYAML: r.ManifestYAML.file(), ManifestJSON: r.ManifestJSON.file(),
	}}
	if r.Elsewhere {
		out.inputs.Elsewhere = []rules.Anchor{rules.CommonDir}
	}
	for _, override := range r.Overrides {
		out.inputs.Overrides = append(out.inputs.Overrides, string(override))
	}
	var errs [3]error
	out.inputs.Git.Includes, errs[0] = readPaths(r.Includes)
	out.inputs.Exempt, errs[1] = readPaths(r.Exempt)
	out.joined, errs[2] = readPaths(r.Joined)
	if r.Hooks != nil {
		hooks, err := r.Hooks.Read()
		if err != nil {
			return out, err
		}
		out.inputs.Git.Hooks = &hooks
	}
	return out, errors.Join(errs[:]...)
}

// recorded is what the plan of a session was made of.
type recorded struct {
	inputs rules.Inputs
	joined []rules.Path
}

// Interrupted is what the journal of a session says that did not end.
type Interrupted struct {
	Session string
	Started time.Time
	// Cage is the process that ran it.
	Cage proc.ID
	// SameBoot says that the machine was not started anew since, and SamePIDs
	// that process numbers mean the same here as there.
	SameBoot, SamePIDs bool
	// LastSign is when the session last refreshed its journal.
	LastSign time.Time
	// Recovering is when a recovery of it that was not finished began to put files
	// back; zero where none did.
	Recovering time.Time
	// Processes are those it had then.
	Processes []proc.ID
	// Leaves says that the session's run has ended and nobody is to end what is
	// left of it.
	Leaves bool
	// Ended says that the session ended in order, at the last sign, and left the
	// journal for what it holds.
	Ended bool
	Store *snapshot.Store

	folder      string
	anchors     map[string]uint64
	life        lifeRecord
	generation  int
	rules       recorded
	entries     map[rules.Path]*snapshot.Entry
	directories map[rules.Path]safefile.Info
}

// Build makes the session's plan and baseline again, for the directories as
// they stand now, without those of anchors that the layout does not have. What
// another session guards now is left to it. An entry that no rule of the session
// matches is refused: a journal can only name what its session protected. One
// that is said to have joined is left out where the journal's links do not say
// by what rule, and refused if it is not as it was: nobody may take it for whole.
func (i *Interrupted) Build(layout rules.Layout, elsewhere []rules.Anchor) (*rules.Plan, *snapshot.Manifest, error) {
	if err := i.stands(layout); err != nil {
		return nil, nil, err
	}
	in := i.rules.inputs
	in.Layout = layout
	in.Elsewhere = append(slices.Clone(in.Elsewhere), elsewhere...)
	plan, err := rules.New(in)
	if err != nil {
		return nil, nil, i.corrupt("its rules are not valid: %v", err)
	}
	var paths []rules.Path
	for p := range i.entries {
		if layout.Dir(p.Anchor) != "" {
			paths = append(paths, p)
		}
	}
	slices.SortFunc(paths, rules.Path.Compare)
	if plan, err = plan.Settle(paths); err != nil {
		return nil, nil, i.corrupt("its rules are not valid: %v", err)
	}
	linked := i.linked(layout, plan, paths)
	plan = plan.With(linked)
	leads := func(p rules.Path) bool {
		return slices.ContainsFunc(linked, func(to rules.Joined) bool { return to.Path == p })
	}
	manifest := snapshot.NewManifest(i.directories)
	var unlinked []rules.Path
	for _, p := range paths {
		verdict, ok := plan.Classify(p)
		switch {
		case verdict.Mode != rules.Revert && i.joins(p) && !leads(p):
			unlinked = append(unlinked, p)
			continue
		case !ok:
			return nil, nil, i.corrupt("no rule of its session matches %q", p.Rel)
		}
		e := *i.entries[p]
		e.Verdict = verdict
		manifest.Add(&e)
	}
	if err := i.unchanged(layout, unlinked); err != nil {
		return nil, nil, err
	}
	return plan, manifest, nil
}

// Recorded returns the session's baseline as it was written, without verdicts.
func (i *Interrupted) Recorded() *snapshot.Manifest {
	manifest := snapshot.NewManifest(i.directories)
	for _, p := range slices.SortedFunc(maps.Keys(i.entries), rules.Path.Compare) {
		manifest.Add(i.entries[p])
	}
	return manifest
}

// unchanged refuses entries that are not as they were. Without the session's
// hooks folder nothing is known yet of those that its links lead to.
func (i *Interrupted) unchanged(layout rules.Layout, paths []rules.Path) error {
	if len(paths) == 0 || i.Has(rules.HooksDir) && !i.HasHooks(layout) {
		return nil
	}
	trees, err := snapshot.OpenTrees(layout)
	if err != nil {
		return err
	}
	defer trees.Close()
	look := snapshot.NewLooker(trees, i.Store, 0)
	defer look.Forget()
	for _, p := range paths {
		if !look.Compare(i.entries[p]).Same {
			return i.corrupt("%q has changed, and no link in it leads there", p.Rel)
		}
	}
	return nil
}

// stands refuses other directories than the session's. The hooks folder may be
// another one or none: then what was in it is left out.
func (i *Interrupted) stands(layout rules.Layout) error {
	layout.HooksDir = ""
	is, err := anchorInodes(layout)
	if err != nil {
		return fmt.Errorf("look at the directories of the session: %w", err)
	}
	was := maps.Clone(i.anchors)
	delete(was, record.AnchorName(rules.HooksDir))
	if !maps.Equal(is, was) {
		return i.corrupt("it was written for other directories than those that git names now: %s", layout.Root)
	}
	return nil
}

// HasHooks reports whether a layout's hooks folder is the one that the session
// protected files in.
func (i *Interrupted) HasHooks(layout rules.Layout) bool {
	if layout.HooksDir == "" {
		return false
	}
	is, err := anchorInodes(rules.Layout{HooksDir: layout.HooksDir})
	name := record.AnchorName(rules.HooksDir)
	return err == nil && is[name] == i.anchors[name]
}

// Has reports whether the session protected anything relative to an anchor.
func (i *Interrupted) Has(anchor rules.Anchor) bool {
	for p := range i.entries {
		if p.Anchor == anchor {
			return true
		}
	}
	return false
}

// GuardedElsewhere reports whether another session guarded the files that the
// work trees share.
func (i *Interrupted) GuardedElsewhere() bool { return len(i.rules.inputs.Elsewhere) > 0 }

func (i *Interrupted) corrupt(format string, args ...any) error {
	return &CorruptError{Folder: i.folder, Reason: fmt.Sprintf(format, args...)}
}

// joins reports whether the session said of a path that it joined its rules.
func (i *Interrupted) joins(p rules.Path) bool { return slices.Contains(i.rules.joined, p) }

// linked returns those of the paths that joined the rules, as far as the
// journal's own links lead to them, or lead from them to what a rule names.
func (i *Interrupted) linked(layout rules.Layout, plan *rules.Plan, paths []rules.Path) []rules.Joined {
	var list []rules.Joined
	join := func(p rules.Path, verdict rules.Verdict) {
		if i.joins(p) {
			list = append(list, rules.Joined{Path: p, Verdict: verdict})
		}
	}
	follow := func(place rules.Path, verdict rules.Verdict) {
		end, links, err := physical.WayBy(layout.Abs(place), func(name string) (string, error) { return i.readlink(layout.Locate(name)) })
		if err != nil {
			return // leads nowhere
		}
		for _, step := range append(links, end) {
			join(layout.Locate(step), verdict)
		}
	}
	for _, p := range paths {
		if _, err := i.readlink(p); err != nil {
			continue
		}
		if verdict, ok := plan.Classify(p); ok {
			follow(p, verdict)
		}
		if verdict, ok := plan.Leading(p); ok {
			join(p, verdict)
			for _, t := range plan.Targets() {
				if t.Path.Within(p) {
					follow(t.Path, t.Verdict)
				}
			}
		}
	}
	return list
}

// readlink says where a link led, and of everything else that it is none, like
// readlink(2).
func (i *Interrupted) readlink(p rules.Path) (string, error) {
	if e, known := i.entries[p]; known && e.State.Kind == safefile.Symlink {
		return e.State.Link, nil
	}
	return "", syscall.EINVAL
}
