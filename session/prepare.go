package session

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"cage/guard"
	"cage/halt"
	"cage/internal/anchors"
	"cage/internal/gitrepo"
	"cage/internal/kept"
	"cage/internal/pushguard"
	"cage/internal/safefile"
	"cage/internal/sessionlog"
	"cage/internal/tempdir"
	"cage/report"
	"cage/rules"
	"cage/snapshot"
	"cage/watch"
)

// protection is what the session protects and with what.
type protection struct {
	places
	inputs   rules.Inputs
	plan     *rules.Plan
	joined   []rules.Path
	trees    *snapshot.Trees
	watcher  *watch.Watcher
	manifest *snapshot.Manifest
	store    *snapshot.Store
	// committed says whether .cage.yaml equals HEAD; nil where there is none.
	committed *bool
	// skipped are directories that the first or the last scan could not enter.
	skipped []rules.Path
	// doubts are sentences about entries that are likely not meant as they stand.
	doubts []string
	// astray are places that rules name and that links lead elsewhere.
	astray []snapshot.Astray
}

// prepare does everything that comes before the command, in the order that
// leaves no gap: rules, watches, baseline, comparison.
func (s *session) prepare(ctx context.Context) error {
	s.id = newID()
	if err := harden(s.Rlimits.Core != nil); err != nil {
		return err
	}
	s.ownLimits = noteOwnLimits()
	var err error
	if s.dir, err = s.whereabouts(); err != nil {
		return err
	}
	if err := s.attach(); err != nil {
		return err
	}
	if err := s.stand(ctx); err != nil {
		return err
	}
	s.spare(s.layout, refuge(s.temp, s.id))
	s.spare(s.layout, pushguard.Folder(s.temp, s.id))
	if s.PrivateTmp {
		s.spare(s.layout, tempdir.Path(s.temp, s.id))
	}
	if err := s.openLog(); err != nil {
		return err
	}
	restored, err := s.takeOver(ctx, Ask)
	if err != nil {
		return err
	}
	if restored || s.noted != nil {
		if err := s.settleDown(ctx); err != nil {
			return err
		}
	}
	if err := s.plans(ctx); err != nil {
		return err
	}
	if err := s.protect(ctx); err != nil {
		return err
	}
	if s.reportFile != nil {
		if err := s.reportFile.fits(s.layout, s.plan); err != nil {
			return err
		}
	}
	if err := s.findGroup(ctx); err != nil {
		return err
	}
	s.arm(s.startRefs(ctx))
	var guarded sync.WaitGroup
	guarded.Go(func() { s.guardPushes(ctx) }) // beside the writing, which waits for the disk
	err = s.journalise()
	if guarded.Wait(); err != nil {
		return err
	}
	s.announce()
	return nil
}

// settleDown asks git again where the root is, now that an earlier session's
// files are back, and moves the lock there where that is another place.
func (s *session) settleDown(ctx context.Context) error {
	held := s.journalFolder()
	if err := s.survey(ctx); err != nil {
		return err
	}
	s.noted = nil
	if s.journalKept || s.journalFolder() == held {
		return nil
	}
	s.closeJournal()
	recovered := s.recovered
	s.journalling = journalling{}
	_, err := s.takeOver(ctx, Ask)
	if s.recovered == nil {
		s.recovered = recovered
	}
	return err
}

// whereabouts returns the current directory, and opens that of the report
// file first: it takes the refusal of the other.
func (s *session) whereabouts() (dir string, err error) {
	var unfit error
	s.reportFile, unfit = openReportFile(s.ReportFile)
	if dir, err = currentDirectory(); err != nil {
		return "", err
	}
	return dir, unfit
}

// newID returns a session's name: 16 random hexadecimal digits.
func newID() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// startRefs returns what git's references point to before the command can move
// them. Where git does not say, no change counts as a branch switch.
func (s *session) startRefs(ctx context.Context) gitrepo.Refs {
	if s.repo == nil || s.ReportOnly {
		return nil
	}
	refs, err := s.found.StartRefs(ctx)
	if err != nil {
		return nil
	}
	return refs
}

// live reports whether the session restores while the command runs.
func (s *session) live() bool { return !s.NoWatch && !s.ReportOnly }

