package session

import (
	"errors"
	"fmt"
	"strings"

	"cage/report"
	"cage/rules"
	"cage/snapshot"
)

// The codes of refusals that no other package names.
const (
	codeRoot       = "GXT_CAGE_ROOT_UNUSABLE"
	codeGit        = "GXT_CAGE_GIT_FAILED"
	codeUnreadable = "GXT_CAGE_BASELINE_UNREADABLE"
	codeLimits     = "GXT_CAGE_LIMITS_EXCEEDED"
	codeReportFile = "GXT_CAGE_REPORT_FILE_INVALID"
	codeHost       = "GXT_CAGE_HOST_UNUSABLE"
)

// exitRefused is the exit code of everything that fails closed.
const exitRefused = 2

func refusal(code, hint string, cause error) *Refusal {
	r := &Refusal{Failure: report.Failure{ErrorCode: code, Message: cause.Error(), ExitCode: exitRefused}, Cause: cause}
	if hint != "" {
		r.FixHints = report.List[string]{hint}
	}
	return r
}

// refuse makes a Refusal of any error on the way to the start.
func refuse(err error) error {
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
		return refusal(codeLimits, limitsHint(limits), errors.New(limitsText(limits)))
	case errors.As(err, &entry):
		return refusal(codeUnreadable, entryHint(entry), fmt.Errorf("cannot protect %s: %w", report.Quote(entry.Path.Rel), entry.Err))
	default:
		return refusal(codeHost, "", err)
	}
}

func limitsText(e *snapshot.LimitsError) string {
	var b strings.Builder
	fmt.Fprintf(&b, "the protected set is too large: %d files (limit %d) with %d bytes (limit %d)",
		e.Files, e.Limits.Files, e.Bytes, e.Limits.TotalBytes)
	if n := len(e.Oversize); n > 0 {
		fmt.Fprintf(&b, ", %d of them over %d bytes", n, e.Limits.FileBytes)
	}
	b.WriteString("; the largest:")
	for _, o := range e.Largest {
		fmt.Fprintf(&b, " %s (%d)", report.Quote(o.Path.Rel), o.Size)
	}
	return b.String()
}

func limitsHint(e *snapshot.LimitsError) string {
	if e.Files > e.Limits.Files {
		return "narrow the entries of .cage.yaml, or raise --max-files"
	}
	return "narrow the entries of .cage.yaml, raise --max-file-bytes or --max-total-bytes, or take --oversize detect"
}

func entryHint(e *snapshot.EntryError) string {
	if errors.Is(e.Err, snapshot.ErrBeingWritten) {
		return "wait until it is written, then start again"
	}
	return "make the file readable, or relax its rule for this run with --allow-override"
}
