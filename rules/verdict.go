package rules

// Rule is a rule's identifier as reports spell it.
type Rule string

// The rules, in the order that decides between equals.
const (
	CIConfig      Rule = "ci_config"
	Secrets       Rule = "secrets"
	GitControl    Rule = "git_control"
	Lockfile      Rule = "lockfile"
	CageConfig    Rule = "cage_config"
	ForbiddenZone Rule = "manifest_forbidden_zone"
	Protect       Rule = "cage_protect"
)

// Source says who asked for a rule.
type Source string

// The sources of rules.
const (
	Builtin  Source = "builtin"
	Manifest Source = "manifest"
	CageYAML Source = "cage_yaml"
)

// Mode says what a rule does about a change.
type Mode uint8

const (
	// Report lists a change and leaves it.
	Report Mode = iota
	// Revert puts the baseline back.
	Revert
)

// Verdict is what the plan says about one path.
type Verdict struct {
	Rule   Rule
	Source Source
	Mode   Mode
	// Overridden is set where a revert rule was downgraded for this run; Mode
	// is then Report.
	Overridden bool
}