// plans reads the rule sources into a draft of the plan.
func (s *session) plans(ctx context.Context) error {
	// It was resolved to find the root; what took it away since refuses nothing.
	if dir, err := filepath.EvalSymlinks(s.dir); err == nil {
		if err := anchors.OverridesFrom(dir, s.layout.Root, s.Overrides); err != nil {
			return err
		}
	}
	in := &s.inputs
	*in = rules.Inputs{Layout: s.layout, Git: s.git, Overrides: s.Overrides, Exempt: s.exempt, Elsewhere: s.elsewhere}
	sources, err := anchors.Sources(s.layout.Root)
	if err != nil {
		return err
	}
	in.Config, in.ManifestYAML, in.ManifestJSON = sources.Config, sources.ManifestYAML, sources.ManifestJSON
	if s.plan, err = rules.New(*in); err != nil {
		return err
	}
	return s.compareWithHead(ctx, in.Config)
}

// reason drops operation and path of an error whose reader knows both.
func reason(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// compareWithHead finds out whether the rules that apply are those that were
// committed.
func (s *session) compareWithHead(ctx context.Context, config rules.File) error {
	if s.repo == nil || !config.Present {
		return nil
	}
	oid, tracked, err := s.repo.CommittedBlob(ctx, rules.ConfigFile)
	if err != nil {
		return gitRefusal(err)
	}
	committed := tracked && oid == gitrepo.BlobID(s.repo.ObjectFormat, config.Data)
	s.committed = &committed
	if !committed {
		what := "differs from HEAD"
		if !tracked {
			what = "is not committed"
		}
		s.warnings = append(s.warnings, rules.ConfigFile+" "+what+": the rules of the working tree apply")
	}
	return nil
}

// protect starts watching, then takes the baseline, so that nothing falls
// between them.
func (s *session) protect(ctx context.Context) error {
	var err error
	if s.trees, err = snapshot.OpenTrees(s.layout); err != nil {
		return err
	}
	scan := s.scan()
	paths := scan.Found
	settled, err := s.plan.Settle(paths)
	if err != nil {
		return err
	}
	s.plan = settled
	s.doubts = s.plan.Doubts(paths, scan.Doubtful)
	if err := s.skip(scan); err != nil {
		return err
	}
	paths = append(paths, s.followLinks(paths)...)
	if s.watcher != nil {
		s.watcher.Protect(paths)
	}
	s.store = snapshot.NewStore()
	s.manifest, err = snapshot.Take(ctx, s.trees, s.plan, paths, s.store, s.Limits)
	if err != nil {
		return err
	}
	s.manifest.NoteDirectories(s.trees, scan.Covered)
	return nil
}

// doubtWarnings tell of entries that are likely not meant as they stand.
func (s *session) doubtWarnings() []string {
	warnings := slices.Clone(s.doubts[:min(len(s.doubts), mostNamed)])
	if rest := len(s.doubts) - mostNamed; rest > 0 {
		warnings = append(warnings, fmt.Sprintf("%d more of that kind; cage doctor names them", rest))
	}
	return warnings
}

// followLinks adds what links decide to the plan: what protected ones lead to, and
// the links on the way to protected places. It returns the additions.
func (s *session) followLinks(paths []rules.Path) []rules.Path {
	links := snapshot.Follow(s.trees, s.plan, paths)
	for _, joined := range links.Joined {
		if _, leads := s.plan.Leading(joined.Path); !leads {
			s.warnings = append(s.warnings, linkNotice(s.layout, joined))
		}
	}
	s.astray = links.Astray
	for _, astray := range s.astray[:min(len(s.astray), mostNamed)] {
		s.warnings = append(s.warnings, astrayNotice(s.layout, astray))
	}
	if rest := len(s.astray) - mostNamed; rest > 0 {
		s.warnings = append(s.warnings, fmt.Sprintf("%d more are links, or lie behind one, and lead to what is not protected; the report names them under limits", rest))
	}
	additions := links.Additions()
	for _, link := range s.hooksWay {
		s.warnings = append(s.warnings, "git finds its hooks by way of "+named(s.layout, link)+", a link outside the root: a change there is reported, not undone")
		verdict := rules.Verdict{Rule: rules.GitControl, Source: rules.Builtin, Mode: rules.Revert}
		additions = append(additions, rules.Joined{Path: link, Verdict: verdict})
	}
	s.plan = s.plan.With(additions)
	for _, joined := range additions {
		s.joined = append(s.joined, joined.Path)
	}
	return s.joined
}

// scan walks the trees, with watches where the session restores live.
func (s *session) scan() snapshot.Survey {
	if !s.live() {
		return snapshot.Look(s.trees, s.plan, nil, nil)
	}
	s.watcher = watch.New(watch.Options{Plan: s.plan, Trees: s.trees})
	return s.watcher.Scan()
}

// skip leaves directories out that could not be entered. One on the way to a
// place that a revert rule names is refused: nobody could say what stood there.
// So is a walk that ran out of something: the next one may not.
func (s *session) skip(scan snapshot.Survey) error {
	denied := slices.Clip(scan.Denied)
	for _, dir := range denied {
		if s.plan.Covers(dir) || s.plan.Leads(dir) {
			return &snapshot.EntryError{Path: dir, Err: syscall.EACCES}
		}
	}
	for _, unseen := range scan.Unseen {
		if safefile.Exhausted(unseen.Err) || s.plan.Covers(unseen.Path) || s.plan.Leads(unseen.Path) {
			return &snapshot.EntryError{Path: unseen.Path, Err: unseen.Err}
		}
		denied = append(denied, unseen.Path)
	}
	s.noteSkipped(denied)
	s.plan = s.plan.Sparing(denied)
	return nil
}

// mostNamed is how many of what is not protected are warned of one by one.
const mostNamed = 5

// skipWarnings say aloud what was left out.
func (s *session) skipWarnings() []string {
	var warnings []string
	for _, dir := range s.skipped[:min(len(s.skipped), mostNamed)] {
		warnings = append(warnings, "cannot enter "+named(s.layout, dir)+": what it holds is not protected in this run")
	}
	if rest := len(s.skipped) - mostNamed; rest > 0 {
		warnings = append(warnings, fmt.Sprintf("cannot enter %d more; the report names them under limits", rest))
	}
	return warnings
}

// noteSkipped notes directories that could not be scanned, each once.
func (s *session) noteSkipped(dirs []rules.Path) {
	for _, dir := range dirs {
		if !slices.Contains(s.skipped, dir) {
			s.skipped = append(s.skipped, dir)
		}
	}
}

// linkNotice says what else is protected, and by which link.
func linkNotice(layout rules.Layout, joined snapshot.Joined) string {
	text := named(layout, joined.From)
	switch {
	case joined.OnTheWay:
		text += " leads by way of the link "
	case joined.Direct:
		text += " is a link to "
	default:
		text += " leads to "
	}
	text += report.Quote(layout.Display(joined.Path))
	if joined.Path.Anchor == rules.Outside {
		return text + ", outside the root: a change there is reported, not undone"
	}
	return text + ", which is protected too"
}

func astrayNotice(layout rules.Layout, astray snapshot.Astray) string {
	text := named(layout, astray.Place) + " is a link, or lies behind one, and leads to " + named(layout, astray.End) + ": what stands there is not protected"
	if astray.End.Anchor == rules.Root && astray.End.Rel != "" {
		text += "; to protect that, name " + named(layout, astray.End) + " in " + rules.ConfigFile
	}
	return text
}

// arm makes the keeper, the guard and the account of contests.
func (s *session) arm(startRefs gitrepo.Refs) {
	sessions := filepath.Join(s.state, "sessions")
	if err := kept.Prune(sessions, time.Now()); err != nil {
		s.warnings = append(s.warnings, "cannot remove old displaced versions: "+err.Error())
	}
	options := kept.Options{
		GitDir: kept.GitDirOf(s.trees), Store: filepath.Join(sessions, s.id), Spare: refuge(s.temp, s.id), Session: s.id,
		Drop: s.DropDisplaced, DigestLimit: s.Limits.FileBytes,
	}
	if s.repo != nil {
		format := s.repo.ObjectFormat
		options.Identify = func(size int64) hash.Hash { return gitrepo.NewIdentity(format, size) }
	}
	s.kept = kept.Open(options)
	s.ledger = kept.NewLedger(options, kept.Index{Session: s.id, Command: s.commandName(), Watch: s.watching != nil, Started: s.started, Layout: s.layout})
	s.guard = guard.New(guard.Options{
		Plan: s.plan, Trees: s.trees, Manifest: s.manifest, Store: s.store, Keeper: s.kept,
		Watcher: s.watcher, Git: s.repo, Restores: !s.ReportOnly, Rescans: !s.NoWatch,
		Interval: s.Interval, WalkInterval: walkInterval(s.Interval), FileBytes: s.Limits.FileBytes,
		Upkeep: s.ownLimits.putBack,
	})
	s.contestLimits = halt.Limits{
		Path: firstSet(s.ContestLimit, s.plan.ContestLimit, defaultContestLimit),
		Rule: firstSet(s.RuleContestLimit, s.plan.RuleContestLimit, defaultRuleContestLimit),
	}
	if s.tree() == nil && s.watching != nil {
		s.contestLimits.Rule, s.contestLimits.NoHalt = 0, true
	}
	s.contests = newContests(s.contestLimits, s.historyFromNow(), startRefs, s.act)
}

// historyFromNow is what the contests ask of git; outside git nobody asks.
func (s *session) historyFromNow() history {
	if s.repo == nil {
		return nil
	}
	return s.repo.FromNow()
}

func firstSet(flag *int, file func() (int, bool), standard int) int {
	if flag != nil {
		return *flag
	}
	if n, ok := file(); ok {
		return n
	}
	return standard
}

// walkInterval is how often the tree is walked for names that no event told
// of: thirty times as rarely as the protected set is compared.
func walkInterval(interval time.Duration) time.Duration { return 30 * interval }

// ownTemp is what to do where the session has no place for its own files.
const ownTemp = "set TMPDIR to a directory outside the root that you can write"

// openLog opens the log before there are rules, which must leave it alone.
func (s *session) openLog() error {
	var err error
	if s.log, err = sessionlog.Create(s.temp); err != nil {
		return refusal(report.CodeHost, ownTemp, err)
	}
	s.spare(s.layout, s.log.Path())
	s.follow()
	return nil
}

// announce says what the session is going to do.
func (s *session) announce() {
	var lines bytes.Buffer
	for _, warning := range slices.Concat(s.elsewhereWarnings(), s.warnings, s.doubtWarnings(), s.skipWarnings()) {
		lines.WriteString(report.Warning(warning))
	}
	lines.WriteString(s.recoveredLine())
	lines.WriteString(report.OverrideBanner(s.plan.Overrides()))
	lines.WriteString(s.startLine().Line())
	s.Messages.Write(lines.Bytes()) // nobody to tell if it fails
	s.log.SessionStart(sessionlog.Start{
		Session: s.id, Root: s.layout.Root, Command: s.commandName(), RevertMode: s.revertMode(),
		ProtectedFiles: s.manifest.Len(), Watch: !s.NoWatch, Watched: s.watchedProcess(),
	})
	if s.recovered != nil && !s.recovered.Lost && !s.ReportOnly {
		s.log.Recovered(s.recovered.Session, s.recovered.Restored, s.recovered.ProcessesEnded)
	}
}

// elsewhereWarnings says that what work trees share is in other hands.
func (s *session) elsewhereWarnings() []string {
	if len(s.elsewhere) == 0 {
		return nil
	}
	return []string{"a session in another work tree guards " + report.Quote(s.layout.CommonDir) + ": here changes to it are only listed"}
}

// recoveredLine says what was done about an interrupted session, also where this
// one then does not begin; empty where nothing was.
func (s *session) recoveredLine() string {
	if s.recovered == nil || s.recovered.Lost {
		return ""
	}
	return s.recovered.Line(s.ReportOnly)
}

func (s *session) startLine() report.Start {
	start := report.Start{
		ProtectedFiles: s.manifest.Len(), ReportOnly: s.ReportOnly, Log: s.log.Path(), Watched: s.watchedProcess(),
	}
	if !s.NoWatch {
		start.Interval = s.Interval
	}
	if s.watcher != nil {
		status := s.watcher.Status()
		start.Events = status.Events
		start.Degraded, start.Setting = spellLacks(status.Degraded)
	}
	return start
}

// spellLacks puts reasons into one line, and settings into another.
func spellLacks(lacks []watch.Lack) (reasons, settings string) {
	var why, what []string
	for _, lack := range lacks {
		why = append(why, lack.Reason)
		if lack.Setting != "" && !slices.Contains(what, lack.Setting) {
			what = append(what, lack.Setting)
		}
	}
	return strings.Join(why, "; "), strings.Join(what, "; ")
}

func (s *session) revertMode() report.RevertMode {
	if s.ReportOnly {
		return report.ModeReportOnly
	}
	return report.ModeRevert
}
