package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"cage/guard"
	"cage/internal/kept"
	"cage/journal"
	"cage/report"
	"cage/rules"
	"cage/scope"
	"cage/snapshot"
)

// The codes of what an earlier session can stand in the way with.
const (
	codeCorrupt = "GXT_CAGE_JOURNAL_CORRUPT"
	codeStale   = "GXT_CAGE_RECOVERY_STALE"
	// codeIncomplete: a file could not be put back; the journal stays.
	codeIncomplete = "GXT_CAGE_RECOVERY_INCOMPLETE"
)

// Decision says what a recovery does about files that somebody may have worked
// on since the session was interrupted.
type Decision uint8

const (
	// Ask refuses to touch any of them, so that a person decides.
	Ask Decision = iota
	// Restore puts the session's baseline back and stores the later work.
	Restore
	// Keep leaves the later work and stores the session's baseline.
	Keep
)

// takeOver takes the lock of the root and cleans up after an earlier session
// that did not end. It reports whether files were put back, so that what git
// says has to be asked again.
func (s *session) takeOver(ctx context.Context, decision Decision) (restored bool, err error) {
	r := &recovery{session: s, decision: decision}
	if err := r.acquire(s.journalFolder()); err != nil {
		return false, err
	}
	s.journalKept = r.left != nil
	if err := s.shareCommon(); err != nil {
		return false, journalRefusal(err)
	}
	if r.left == nil {
		return false, s.missed()
	}
	if err := r.verify(); err != nil {
		return false, err
	}
	if err := r.endProcesses(); err != nil {
		return false, err
	}
	s.noteSwept(scope.Sweep(ctx, s.host()))
	// A signal ends the start after the recovery, not within it: half of one
	// must not pass for a whole.
	recovered, err := r.putBack(context.WithoutCancel(ctx))
	if err != nil {
		return false, err
	}
	s.recovered = recovered
	if s.ReportOnly {
		return false, nil
	}
	s.journalKept = false
	s.removePushGuard(r.left.Session)
	s.removeTempOf(r.left.Session)
	if err := s.unnote(); err != nil {
		s.warnings = append(s.warnings, err.Error()) // the next start will miss what is not missing
	}
	return true, s.journal.Discard()
}

// missed says what became of an earlier session that left no journal, if one is
// known that did not end.
func (s *session) missed() error {
	note, err := recall(s.layout.Root)
	switch {
	case err != nil:
		s.warnings = append(s.warnings, err.Error())
	case note == nil:
	case note.runs():
		return journalRefusal(&journal.ActiveError{Folder: note.folder(), Cage: note.cage()})
	case s.journal.Remains():
		s.journalKept = true
		return journalRefusal(&journal.CorruptError{Folder: note.folder(), Reason: journal.PartGone})
	default:
		s.recovered = &report.Recovery{Lost: true, Session: note.Session}
		s.removePushGuard(note.Session)
		s.warnings = append(s.warnings, "the earlier session "+note.Session+
			" did not end and its journal is gone: nothing it protected could be put back; look at the protected files before you go on")
	}
	return nil
}

// shareCommon takes charge of the files that the work trees share, unless a
// session in another one did.
func (s *session) shareCommon() error {
	if s.layout.CommonDir == "" {
		return nil
	}
	lock, err := journal.LockCommon(s.layout.CommonDir)
	if err != nil {
		return err
	}
	if s.common = lock; lock == nil {
		s.elsewhere = []rules.Anchor{rules.CommonDir}
	}
	return nil
}

func journalRefusal(err error) error {
	var active *journal.ActiveError
	var corrupt *journal.CorruptError
	switch {
	case errors.As(err, &active):
		return refusal(report.CodeActive, "wait until it has ended, or end it with SIGTERM", err)
	case errors.As(err, &corrupt):
		return refusal(codeCorrupt,
			"look into the folder, put back by hand what you need, then remove it: rm -r "+report.Quote(corrupt.Folder), err)
	default:
		return refusal(codeJournal, "make room on the disk, make the git directory writable, or remove what stands in the way", err)
	}
}

// recovery cleans up after one interrupted session.
type recovery struct {
	session  *session
	left     *journal.Interrupted
	decision Decision
	ended    int
	// hooksMoved says that git's answer where the hooks folder is may have been
	// the session's doing.
	hooksMoved bool
	// ledger is what it displaces; nil before it begins to put files back.
	ledger *kept.Ledger
}

// verify refuses a journal that does not fit before anything is done by it.
func (r *recovery) verify() error {
	_, _, err := r.left.Build(r.fixedLayout(), r.session.elsewhere)
	if err != nil {
		return journalRefusal(err)
	}
	return nil
}

