package review

import (
	"fmt"
	"slices"
	"strings"

	"cage/internal/kept"
	"cage/internal/safefile"
	"cage/restore"
	"cage/rules"
	"cage/snapshot"
)

// Error says why a version is not shown or put back. Nothing was changed.
type Error struct {
	// Changed says that something else stands at the path than the session
	// protected; else the version itself is the reason.
	Changed bool
	Reason  string
	// Hint says what to do.
	Hint  string
	Cause error
}

func (e *Error) Error() string {
	if e.Cause != nil {
		return e.Reason + ": " + e.Cause.Error()
	}
	return e.Reason
}

func (e *Error) Unwrap() error { return e.Cause }

// Accepted says what Accept did.
type Accepted struct {
	// Already says that the version stood there, and nothing was done.
	Already bool
	// Kept are the places of what stood there instead: absolute paths.
	Kept []string
	// Late says that this was not the file that had been looked at: somebody
	// wrote it in the same moment.
	Late bool
	// Unset names what could not be given to the file.
	Unset []safefile.UnsetAttr
}

// Accept puts a version back by the exchange that restores use, with the mode,
// the owner and the attributes that it had, if what the session protected still
// stands there. The caller holds the lock of the root, whose plan it gives. An
// *Error says that nothing was changed.
func (d *Desk) Accept(plan *rules.Plan, s *Session, v *Version) (Accepted, error) {
	verdict, err := d.acceptable(plan, s, v)
	if err != nil {
		return Accepted{}, err
	}
	c, err := d.read(s, v)
	if err != nil {
		return Accepted{}, err
	}
	now, _, err := d.see(v.Path)
	if err != nil {
		return Accepted{}, &Error{Changed: true, Reason: "it cannot be compared", Cause: err, Hint: d.byHand(s, v)}
	}
	if same(now, v.state()) {
		return Accepted{Already: true}, nil
	}
	if how := changed(v.Before, now); how != "" {
		return Accepted{}, &Error{Changed: true, Reason: "it is not what the session protected any more: " + how, Hint: d.byHand(s, v)}
	}
	entry := &snapshot.Entry{Path: v.Path, Verdict: verdict, State: v.state(), Kept: v.Info.Kind == safefile.Regular}
	entry.State.Attrs, entry.State.Link = v.Attrs, c.link
	// Where nothing can be exchanged, the file that stands there is written.
	entry.State.Inode, entry.State.Nlink = now.Inode, now.Nlink
	return d.put(plan, s, v, entry, c.data)
}

// acceptable refuses what cannot be put back whatever stands there.
func (d *Desk) acceptable(plan *rules.Plan, s *Session, v *Version) (rules.Verdict, error) {
	verdict, protected := plan.ClassifyRecorded(v.Path)
	var why string
	switch {
	case !v.Known():
		why = "nobody wrote down where it stood"
	case v.Path.Anchor == rules.HooksDir:
		why = "it belongs outside the root and its git directories"
	case verdict.Elsewhere:
		why = "a session in another work tree guards its path"
	case !protected:
		why = "no rule protects its path any more"
	case v.Before.Kind != safefile.None && v.Before.Kind != safefile.Regular && v.Before.Kind != safefile.Symlink:
		why = "it stood in the place of a " + v.Before.Kind.String()
	case v.Before.Kind != safefile.None && v.Before.Digest == (snapshot.Digest{}):
		why = "nobody read what it stood in the place of"
	default:
		return verdict, nil
	}
	return verdict, d.useless(s, v, why, nil)
}

func (v *Version) state() snapshot.State { return snapshot.State{Info: v.Info, Digest: v.Digest} }

// same reports whether two states are of one kind, content, mode and owner.
func same(a, b snapshot.State) bool {
	return a.Kind == b.Kind && a.Digest == b.Digest && sameMode(a, b) && sameOwner(a, b)
}

// sameMode reports whether two of one kind have one mode; a link has none.
func sameMode(a, b snapshot.State) bool { return a.Perm == b.Perm || a.Kind == safefile.Symlink }

func sameOwner(a, b snapshot.State) bool { return a.UID == b.UID && a.GID == b.GID }

// changed says how what stands at a path differs from what stood there before;
// empty where it does not.
func changed(before, now snapshot.State) string {
	switch {
	case before.Kind == safefile.None && now.Kind == safefile.None:
		return ""
	case now.Kind == safefile.None:
		return "nothing stands there"
	case before.Kind == safefile.None:
		return "a " + now.Kind.String() + " stands there"
	case now.Kind != before.Kind:
		return "it is a " + now.Kind.String() + " now"
	}
	var how []string
	if now.Digest != before.Digest {
		how = append(how, "its content is another")
	}
	if !sameMode(now, before) {
		how = append(how, fmt.Sprintf("its mode is %04o and was %04o", now.Perm, before.Perm))
	}
	if !sameOwner(now, before) {
		how = append(how, "its owner is another")
	}
	return strings.Join(how, "; ")
}

// put exchanges an entry for what stands there, and keeps that beside the
// version.
func (d *Desk) put(plan *rules.Plan, s *Session, v *Version, entry *snapshot.Entry, data []byte) (Accepted, error) {
	store := snapshot.NewStore()
	entry.State.Content = store.Put(data)
	keeper := kept.Open(kept.Options{
		GitDir: kept.GitDirOf(d.Trees), Store: d.store(s, v), Spare: d.Spare(s.ID), Session: s.ID, DigestLimit: most,
	})
	restorer := restore.New(d.Trees, plan, snapshot.NewManifest(nil), store, keeper, most)
	result := restorer.Put(entry, v.Before.Kind == safefile.None)
	restorer.Close()
	for _, displaced := range result.Displaced {
		keeper.Keep(d.version(displaced))
	}
	keeper.Finish()
	accepted := Accepted{Unset: result.Unset}
	for _, sealed := range keeper.Take() {
		if sealed.Place != "" && !slices.Contains(accepted.Kept, sealed.Place) {
			accepted.Kept = append(accepted.Kept, sealed.Place)
		}
		accepted.Late = accepted.Late || sealed.Digest != v.Before.Digest
	}
	return accepted, result.Err
}

// version is what the keeper takes for something displaced.
func (d *Desk) version(displaced restore.Displaced) kept.Version {
	v := kept.Version{
		Path: displaced.Path, Info: displaced.Info, Quarantined: displaced.Quarantined,
		File: displaced.File, Content: displaced.Content,
	}
	if displaced.Beside != (rules.Path{}) {
		v.Beside = d.Trees.Layout().Abs(displaced.Beside)
	}
	return v
}
