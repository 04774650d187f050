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
	// Elsewhere is set where another session guards the path, so that this one
	// only reports changes there; Mode is then Report.
	Elsewhere bool
	// Transient is set for a name that editors use for a moment (`.*.sw?`,
	// `*~`) which only a revert tree around it covers: it is left alone while
	// it lives, and removed at the end of the run.
	Transient bool
}

// fixed reports whether no override touches the verdict.
func (v Verdict) fixed() bool { return v.Rule == GitControl || v.Rule == CageConfig }

// or returns the verdict of two that counts.
func (v Verdict) or(w Verdict) Verdict {
	if w.Rule != "" && (v.Rule == "" || w.beats(v)) {
		return w
	}
	return v
}

// beats reports whether v counts and w does not, where both match.
func (v Verdict) beats(w Verdict) bool { return v.weight() > w.weight() }

// weight orders verdicts: revert before report, what was downgraded between
// them, then the order of the rules; no verdict weighs nothing.
func (v Verdict) weight() int {
	const rules = 8
	weight := v.Rule.weight()
	switch {
	case v.Rule == "":
		return 0
	case v.Mode == Revert:
		return weight + 2*rules
	case v.Overridden:
		return weight + rules
	default:
		return weight
	}
}

func (r Rule) weight() int {
	switch r {
	case CIConfig:
		return 7
	case Secrets:
		return 6
	case GitControl:
		return 5
	case Lockfile:
		return 4
	case CageConfig:
		return 3
	case ForbiddenZone:
		return 2
	default:
		return 1
	}
}
