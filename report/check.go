package report

import (
	"fmt"
	"slices"
	"strings"

	"cage/rules"
)

// CheckSchemaID is what `report_schema` says in every [Check].
const CheckSchemaID = "gantry.cage-check.v1"

// Check is the document of a check: which changes of protected paths were
// found in what was judged.
type Check struct {
	// ReportSchema is filled in by JSON.
	ReportSchema string      `json:"report_schema"`
	Status       CheckStatus `json:"status"`
	ExitCode     int         `json:"exit_code"`
	// Root is absolute.
	Root  string     `json:"root"`
	Scope CheckScope `json:"scope"`
	// Range is what was asked for, as it was spelled; nil unless Scope is
	// [ScopeRange].
	Range *string `json:"range"`
	// Paths narrow the findings to what they are and hold, relative to the root,
	// those of directories with a slash at the end; none narrows nothing. JSON
	// sorts them and drops repetitions.
	Paths List[Name] `json:"paths"`
	// Commits counts the commits that were judged, where Scope is about any.
	Commits int `json:"commits"`
	// Overrides are the paths that a person let through; JSON sorts them and
	// drops repetitions.
	Overrides List[string] `json:"overrides"`
	// Findings has one row for each protected path and commit; JSON sorts them
	// by path, then as they came.
	Findings List[CheckFinding] `json:"findings"`
	// Warnings are sentences.
	Warnings List[string] `json:"warnings"`
}

// CheckStatus is the verdict of a check.
type CheckStatus string

// The verdicts, and their exit codes.
const (
	CheckClean    CheckStatus = "ok"
	CheckFindings CheckStatus = "findings"

	ExitClean    = 0
	ExitFindings = 3
)

// CheckScope says what was judged.
type CheckScope string

// The scopes.
const (
	// ScopeStaged: the index against HEAD.
	ScopeStaged CheckScope = "staged"
	// ScopeRange: commits.
	ScopeRange CheckScope = "range"
	// ScopePrePush: the commits that a push would send.
	ScopePrePush CheckScope = "pre_push"
	// ScopeEdit: the files that a tool is about to change.
	ScopeEdit CheckScope = "edit"
	// ScopeWorkTree: index and work tree against HEAD.
	ScopeWorkTree CheckScope = "work_tree"
)

// CheckFinding is one change of a protected path.
type CheckFinding struct {
	// Name is relative to the root.
	Name
	Kind   Kind         `json:"kind"`
	Rule   rules.Rule   `json:"rule"`
	Source rules.Source `json:"source"`
	// Counts is false for a change that is only listed: under a rule in report
	// mode, or overridden.
	Counts     bool `json:"counts"`
	Overridden bool `json:"overridden"`
	// Commit is the id of the commit that makes the change; nil where there is
	// none yet.
	Commit *string `json:"commit"`
	// ObjectBefore and ObjectAfter are git's ids of the contents; nil where
	// nothing stood, or where git has no id of it.
	ObjectBefore *string `json:"object_before"`
	ObjectAfter  *string `json:"object_after"`
	// ModeBefore and ModeAfter are git's modes, such as 100644; nil where nothing
	// stood.
	ModeBefore *string `json:"mode_before"`
	ModeAfter  *string `json:"mode_after"`
}

// Judge fills in status and exit code by the findings.
func (c *Check) Judge() {
	c.Status, c.ExitCode = CheckClean, ExitClean
	if slices.ContainsFunc(c.Findings, func(f CheckFinding) bool { return f.Counts }) {
		c.Status, c.ExitCode = CheckFindings, ExitFindings
	}
}

// JSON renders the document like [Document.JSON].
func (c Check) JSON() ([]byte, error) {
	c.ReportSchema = CheckSchemaID
	c.Overrides = sortedUnique(c.Overrides)
	c.Findings = c.sorted()
	c.Paths = c.narrowed()
	return encode(c, "  ")
}

// narrowed returns the paths by their bytes, each once.
func (c Check) narrowed() List[Name] {
	byBytes := func(a, b Name) int { return strings.Compare(a.Bytes(), b.Bytes()) }
	return slices.Compact(slices.SortedFunc(slices.Values(c.Paths), byBytes))
}

