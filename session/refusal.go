package session

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"

	"cage/report"
	"cage/rules"
	"cage/snapshot"
)

// The codes of refusals that no other package has cause for.
const (
	codeUnreadable = "GXT_CAGE_BASELINE_UNREADABLE"
	codeLimits     = "GXT_CAGE_LIMITS_EXCEEDED"
	codeReportFile = "GXT_CAGE_REPORT_FILE_INVALID"
	// codeInterrupted: a signal came before the command was started.
	codeInterrupted = "GXT_CAGE_INTERRUPTED"
)

func refusal(code, hint string, cause error) *Refusal {
	if scarce := scarcityHint(cause); scarce != "" {
		hint = scarce
	}
	if hint == "" {
		hint = plainHint(code)
	}
	return report.Refuse(code, hint, cause)
}

// scarcityHint is what to do where the caller's limits leave the cage too
// little, whatever it was about to do with it.
func scarcityHint(cause error) string {
	switch {
	case errors.Is(cause, syscall.EMFILE), errors.Is(cause, syscall.ENFILE):
		return "allow more open files (ulimit -n), then start again"
	case errors.Is(cause, syscall.ENOMEM):
		return "allow more memory (ulimit -v), then start again"
	}
	return ""
}

// plainHint is what can be said of a code where nobody knew anything nearer.
func plainHint(code string) string {
	switch rules.Code(code) {
	case rules.CodeConfig:
		return "correct " + rules.ConfigFile
	case rules.CodeManifest:
		return "correct the manifest"
	default:
		return "see to what the system says above, then start again"
	}
}

// refuse makes a Refusal of any error on the way to the start.
func (s *session) refuse(err error) *Refusal {
	var (
		already *Refusal
		invalid *rules.Error
		limits  *snapshot.LimitsError
		entry   *snapshot.EntryError
	)
	switch {
	case errors.As(err, &already):
		return already
	case errors.As(err, &invalid):
		return refusal(string(invalid.Code), invalid.Hint, invalid)
	case errors.As(err, &limits):
		return refusal(codeLimits, limitsHint(limits), errors.New(limitsText(s.layout, limits)))
	case errors.As(err, &entry):
		return refusal(codeUnreadable, s.entryHint(entry), s.entryText(entry))
	default:
		return refusal(report.CodeHost, "", err)
	}
}

func (s *session) entryText(e *snapshot.EntryError) error {
	name := named(s.layout, e.Path)
	if errors.Is(e.Err, snapshot.ErrLocked) {
		return fmt.Errorf("%s stands there: %w", name, e.Err)
	}
	return fmt.Errorf("cannot protect %s: %w", name, reason(e.Err))
}

// named spells a path for a message.
func named(layout rules.Layout, p rules.Path) string { return report.Quote(display(layout, p)) }

// limitsText gives the full counts and what weighs most.
func limitsText(layout rules.Layout, e *snapshot.LimitsError) string {
	var b strings.Builder
	fmt.Fprintf(&b, "the protected set is too large: %d files (limit %d) with %d bytes (limit %d)",
		e.Files, e.Limits.Files, e.Bytes, e.Limits.TotalBytes)
	if n := len(e.Oversize); n > 0 {
		fmt.Fprintf(&b, ", %d of them over %d bytes each", n, e.Limits.FileBytes)
	}
	if e.Files > e.Limits.Files {
		b.WriteString("; by rule:")
		for _, rule := range slices.Sorted(maps.Keys(e.ByRule)) {
			fmt.Fprintf(&b, " %s %d", rule, e.ByRule[rule])
		}
	}
	for i, o := range offenders(e) {
		if i == 0 {
			b.WriteString("; the largest:")
		}
		fmt.Fprintf(&b, " %s (%d)", named(layout, o.Path), o.Size)
	}
	return b.String()
}

// offenders returns what is named of a set that is too large: the largest of
// all, or those over the limit for one file where only that is exceeded.
func offenders(e *snapshot.LimitsError) []snapshot.Offender {
	if e.Files > e.Limits.Files || e.Bytes > e.Limits.TotalBytes {
		return e.Largest
	}
	return e.Oversize[:min(len(e.Oversize), snapshot.MostOffenders)]
}

func limitsHint(e *snapshot.LimitsError) string {
	var ways []string
	if e.Files > e.Limits.Files {
		ways = append(ways, "--max-files")
	}
	if e.Bytes > e.Limits.TotalBytes {
		ways = append(ways, "--max-total-bytes")
	}
	if len(e.Oversize) > 0 {
		ways = append(ways, "--max-file-bytes")
	}
	hint := "narrow the entries of .cage.yaml, or raise " + strings.Join(ways, " and ")
	if e.Files <= e.Limits.Files {
		hint += ", or take --oversize detect, which undoes no change to what is too large"
	}
	return hint
}

func (s *session) entryHint(e *snapshot.EntryError) string {
	switch {
	case errors.Is(e.Err, snapshot.ErrLocked):
		return "wait until git has finished; if no git is running, remove the lock file"
	case errors.Is(e.Err, snapshot.ErrBeingWritten):
		return "wait until it is written, then start again"
	}
	hint := "make it readable"
	v, ok := s.plan.Classify(e.Path)
	if ok && e.Path.Anchor == rules.Root && v.Rule != rules.GitControl && v.Rule != rules.CageConfig {
		hint += ", or have its changes only listed in this run: --allow-override " + named(s.layout, e.Path)
	}
	return hint
}