// fixedLayout is the layout without the hooks folder: where that is stands in
// git's config, which the session may have changed.
func (r *recovery) fixedLayout() rules.Layout {
	layout := r.session.layout
	layout.HooksDir = ""
	return layout
}

// putBack restores what the session protected, unless somebody worked on it
// since and nobody decided. In a run that only reports it says what it would do.
func (r *recovery) putBack(ctx context.Context) (*report.Recovery, error) {
	rows, err := r.sweep(ctx, r.session.layout, false)
	if err != nil {
		return nil, err
	}
	if r.hooksMoved = movesHooks(rows) || !r.left.HasHooks(r.session.layout); r.hooksMoved {
		rows = slices.DeleteFunc(rows, inHooksDir)
	}
	switch {
	case r.decision == Keep:
		rows, err = r.keepWork(rows)
	case r.session.ReportOnly:
		err = r.refuseLate(rows)
	default:
		if err = errors.Join(r.refuseShared(rows), r.refuseLate(rows)); err == nil {
			rows, err = r.restore(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	return r.document(rows), r.complete(rows)
}

// movesHooks reports whether git's control files changed, so that what git says
// of the hooks folder may be the session's doing.
func movesHooks(rows []guard.Row) bool {
	return slices.ContainsFunc(rows, func(row guard.Row) bool {
		return row.Verdict.Rule == rules.GitControl && !inHooksDir(row)
	})
}

func inHooksDir(row guard.Row) bool { return row.Path.Anchor == rules.HooksDir }

// refuseShared refuses while another session guards what this one would have to
// put back: the journal must not go before that is done.
func (r *recovery) refuseShared(rows []guard.Row) error {
	if r.left.GuardedElsewhere() {
		return nil
	}
	for _, row := range rows {
		if row.Note == guard.GuardedElsewhere {
			return refusal(report.CodeActive, "wait until that session has ended, then start again",
				fmt.Errorf("an interrupted session left %s changed, which a session in another work tree guards now%s",
					report.Quote(display(r.session.layout, row.Path)), report.EndedWith(r.ended)))
		}
	}
	return nil
}

// complete refuses to go on with files that could not be put back: the next
// baseline would take them as they are.
func (r *recovery) complete(rows []guard.Row) error {
	var names []string
	for _, row := range rows {
		if row.Outcome == guard.RevertFailed {
			names = append(names, report.Quote(display(r.session.layout, row.Path))+": "+row.Code)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return refusal(codeIncomplete, "remove what the error code names, then start again: the journal stays",
		errors.New("files of an interrupted session cannot be put back: "+enumerate(names)+report.EndedWith(r.ended)))
}

// enumerate joins names, the first of many.
func enumerate(names []string) string {
	const most = 20
	if more := len(names) - most; more > 0 {
		names = append(slices.Clone(names[:most]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// keepWork leaves the files as they are and stores what the session had found
// in their place.
func (r *recovery) keepWork(rows []guard.Row) ([]guard.Row, error) {
	s := r.session
	rows, err := r.withUncomparedHooks(rows)
	if err != nil {
		return nil, err
	}
	if s.layout.HooksDir == "" && s.repo != nil && r.left.Has(rules.HooksDir) {
		s.layout.HooksDir = s.repo.HooksDir // for the names
	}
	return rows, r.storeFound(rows)
}

// withUncomparedHooks adds what nobody compared where the hooks folder is not
// there for it: all of that folder, and of what its links may lead to.
func (r *recovery) withUncomparedHooks(rows []guard.Row) ([]guard.Row, error) {
	if !r.hooksMoved || !r.left.Has(rules.HooksDir) {
		return rows, nil
	}
	_, compared, err := r.left.Build(r.fixedLayout(), r.session.elsewhere)
	if err != nil {
		return nil, journalRefusal(err)
	}
	recorded := r.left.Recorded()
	for _, p := range recorded.Paths() {
		if _, known := compared.Entry(p); known || hasRow(rows, p) {
			continue
		}
		e, _ := recorded.Entry(p)
		verdict := rules.Verdict{Rule: rules.GitControl, Source: rules.Builtin, Mode: rules.Revert}
		rows = append(rows, guard.Row{Path: p, Verdict: verdict, Kind: guard.Modified, Before: e.State.Digest})
	}
	return rows, nil
}

// storeFound stores what the session had found at the paths of rows, and says in
// each where.
func (r *recovery) storeFound(rows []guard.Row) error {
	recorded := r.left.Recorded()
	keeper := kept.Open(kept.Options{Store: r.storeFolder(), Session: r.left.Session})
	for i := range rows {
		rows[i].Outcome = guard.Kept
		if e, known := recorded.Entry(rows[i].Path); known && e.Kept {
			content, _ := r.left.Store.Get(e.State.Content)
			keeper.Keep(kept.Version{Tag: i, Path: e.Path, Info: e.State.Info, Content: content})
		}
	}
	keeper.Finish()
	for _, sealed := range keeper.Take() {
		if sealed.Err != nil {
			return fmt.Errorf("store what the session had found: %w", sealed.Err)
		}
		rows[sealed.Tag].Displaced = append(rows[sealed.Tag].Displaced, sealed.Place)
	}
	return nil
}

func hasRow(rows []guard.Row, p rules.Path) bool {
	return slices.ContainsFunc(rows, func(row guard.Row) bool { return row.Path == p })
}

// restore puts everything back. The hooks folder comes last: git is asked where
// it is once its config is back.
func (r *recovery) restore(ctx context.Context) ([]guard.Row, error) {
	s := r.session
	// Where there is no room for that, a person may have to decide afterwards.
	if err := s.journal.BeginRecovery(r.left); err != nil {
		s.warnings = append(s.warnings, err.Error())
	}
	r.adoptQuarantine()
	defer r.writeLedger()
	rows, err := r.sweep(ctx, r.fixedLayout(), true)
	if err != nil {
		return nil, err
	}
	if err := r.complete(rows); err != nil {
		return nil, err
	}
	if err := s.survey(ctx); err != nil {
		return nil, err
	}
	more, err := r.restoreHooks(ctx, rows)
	return append(rows, more...), err
}

// restoreHooks does the same for a hooks folder outside, and for what its links
// lead to. It returns the rows of paths that have none before.
func (r *recovery) restoreHooks(ctx context.Context, before []guard.Row) ([]guard.Row, error) {
	s := r.session
	known := func(row guard.Row) bool { return hasRow(before, row.Path) }
	switch {
	case !r.left.Has(rules.HooksDir):
		return nil, nil
	case !r.left.HasHooks(s.layout):
		return nil, refusal(codeIncomplete,
			"put the folder back that core.hooksPath named, then start again; or let go of it, with the hooks in the state folder: cage review --recover keep",
			errors.New("git's hooks of an interrupted session cannot be put back: their folder is gone, or core.hooksPath names another one"+
				report.EndedWith(r.ended)))
	}
	if r.hooksMoved {
		rows, err := r.sweep(ctx, s.layout, false)
		if err != nil {
			return nil, err
		}
		if err := r.refuseLate(slices.DeleteFunc(rows, known)); err != nil {
			return nil, err
		}
	}
	rows, err := r.sweep(ctx, s.layout, true)
	return slices.DeleteFunc(rows, known), err
}

// sweep compares everything with the session's baseline and, if asked, restores
// it, keeping whatever is displaced.
func (r *recovery) sweep(ctx context.Context, layout rules.Layout, restores bool) ([]guard.Row, error) {
	plan, manifest, err := r.left.Build(layout, r.session.elsewhere)
	if err != nil {
		return nil, journalRefusal(err)
	}
	trees, err := snapshot.OpenTrees(layout)
	if err != nil {
		return nil, err
	}
	defer trees.Close()
	keeper := kept.Open(r.keeperOptions(trees))
	defer keeper.Finish()
	g := guard.New(guard.Options{
		Plan: plan, Trees: trees, Manifest: manifest, Store: r.left.Store, Keeper: keeper,
		Git: r.session.repo, Restores: restores, FileBytes: r.session.Limits.FileBytes,
	})
	stop := runLoop(ctx, g)
	g.Sweep(ctx)
	keeper.Finish()
	g.Seal()
	stop()
	for _, event := range g.Take() {
		if displaced, ok := event.(guard.Displaced); ok && r.ledger != nil {
			r.ledger.Note(displaced.Sealed, displaced.Baseline, time.Now())
		}
	}
	return g.Rows(), nil
}

func (r *recovery) document(rows []guard.Row) *report.Recovery {
	lastSign := report.Timestamp(r.left.LastSign)
	d := &report.Recovery{Session: r.left.Session, LastSign: &lastSign, ProcessesEnded: r.ended}
	for _, row := range rows {
		if row.Outcome == guard.Reverted || row.Outcome == guard.Removed {
			d.Restored++
		}
		d.Changes = append(d.Changes, changeOf(r.session.layout, row))
	}
	return d
}