// sorted returns the findings by the bytes of their path.
func (c Check) sorted() List[CheckFinding] {
	findings := slices.Clone(c.Findings)
	slices.SortStableFunc(findings, func(a, b CheckFinding) int { return strings.Compare(a.Bytes(), b.Bytes()) })
	return findings
}

// Summary is what people read of a check: warnings and overrides, a line for
// the verdict, one for each finding, and what to do.
func (c Check) Summary(colour bool) string {
	var b strings.Builder
	for _, warning := range c.Warnings {
		b.WriteString(Warning(warning))
	}
	if len(c.Overrides) > 0 {
		b.WriteString("cage: OVERRIDE: changes to " + quoteAll(sortedUnique(c.Overrides)) + " are listed and let through, in this check\n")
	}
	b.WriteString("cage: " + c.Line() + "\n")
	findings := c.sorted()
	width := 0
	for _, f := range findings {
		width = max(width, runes(Quote(f.Bytes())))
	}
	for _, f := range findings {
		b.WriteString(f.line(paint(colour), width))
	}
	if c.Status == CheckFindings {
		b.WriteString(fixLine(c.fix()))
	}
	return b.String()
}

// Line says in one line what was found.
func (c Check) Line() string {
	changed := map[string]bool{}
	listed := 0
	for _, f := range c.Findings {
		if f.Counts {
			changed[f.Bytes()] = true
		} else {
			listed++
		}
	}
	text, are := "no protected path", " is changed "
	if len(changed) > 0 {
		text = count(len(changed), "protected path", "protected paths")
	}
	if len(changed) > 1 {
		are = " are changed "
	}
	text += c.where() + are + c.judged()
	if listed > 0 {
		text += fmt.Sprintf("; %d only listed", listed)
	}
	return text
}

// where names what a check was narrowed to.
func (c Check) where() string {
	var names []string
	directories := 0
	for _, path := range c.narrowed() {
		names = append(names, path.Bytes())
		if strings.HasSuffix(path.Bytes(), "/") {
			directories++
		}
	}
	switch {
	case len(names) == 0:
		return ""
	case directories == len(names):
		return " below " + quoteSome(names)
	case directories == 0:
		return " at " + quoteSome(names)
	default:
		return " at or below " + quoteSome(names)
	}
}

// judged names what was judged.
func (c Check) judged() string {
	switch c.Scope {
	case ScopeRange:
		return "in " + count(c.Commits, "commit", "commits") + " of " + Quote(*c.Range)
	case ScopePrePush:
		return "in " + count(c.Commits, "outgoing commit", "outgoing commits")
	case ScopeEdit:
		return "by what the tool is about to do"
	case ScopeWorkTree:
		return "in the index and the work tree"
	default:
		return "in what is staged"
	}
}

func (c Check) fix() string {
	switch c.Scope {
	case ScopeRange, ScopePrePush:
		return "take the change out of the commit that makes it; or, if a person approves it, pass --allow-override <path>"
	default:
		return "git restore --staged <path>; or, if a person approves it, see that " +
			"cage check --allow-override <path> is content and commit with --no-verify"
	}
}

// mostNamed is how many paths a reason names.
const mostNamed = 5

// Reason says in one line why an agent is stopped, and what it can do.
func (c Check) Reason() string {
	var names []string
	more := 0
	for _, f := range c.sorted() {
		switch {
		case !f.Counts:
		case len(names) == mostNamed:
			more++
		default:
			names = append(names, Quote(f.Bytes())+" ("+string(f.Rule)+")")
		}
	}
	text := "cage: " + c.Line() + ": " + strings.Join(names, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if c.Scope == ScopeEdit {
		return text + "; leave it as it is, and tell the user what you wanted to change\n"
	}
	return text + "; put it back as HEAD has it, or tell the user, who can approve it\n"
}

func (f CheckFinding) line(p paint, width int) string {
	style, word := red, "finding"
	if !f.Counts {
		style, word = dim, "listed"
	}
	text := "  " + p.in(style, pad(word, 8)) + " " + pad(string(f.Kind), 8) + "  " + pad(Quote(f.Bytes()), width) +
		"  (" + string(f.Rule) + ")"
	if f.Commit != nil {
		text += "  in " + abbreviate(*f.Commit)
	}
	if f.Overridden {
		text += "  overridden"
	}
	return text + "\n"
}

// abbreviate shortens an object id for people.
func abbreviate(id string) string { return id[:min(len(id), 12)] }
