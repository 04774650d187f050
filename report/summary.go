package report

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"cage/rules"
)

const (
	// labelWidth is the length of the longest outcome, kindWidth of the longest
	// kind; pathWidth bounds what one long path does to the columns.
	labelWidth = len(OutcomeRevertFailed)
	kindWidth  = len(Modified)
	pathWidth  = 44
	// A summary is read, not searched: the documents have the rest.
	maxRows   = 20
	maxPlaces = 3
)

// Summary returns what a person reads at the end of a session, one line for one
// without events. Every line of it ends with a newline; with colour it contains
// ANSI colours and no other control byte whatever the names hold.
func Summary(d Document, colour bool) string {
	s := summary{d: &d, paint: paint(colour)}
	s.headline()
	s.halt()
	s.labelled("not started", d.RuntimeError)
	s.overrides()
	s.rows()
	s.gap()
	s.facts()
	s.places()
	s.ending()
	s.hints()
	return s.b.String()
}

// RecoverySummary returns what a person reads who decided about an interrupted
// session.
func RecoverySummary(r Recovery, colour bool) string {
	s := summary{d: &Document{Changes: r.Changes}, paint: paint(colour), recovery: true}
	s.b.WriteString(r.Line(false))
	s.rows()
	s.gap()
	s.places()
	// Where no place has to be named, the gap sets the rows apart from nothing.
	return strings.TrimRight(s.b.String(), "\n") + "\n"
}

type summary struct {
	d     *Document
	paint paint
	b     strings.Builder
	// recovery: the rows are those of an interrupted session.
	recovery bool
}

func (s *summary) headline() {
	style := green
	switch {
	case s.d.Status == Reverted:
		style = yellow
	case s.d.Status != OK:
		style = red
	}
	text := s.lead() + s.files()
	if s.d.Status == OK {
		text += s.quietEnd()
	}
	s.b.WriteString("cage: " + s.paint.in(bold+style, text) + "\n")
}

// quietEnd is the end of a session in which nothing has to be told.
func (s *summary) quietEnd() string {
	text := fmt.Sprintf(", exit %d", s.d.ExitCode)
	if s.d.CommandSignal != nil {
		text += " (" + plain(*s.d.CommandSignal) + ")"
	}
	return text
}

// lead is what a status adds to the state of the files.
func (s *summary) lead() string {
	switch {
	case s.d.Status == Halted:
		return "HALTED, "
	case len(s.d.Lifetime.Survivors) > 0:
		return count(len(s.d.Lifetime.Survivors), "process", "processes") + " STILL ALIVE, "
	case s.d.Lifetime.Unresolved():
		return "processes MAY STILL BE ALIVE, "
	case s.d.Status == NotStarted:
		return "the command did not start, "
	default:
		return ""
	}
}

// files says how the protected files stand, as far as they could be seen.
func (s *summary) files() string {
	if s.has(Change.unseen) {
		return s.seenFiles() + ", NOT EVERYTHING COULD BE LOOKED AT"
	}
	return s.seenFiles()
}

func (s *summary) seenFiles() string {
	var violations, back, changes int
	for _, c := range s.d.Changes {
		if c.unseen() {
			continue
		}
		changes++
		if c.Outcome.Violation() {
			violations++
		}
		if c.Outcome.Back() {
			back++
		}
	}
	switch {
	case violations == 0 && changes > 0:
		return "no violation, " + count(changes, "change", "changes") + " kept"
	case violations == 0 && s.d.ProtectedFiles == 0:
		return "nothing to protect here"
	case violations == 0:
		return count(s.d.ProtectedFiles, "protected file", "protected files") + " unchanged"
	case violations == back && back == 1:
		return "1 protected file changed, it is back"
	case violations == back:
		return fmt.Sprintf("%d protected files changed, all are back", back)
	case s.d.RevertMode == ModeReportOnly:
		return count(violations, "protected file", "protected files") + " changed, nothing put back (--report-only)"
	case violations == 1:
		return "1 protected file changed and NOT BACK"
	default:
		return fmt.Sprintf("%d of %d changed protected files NOT BACK", violations-back, violations)
	}
}

