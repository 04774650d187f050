package report

import (
	"time"

	"cage/rules"
)

// SchemaID is what `report_schema` says in every [Document].
const SchemaID = "gantry.cage-report.v1"

// Document is the report of one session. Paths in it may be any bytes: JSON
// replaces what is not UTF-8, and a [Name] keeps the bytes beside it.
type Document struct {
	// ReportSchema is filled in by JSON.
	ReportSchema string `json:"report_schema"`
	Status       Status `json:"status"`
	// ExitCode is the cage's own exit code, see [Decide].
	ExitCode int `json:"exit_code"`
	// Command is the command's name as it was called, never its arguments.
	Command string `json:"command"`
	// CommandExitCode is nil if a signal killed the command or it never ran.
	CommandExitCode *int `json:"command_exit_code"`
	// CommandSignal is the name of the signal that killed it, as in SIGTERM.
	CommandSignal *string `json:"command_signal"`
	// RuntimeError says why the command could not be started.
	RuntimeError *string `json:"runtime_error"`
	// Root is absolute.
	Root       string     `json:"root"`
	RevertMode RevertMode `json:"revert_mode"`
	// MaxFileBytes is the cap of one file in force, in bytes.
	MaxFileBytes int64 `json:"max_file_bytes"`
	// ProtectedFiles counts the entries of the baseline.
	ProtectedFiles int `json:"protected_files"`
	// ManifestZones counts the distinct forbidden zones.
	ManifestZones int        `json:"manifest_zones"`
	CageConfig    CageConfig `json:"cage_config"`
	// Overrides are the paths downgraded for this run; JSON sorts them and
	// drops repetitions.
	Overrides List[string] `json:"overrides"`
	// Changes has one row per path on which a difference was seen; JSON sorts
	// them by the bytes of the path.
	Changes   List[Change] `json:"changes"`
	Watch     Watch        `json:"watch"`
	PushGuard PushGuard    `json:"push_guard"`
	// TrappedSignal is the signal that ended the session, as in SIGTERM.
	TrappedSignal *string   `json:"trapped_signal"`
	Recovery      *Recovery `json:"recovery"`
	// Limits are sentences, see [Limits].
	Limits    List[string]  `json:"limits"`
	Session   Session       `json:"session"`
	Contests  List[Contest] `json:"contests"`
	Lifetime  Lifetime      `json:"lifetime"`
	Hygiene   Hygiene       `json:"hygiene"`
	Resources Resources     `json:"resources"`
	// JournalKept is nil unless the session's journal had to stay.
	JournalKept *JournalKept `json:"journal_kept,omitempty"`

	// Reviewable says that cage review knows of what was displaced. Only the
	// summary tells.
	Reviewable bool `json:"-"`
}

// Status is the verdict on a session.
type Status string

// The statuses, and the one of a [Failure].
const (
	OK         Status = "ok"
	Reverted   Status = "violations_reverted"
	Unresolved Status = "violations_unresolved"
	NotStarted Status = "runtime_error"
	Halted     Status = "halted"
	Failed     Status = "failed"
)

// RevertMode says whether the session restored at all.
type RevertMode string

// The two modes.
const (
	ModeRevert     RevertMode = "revert"
	ModeReportOnly RevertMode = "report_only"
)

// CageConfig says what of .cage.yaml took part.
type CageConfig struct {
	Present bool `json:"present"`
	Entries int  `json:"entries"`
	// Committed is nil without a file or outside git, and true where the file
	// is tracked and equals HEAD.
	Committed *bool `json:"committed"`
}

