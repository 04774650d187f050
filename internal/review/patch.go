package review

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"cage/internal/gitrepo"
	"cage/internal/program"
	"cage/internal/safefile"
	"cage/rules"
	"cage/snapshot"
)

// The trees that are compared, called as git calls the two sides.
const (
	oldTree = "a"
	newTree = "b"
)

// Note is what is to be said of a version beside the patch.
type Note struct {
	Version Version
	Text    string
}

// Patch returns what versions of a session would change in what stands at their
// paths now, as git spells it. Where that is not what the session protected, or
// git has no words for what a version would change, a note says so. Both sides
// are copied for it into a folder below temp that nobody else can enter; it is
// removed again.
func (d *Desk) Patch(ctx context.Context, run program.Runner, git, temp string, s *Session, versions []Version) (patch []byte, notes []Note, err error) {
	work, err := os.MkdirTemp(temp, "gantry-cage-review-*") // mode 0700
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(work)
	root, err := os.OpenRoot(work)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	if err := errors.Join(root.Mkdir(oldTree, ownerOnly), root.Mkdir(newTree, ownerOnly)); err != nil {
		return nil, nil, err
	}
	for _, v := range versions {
		if text := d.lay(root, s, &v); text != "" {
			notes = append(notes, Note{v, text})
		}
	}
	patch, err = gitrepo.DiffTrees(ctx, run, git, work, oldTree, newTree)
	return patch, notes, err
}

const (
	ownerOnly     = 0o700
	ownerExecutes = 0o100
)

// lay puts both sides of a version into the trees, and returns what is to be
// said of it.
func (d *Desk) lay(root *os.Root, s *Session, v *Version) string {
	c, err := d.read(s, v)
	var why *Error
	if errors.As(err, &why) {
		return "it is not shown: " + why.Error() + "; " + why.Hint
	}
	now, stands, err := d.see(v.Path)
	if err != nil {
		return "it is not shown, because what stands there now cannot be read: " + err.Error()
	}
	name := treeName(s.Layout, v.Path)
	if now.Kind == safefile.Regular || now.Kind == safefile.Symlink {
		err = lay(root, path.Join(oldTree, name), now.Info, stands)
	}
	if err := errors.Join(err, lay(root, path.Join(newTree, name), v.Info, c)); err != nil {
		return "it is not shown beside the others: " + err.Error()
	}
	var notes []string
	if how := changed(v.Before, now); how != "" && !same(now, v.state()) {
		notes = append(notes, "this is not what the session protected any more: "+how)
	}
	if sets := unshown(now, v); sets != "" {
		notes = append(notes, "the patch does not show what comes with it: "+sets)
	}
	return strings.Join(notes, "; ")
}

// unshown says what a version would set of which git tells nothing: of a mode it
// knows whether the owner executes, of the rest nothing.
func unshown(now snapshot.State, v *Version) string {
	if now.Kind == safefile.None {
		now = snapshot.State{Info: safefile.Info{Kind: v.Info.Kind, Perm: plain(v.Info.Perm), UID: uint32(os.Geteuid()), GID: v.Info.GID}}
	}
	var sets []string
	shown := now.Perm == plain(now.Perm) && v.Info.Perm == plain(v.Info.Perm)
	if !shown && !sameMode(now, v.state()) {
		sets = append(sets, fmt.Sprintf("mode %04o", v.Info.Perm))
	}
	if !sameOwner(now, v.state()) {
		sets = append(sets, fmt.Sprintf("owner %d:%d", v.Info.UID, v.Info.GID))
	}
	for _, attr := range v.Attrs {
		sets = append(sets, "the attribute "+attr.Name)
	}
	return strings.Join(sets, ", ")
}

// plain is the mode that git gives a file of which it knows no more than whether
// the owner executes it.
func plain(perm uint32) uint32 {
	if perm&ownerExecutes != 0 {
		return 0o755
	}
	return 0o644
}

// treeName is the name of a path in the trees: as reports spell it, but within
// them.
func treeName(layout rules.Layout, p rules.Path) string {
	name := layout.Display(p)
	if !strings.HasPrefix(name, "../") && !path.IsAbs(name) {
		return name
	}
	switch p.Anchor {
	case rules.CommonDir:
		return path.Join("git-common-dir", p.Rel)
	case rules.GitDir:
		return path.Join("git-dir", p.Rel)
	default:
		return path.Join("hooks", p.Rel)
	}
}

// lay writes a file or a link. It fails where another version's name is in the
// way.
func lay(root *os.Root, name string, info safefile.Info, c content) error {
	if err := root.MkdirAll(path.Dir(name), ownerOnly); err != nil {
		return err
	}
	if info.Kind == safefile.Symlink {
		return root.Symlink(c.link, name)
	}
	const ownerReads = 0o400
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, ownerReads)
	if err != nil {
		return err
	}
	_, err = file.Write(c.data)
	return errors.Join(err, file.Chmod(fs.FileMode(ownerReads|info.Perm&ownerExecutes)), file.Close())
}