func (s *summary) halt() {
	h := s.d.Watch.Halt
	if h == nil {
		return
	}
	ended := "; the command was ended"
	if s.d.Lifetime.Watched != nil {
		ended = "; the program was ended"
	}
	where := Quote(h.Bytes())
	var why string
	switch h.Scope {
	case HaltPath:
		why = fmt.Sprintf("%s (%s) was changed again and again: %d rounds, limit %d", where, h.Rule, h.LiveRestores, h.Limit)
	case HaltRule:
		why = fmt.Sprintf("files under %s were changed again and again: %d rounds, limit %d, the last at %s", h.Rule, h.LiveRestores, h.Limit, where)
	case HaltBounds:
		why = fmt.Sprintf("%d protected paths were changed, limit %d, the last %s (%s)", h.LiveRestores, h.Limit, where, h.Rule)
	default:
		why = fmt.Sprintf("another directory or mount stands in the place of %s (%s)", where, h.Rule)
	}
	s.line(s.paint.in(bold+red, label("HALTED")), why+ended)
}

func (s *summary) overrides() {
	if len(s.d.Overrides) > 0 {
		s.b.WriteString("  " + s.paint.in(yellow, overrideText(s.d.Overrides)) + "\n")
	}
}

func (s *summary) rows() {
	rows := byUrgency(s.d.Changes)
	shown := rows[:min(len(rows), maxRows)]
	width := 0
	for _, c := range shown {
		width = max(width, runes(Quote(c.Bytes())))
	}
	width = min(width, pathWidth)
	for _, c := range shown {
		s.row(c, width)
	}
	if rest := len(rows) - len(shown); rest > 0 {
		s.line(label(""), fmt.Sprintf("and %d more, see --json or --report-file", rest))
	}
}

// byUrgency orders rows by what needs a person first, then by path.
func byUrgency(changes []Change) []Change {
	urgency := func(c Change) int {
		switch {
		case !c.Outcome.Violation():
			return 2
		case c.Outcome.Back():
			return 1
		default:
			return 0
		}
	}
	rows := slices.Clone(changes)
	slices.SortStableFunc(rows, func(a, b Change) int {
		return cmp.Or(cmp.Compare(urgency(a), urgency(b)), strings.Compare(a.Bytes(), b.Bytes()))
	})
	return rows
}

func (s *summary) row(c Change, width int) {
	text := pad(string(c.Kind), kindWidth) + "  " + pad(Quote(c.Bytes()), width) + "  (" + c.why() + ")"
	if c.Restores > 1 {
		text += fmt.Sprintf("  restored %d times", c.Restores)
	}
	if c.ErrorCode != nil {
		text += "  " + s.paint.in(red, plain(*c.ErrorCode))
	}
	for _, a := range c.AttributeErrors {
		text += "  " + plain(a.Attribute) + " not set back: " + plain(a.ErrorCode)
	}
	s.line(s.paint.in(outcomeStyle(c.Outcome), label(string(c.Outcome))), text)
}

// why names the rule of a row and what softened it.
func (c Change) why() string {
	why := string(c.Rule)
	if c.Overridden {
		why += ", overridden"
	}
	switch c.Note {
	case NoteGitBookkeeping:
		why += ", git's bookkeeping"
	case NoteBranchSwitch:
		why += ", branch switch"
	case NoteTargetOutside:
		why += ", outside the root"
	}
	return why
}

func outcomeStyle(o Outcome) string {
	switch {
	case !o.Violation():
		return dim
	case o.Back():
		return green
	default:
		return red
	}
}

// gap sets the rows apart from what follows them, where that is long.
func (s *summary) gap() {
	if s.d.Status != OK && len(s.d.Changes) > 0 {
		s.b.WriteByte('\n')
	}
}

// overCap tells a file of which no copy was kept from what has no content to
// copy: the file was digested.
func overCap(c Change) bool {
	return c.Outcome == OutcomeDetectOnly && c.Note != NoteTargetOutside && c.SHA256Before != nil
}