// Change is one row: a path on which a difference was seen during the session,
// also if it is whole at the end.
type Change struct {
	// Name is relative to the root, as [rules.Layout.Display] spells it.
	Name
	Kind Kind `json:"kind"`
	// Rule is [Ground] where another directory stood in the place of the root or
	// of a git directory, and [Unseen] where nobody can tell what stands there.
	Rule       rules.Rule   `json:"rule"`
	Source     rules.Source `json:"source"`
	Overridden bool         `json:"overridden"`
	// SHA256Before is 64 hexadecimal digits; nil for what was added and for
	// what has no content to digest.
	SHA256Before *string `json:"sha256_before"`
	// SHA256After is nil for what was deleted or has no content to digest.
	SHA256After *string `json:"sha256_after"`
	// Outcome is the most serious one that the path saw: a file that came back
	// and was later changed in a way that is kept is still a reverted one.
	Outcome Outcome `json:"outcome"`
	// ErrorCode is an errno's name, as in EROFS.
	ErrorCode *string `json:"error_code"`
	// Restores counts successful restores of the path, live and at the exit.
	Restores int `json:"restores"`
	// Rounds counts those that opened a round of their own, the halt's unit,
	// whether it counted or not.
	Rounds int `json:"rounds"`
	// Displaced are the absolute places where displaced versions lie.
	Displaced List[Name] `json:"displaced"`
	// Original is the absolute place of a copy of what the path held at the
	// start; nil unless that could not be put back.
	Original *Name `json:"original,omitempty"`
	// Lost counts displaced versions that are nowhere: nothing took a copy of
	// them, or somebody took them away.
	Lost int `json:"displaced_lost,omitempty"`
	// AttributeErrors are attributes that could not be set back.
	AttributeErrors List[AttributeError] `json:"attribute_errors"`
	// Note says why an outcome is what it is, where that is not evident.
	Note Note `json:"note,omitempty"`
}

// Kind says what happened to a path. A swap of types is a modification.
type Kind string

// The kinds.
const (
	Added    Kind = "added"
	Modified Kind = "modified"
	Deleted  Kind = "deleted"
)

// Outcome says what became of a change.
type Outcome string

// The outcomes. The first two are violations that are back, the next three
// violations that are not, and the last is no violation.
const (
	OutcomeReverted     Outcome = "reverted"
	OutcomeRemoved      Outcome = "removed"
	OutcomeReported     Outcome = "reported"
	OutcomeDetectOnly   Outcome = "detect_only"
	OutcomeRevertFailed Outcome = "revert_failed"
	OutcomeKept         Outcome = "kept"
)

// Ground is the rule of the row, and of the halt, that says that another
// directory stands where the root or a git directory stood.
const Ground rules.Rule = "ground"

// Unseen is the rule of the row that says that a place, or what lies below it,
// could not be looked at to the end.
const Unseen rules.Rule = "unseen"

// Note is a reason that a row gives beside its outcome.
type Note string

// The notes.
const (
	// NoteGitBookkeeping: git's everyday rewriting of its config was kept.
	NoteGitBookkeeping Note = "git_bookkeeping"
	// NoteBranchSwitch: what was displaced is what git's index holds, from a
	// commit that existed at the start, so git shows the restored file as
	// modified.
	NoteBranchSwitch Note = "branch_switch"
	// NoteTargetOutside: the target of a protected link lies outside the root,
	// where nothing is restored.
	NoteTargetOutside Note = "link_target_outside"
	// NoteGuardedElsewhere: a session in another work tree of the repository
	// guards the path.
	NoteGuardedElsewhere Note = "guarded_elsewhere"
)

// AttributeError is an attribute that a restore could not set back.
type AttributeError struct {
	// Attribute is `owner`, `acl` or the name of an extended attribute.
	Attribute string `json:"attribute"`
	// ErrorCode is an errno's name.
	ErrorCode string `json:"error_code"`
}

// Watch says how the session watched and what it had to do.
type Watch struct {
	Enabled bool `json:"enabled"`
	// IntervalMS is the time between rescans in milliseconds, nil when off.
	IntervalMS *int64 `json:"interval_ms"`
	// LiveRestores counts every restore while the command ran.
	LiveRestores int `json:"live_restores"`
	// Contested are the paths that were left alone until the exit, or in a watch
	// put back after pauses; JSON sorts them.
	Contested List[string] `json:"contested"`
	// ContestLimit is the resolved number, also when the watch is off; 0 never
	// halts.
	ContestLimit int `json:"contest_limit"`
	// Halt is nil if the command was not halted.
	Halt *Halt `json:"halt"`
	// SessionLog is the absolute path of the log, nil if there is none.
	SessionLog *string `json:"session_log"`
	// Overflows counts the times the kernel's event queue lost events.
	Overflows int `json:"overflows"`
	// Degraded counts the reasons for which watches were lost or could not be
	// had.
	Degraded int `json:"degraded"`
	// DegradedReasons are those reasons, with the setting to change.
	DegradedReasons List[string] `json:"degraded_reasons"`
	// RuleContestLimit is the resolved number; 0 is off.
	RuleContestLimit int `json:"rule_contest_limit"`
	// WalkIntervalMS is the time between walks of the whole tree for new names
	// in milliseconds, nil when the watch is off.
	WalkIntervalMS *int64 `json:"walk_interval_ms"`
}