func noFile(c Change) bool {
	return c.Outcome == OutcomeDetectOnly && c.Note != NoteTargetOutside && c.SHA256Before == nil
}

func (c Change) targetOutside() bool {
	return c.Outcome == OutcomeDetectOnly && c.Note == NoteTargetOutside
}

func (c Change) failed() bool {
	return c.Outcome == OutcomeRevertFailed && c.Rule != Ground && c.Rule != Unseen
}

func (c Change) ground() bool { return c.Rule == Ground }

func (c Change) unseen() bool { return c.Rule == Unseen }

func (s *summary) has(is func(Change) bool) bool {
	return slices.ContainsFunc(s.d.Changes, is)
}

// facts are the figures of the session, each only where it has one.
func (s *summary) facts() {
	w := s.d.Watch
	if w.LiveRestores > 0 {
		s.line(label("live restores"), fmt.Sprint(w.LiveRestores))
	}
	if len(w.Contested) > 0 {
		how := " (left alone until the exit)"
		if s.d.Lifetime.watch() {
			how = " (put back after pauses)"
		}
		s.line(label("contested"), quoteAll(sortedUnique(w.Contested))+how)
	}
	if w.Overflows > 0 {
		s.line(label("events lost"), count(w.Overflows, "time", "times")+"; everything was compared again each time")
	}
	if w.Degraded > 0 {
		s.line(label("degraded"), s.degraded())
	}
	if n := s.d.PushGuard.RefusedPushes; n > 0 {
		s.line(label("push refused"), count(n, "time", "times"))
	}
	if s.d.RevertMode == ModeRevert {
		s.labelled("not judged", s.d.PushGuard.unjudged())
	}
	for _, p := range s.d.PushGuard.Published {
		s.line(s.paint.in(red, label("pushed")), p.text(s.d.PushGuard.Enabled))
	}
	s.resources()
	if len(s.d.Lifetime.Survivors) > 0 {
		s.line(s.paint.in(red, label("still alive")), processes(s.d.Lifetime.Survivors))
	}
	if n := s.d.leftRunning(); n > 0 {
		s.line(label("ended"), count(n, "process", "processes")+" that the command left running")
	}
	if left := s.d.Lifetime.Left; left != nil && len(*left) > 0 {
		s.line(label("left running"), processes(*left))
	}
	s.labelled("trapped", s.d.TrappedSignal)
}

// unjudged says that pushes were not judged, and why; nil where they were.
func (g PushGuard) unjudged() *string {
	if g.Reason == nil {
		return nil
	}
	text := "pushes: " + *g.Reason
	return &text
}