// HaltScope says which limit ended the command.
type HaltScope string

// The scopes of a halt.
const (
	// HaltPath: one path was changed again and again.
	HaltPath HaltScope = "path"
	// HaltRule: the paths of one rule were.
	HaltRule HaltScope = "rule"
	// HaltGround: another directory stands where the root or a git directory
	// stood.
	HaltGround HaltScope = "ground"
	// HaltBounds: more paths changed than a session will keep up with.
	HaltBounds HaltScope = "bounds"
)

// Halt says why the command was ended.
type Halt struct {
	Scope HaltScope `json:"scope"`
	// Name is the path that tripped it.
	Name
	Rule rules.Rule `json:"rule"`
	// LiveRestores is the count that exceeded Limit: rounds for path and rule,
	// changed paths for bounds, 0 for ground.
	LiveRestores int `json:"live_restores"`
	Limit        int `json:"limit"`
}

// PushGuard says whether pushes from inside the session were judged.
type PushGuard struct {
	Enabled       bool `json:"enabled"`
	RefusedPushes int  `json:"refused_pushes"`
	// Reason says why they were not; nil where they were, outside git and in a watch.
	Reason *string `json:"reason"`
	// Published are the pushes that git noted and that went past the guard.
	Published List[Published] `json:"published"`
}

// Published is a push that went out with changes of protected files.
type Published struct {
	// Ref is the reference that stands for the other repository's branch, such
	// as refs/remotes/origin/main.
	Ref string `json:"ref"`
	// Changes has one row per path.
	Changes List[PublishedChange] `json:"changes"`
}

// PublishedChange is a protected file that a commit changes.
type PublishedChange struct {
	// Name is relative to the root.
	Name
	Rule rules.Rule `json:"rule"`
	// Commit is the object id of the last commit that changes it.
	Commit string `json:"commit"`
}

// JournalKept says where the journal of the session lies that holds what files
// held at the start which are not back, where no other copy could be stored. The
// next session there puts them back.
type JournalKept struct {
	Name
	// Files counts them.
	Files int `json:"files"`
}

// Recovery says what was found of an earlier session that did not end.
type Recovery struct {
	// Lost is set where such a session is known but its journal is gone: then
	// nothing could be put back.
	Lost bool `json:"lost"`
	// Session names it.
	Session string `json:"session"`
	// LastSign is when it last gave a sign of life; nil where that is lost.
	LastSign *string `json:"last_sign"`
	// ProcessesEnded counts what it had left running and was ended.
	ProcessesEnded int `json:"processes_ended"`
	// Restored counts the paths that were put back.
	Restored int `json:"restored"`
	// Changes has one row per path that was not as the session had found it.
	Changes List[Change] `json:"changes"`
}

// Session identifies the run.
type Session struct {
	ID string `json:"id"`
	// StartedAt and EndedAt are RFC 3339 in UTC with milliseconds.
	StartedAt  string `json:"started_at"`
	EndedAt    string `json:"ended_at"`
	DurationMS int64  `json:"duration_ms"`
}

// NewSession spells the times of a session.
func NewSession(id string, started, ended time.Time) Session {
	return Session{
		ID:         id,
		StartedAt:  Timestamp(started),
		EndedAt:    Timestamp(ended),
		DurationMS: ended.Sub(started).Milliseconds(),
	}
}

// Timestamp spells a time as documents and logs do: RFC 3339 in UTC with
// milliseconds.
func Timestamp(t time.Time) string {
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// Contest is what one rule had to take.
type Contest struct {
	Rule rules.Rule `json:"rule"`
	// Rounds are those that counted towards the rule's limit.
	Rounds int `json:"rounds"`
	// Uncounted are those that a branch switch explains.
	Uncounted int `json:"uncounted"`
	// Paths counts the distinct paths that were restored under the rule.
	Paths int `json:"paths"`
}

// Lifetime says how the processes of the run were ended.
type Lifetime struct {
	// Mode is `run`, `tree` or `leave`; of a watch, which starts nothing,
	// `watched` where it may halt a program and else `none`.
	Mode string `json:"mode"`
	// Mechanism names what proved the end: `subreaper`, `keeper` or `listing`;
	// `none` where nothing was started.
	Mechanism string `json:"mechanism"`
	// Ended counts the processes that outlived the command, or that a halt or a
	// signal found with it, and were ended.
	Ended int `json:"ended"`
	// Proved says that nothing of the run is left, by Mechanism's word. Without
	// it something lives, or may, also where Survivors is empty.
	Proved bool `json:"proved"`
	// Survivors could not be ended.
	Survivors List[Process] `json:"survivors"`
	// Watched is the program of a watch, if it has one.
	Watched *Process `json:"watched,omitempty"`
	// Left was left alone, as Mode `leave` has it; nil where the end of the run
	// was enforced.
	Left *List[Process] `json:"left"`
	// Gaps name what this host could not enforce.
	Gaps List[string] `json:"gaps"`
}

// Unresolved reports whether something lives, or may, that was to be ended.
func (l Lifetime) Unresolved() bool { return !l.Proved && l.Left == nil }

// watch reports whether it is that of a watch.
func (l Lifetime) watch() bool { return l.Mode == "none" || l.Mode == "watched" }

// Process is one process of the run.
type Process struct {
	PID int `json:"pid"`
	// Name is the kernel's short name of it, never its arguments.
	Name string `json:"name"`
}

// Hygiene says what of the caller's state reached the command.
type Hygiene struct {
	// Environment is `inherit`, `passthrough` or `allowlist`; `none` without a
	// command.
	Environment string `json:"environment"`
	// DroppedEnv are names of variables, never values.
	DroppedEnv List[string] `json:"dropped_env"`
	// Terminal is `foreground`, `inherit`, `none` or `pty`.
	Terminal string `json:"terminal"`
	// PrivateTmp is the command's own temporary directory; nil where it had none.
	PrivateTmp *PrivateTmp `json:"private_tmp"`
	// Gaps name what this host could not enforce.
	Gaps List[string] `json:"gaps"`
}

// PrivateTmp is a temporary directory of the command's own.
type PrivateTmp struct {
	Name
	Removed bool `json:"removed"`
	// Reason says why it is still there; nil where it was removed.
	Reason *string `json:"reason"`
}

// Resources says what of the machine the run could take, and what came of it.
type Resources struct {
	// Mode is `off`, `scope`, `cgroup`, `nice-only` or `none`.
	Mode string `json:"mode"`
	// Reason says why it is that mode; nil for off and scope.
	Reason *string `json:"reason"`
	// Group is the scope, or the path of the control group; nil without one.
	Group *string `json:"group"`
	// MemoryMax is in bytes; nil without a limit, like those after it.
	MemoryMax *uint64 `json:"memory_max"`
	TasksMax  *uint64 `json:"tasks_max"`
	CPUWeight *uint64 `json:"cpu_weight"`
	// OOMKills is how many processes the kernel killed for memory.
	OOMKills uint64 `json:"oom_kills"`
	// OOMLimit says whose limit that was: `own`, or `above` for that of OOMGroup,
	// which contains the run's, or of the whole machine; nil where none was
	// killed.
	OOMLimit *string `json:"oom_limit"`
	OOMGroup *string `json:"oom_group"`
	// Killed are those of the killed that are known by name.
	Killed List[Process] `json:"killed"`
	// MemoryPeak is the most that was used, in bytes; nil where it is not known.
	MemoryPeak *uint64 `json:"memory_peak"`
	// TasksRefused is how often a process was refused for TasksMax.
	TasksRefused uint64 `json:"tasks_refused"`
	// Gaps name what was asked for and could not be enforced.
	Gaps List[string] `json:"gaps"`
}

// Failure is the document of a run that failed closed: nothing ran.
type Failure struct {
	// Status is filled in by JSON.
	Status Status `json:"status"`
	// ErrorCode is an identifier as in GXT_CAGE_CONFIG_INVALID.
	ErrorCode string       `json:"error_code"`
	Message   string       `json:"message"`
	FixHints  List[string] `json:"fix_hints"`
	ExitCode  int          `json:"exit_code"`
}