// text says what went out, and whether it went past a guard.
func (p Published) text(guarded bool) string {
	changes := slices.Clone(p.Changes)
	slices.SortStableFunc(changes, func(a, b PublishedChange) int { return strings.Compare(a.Bytes(), b.Bytes()) })
	var named []string
	for _, c := range changes[:min(len(changes), mostNamed)] {
		named = append(named, Quote(c.Bytes())+" in "+plain(abbreviate(c.Commit)))
	}
	text := plain(strings.TrimPrefix(p.Ref, "refs/remotes/")) + " got commits that change protected files"
	if guarded {
		text += ", past the guard"
	}
	text += ": " + strings.Join(named, ", ")
	if more := len(changes) - mostNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func (s *summary) degraded() string {
	text := count(s.d.Watch.Degraded, "reason", "reasons")
	if len(s.d.Watch.DegradedReasons) > 0 {
		text += " (" + plain(strings.Join(s.d.Watch.DegradedReasons, "; ")) + ")"
	}
	if s.has(Change.unseen) {
		return text
	}
	return text + "; what events missed was found by comparing"
}

// leftRunning counts the processes that outlived the command and were ended. A
// halt and a signal end the command too, which is told of already.
func (d *Document) leftRunning() int {
	if d.Watch.Halt != nil || d.TrappedSignal != nil || d.Lifetime.Left != nil || d.Lifetime.watch() {
		return 0
	}
	return d.Lifetime.Ended
}

func processes(list []Process) string {
	words := make([]string, len(list))
	for i, p := range list {
		words[i] = fmt.Sprintf("%d (%s)", p.PID, plain(p.Name))
	}
	return strings.Join(words, ", ")
}

// places says where the rest is.
func (s *summary) places() {
	if dirs, versions := s.copies(s.stored); versions > 0 {
		s.line(label("stored"), count(versions, "version, as the session found it,", "versions, as the session found them,")+in(dirs))
	}
	if dirs, versions := s.copies(func(c Change) bool { return !s.stored(c) }); versions > 0 {
		s.line(label("displaced"), count(versions, "version", "versions")+in(dirs))
		if s.d.Reviewable {
			s.line(label(""), "cage review "+s.d.Session.ID+" --diff shows them, --accept <path> takes one back")
		}
	}
	if dirs, files := s.originals(); files > 0 {
		s.line(label("originals"), "what "+count(files, "file", "files")+" held at the start: "+quoteAll(dirs))
	}
	if kept := s.d.JournalKept; kept != nil {
		s.line(label("journal"), "holds what "+count(kept.Files, "file", "files")+" held at the start, and was not removed: "+Quote(kept.Bytes()))
	}
	if lost := s.lost(); lost > 0 {
		s.line(label("not kept"), count(lost, "displaced version", "displaced versions")+": nothing could take a copy, or they were taken away")
	}
	if s.eventful() && s.d.Watch.SessionLog != nil {
		s.line(label("session log"), Quote(*s.d.Watch.SessionLog))
	}
}

func (s *summary) lost() (versions int) {
	for _, c := range s.d.Changes {
		versions += c.Lost
	}
	return versions
}

// stored reports whether the copies of a row are of what was protected, not of
// what was displaced: a recovery left the file as it is.
func (s *summary) stored(c Change) bool { return s.recovery && c.Outcome == OutcomeKept }

// copies returns the directories in which copies of some rows lie, and how many
// there are.
func (s *summary) copies(of func(Change) bool) (dirs []string, versions int) {
	for _, c := range s.d.Changes {
		if !of(c) {
			continue
		}
		versions += len(c.Displaced)
		for _, place := range c.Displaced {
			dirs = append(dirs, path.Dir(place.Bytes()))
		}
	}
	return sortedUnique(dirs), versions
}

// in names directories, the first few of many.
func in(dirs []string) string {
	text := " in " + quoteAll(dirs[:min(len(dirs), maxPlaces)])
	if rest := len(dirs) - maxPlaces; rest > 0 {
		text += fmt.Sprintf(" and %d more", rest)
	}
	return text
}

// from says where to put files back from.
func (s *summary) from() string {
	if _, files := s.originals(); files == 0 {
		return ""
	}
	return ", from the originals"
}

// originals returns the directories in which copies of what could not be put
// back lie, and of how many files.
func (s *summary) originals() (dirs []string, files int) {
	for _, c := range s.d.Changes {
		if c.Original != nil {
			files++
			dirs = append(dirs, path.Dir(c.Original.Bytes()))
		}
	}
	return sortedUnique(dirs), files
}

// eventful reports whether the log has more than a beginning and an end.
func (s *summary) eventful() bool {
	return s.d.Status != OK || len(s.d.Changes) > 0 || s.d.Watch.Overflows > 0 ||
		s.d.Watch.Degraded > 0 || s.d.PushGuard.RefusedPushes > 0 || len(s.d.PushGuard.Published) > 0 || s.d.TrappedSignal != nil
}

func (s *summary) ending() {
	if s.d.Status == OK {
		return
	}
	text := fmt.Sprintf("%d (%s)", s.d.ExitCode, s.d.Status)
	switch {
	case s.d.CommandSignal != nil:
		text += "; the command was killed by " + plain(*s.d.CommandSignal)
	case s.d.CommandExitCode != nil:
		text += fmt.Sprintf("; the command exited %d", *s.d.CommandExitCode)
	}
	s.line(label("exit"), text)
	s.line(label("limits"), oneLine(s.d))
}

// hints says what an outcome means that is not the one wished for, and what a
// person can do.
func (s *summary) hints() {
	if s.has(overCap) {
		s.hint("detect_only: over the cap of " + size(s.d.MaxFileBytes) +
			" for one file, or past the total, so no copy was kept; --max-file-bytes and --max-total-bytes raise them")
	}
	if s.has(noFile) {
		s.hint("detect_only: it was no file but a pipe, a socket or a device, of which no copy can be kept")
	}
	if s.has(Change.targetOutside) {
		s.hint("detect_only: the target of a protected link, or a link on the way to it, is outside the root, where nothing is written")
	}
	s.gitAstray()
	if s.has(Change.failed) {
		s.hint("revert_failed: still as it was left; remove what the error code names, then put the file back by hand" + s.from())
	}
	if s.d.JournalKept != nil {
		s.hint("journal: no copy could be stored elsewhere; the next start of cage here puts back what it holds, and so does cage review --recover restore")
	}
	if s.has(Change.unseen) {
		s.hint("unseen: nobody can say what stands there or below; remove what the error code names, then look there yourself")
	}
	if s.has(Change.ground) {
		s.hint("ground: nothing was written into the directory that stands there now; look for the one that was moved away")
	}
	s.switched()
	if h := s.d.Watch.Halt; h != nil && h.Scope == HaltPath && overridable(h.Rule) {
		s.hint("if that change is meant: --allow-override " + shellWord(h.Bytes()))
	}
	if len(s.d.Lifetime.Survivors) > 0 {
		s.hint("still alive: they survived SIGKILL; end them as their owner, or restart what they wait for")
	} else if s.d.Lifetime.Unresolved() && !s.d.Lifetime.watch() {
		s.hint("maybe alive: the cage lost sight of the command's processes; those it started have GANTRY_CAGE_SESSION=" +
			plain(s.d.Session.ID) + " in their environment")
	}
}

// overridable reports whether a person may downgrade a rule for one run.
func overridable(r rules.Rule) bool {
	return r != rules.GitControl && r != rules.CageConfig && r != Ground && r != Unseen
}

// gitAstray names what git finds its hooks or configuration by, and what the
// cage could not put back.
func (s *summary) gitAstray() {
	var changed []string
	for _, c := range s.d.Changes {
		if c.targetOutside() && c.Rule == rules.GitControl {
			changed = append(changed, c.Bytes())
		}
	}
	if len(changed) > 0 {
		s.hint("git finds hooks or configuration by way of " + quoteAll(changed) + ": look where that leads before you run git again")
	}
}

// switched says how to take git's version of what a branch switch changed and
// the cage put back. What the switch took away git cannot check out.
func (s *summary) switched() {
	var changed, deleted []string
	for _, c := range s.d.Changes {
		switch {
		case c.Note != NoteBranchSwitch || !c.Outcome.Back():
		case c.Kind == Deleted:
			deleted = append(deleted, path.Join(s.d.Root, c.Bytes()))
		default:
			changed = append(changed, c.Bytes())
		}
	}
	const why = ", because a branch switch was undone there; to take git's version: "
	if len(changed) > 0 {
		s.hint("git shows " + count(len(changed), "file", "files") + " as changed" + why + gitCheckout(s.d.Root, sortedUnique(changed)))
	}
	if len(deleted) > 0 {
		s.hint("git does not have " + count(len(deleted), "file", "files") + " that the start had" + why + shellCommand(slices.Concat([]string{"rm", "--"}, sortedUnique(deleted))...))
	}
}

func (s *summary) hint(text string) { s.b.WriteString("  hint: " + text + "\n") }

// line writes a label that label has padded, and a text.
func (s *summary) line(padded, text string) {
	s.b.WriteString("  " + padded + "  " + text + "\n")
}

// labelled writes somebody else's text, if there is one.
func (s *summary) labelled(name string, text *string) {
	if text != nil {
		s.line(label(name), plain(*text))
	}
}
