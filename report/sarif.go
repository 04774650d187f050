package report

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/url"
	"strings"

	"cage/rules"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"
)

// SARIF renders the check as a SARIF 2.1.0 log: findings that count are errors,
// the others information, and what was overridden is suppressed. Paths are relative
// to the root, with every byte that is no plain text encoded in percents.
func (c Check) SARIF() ([]byte, error) {
	run := sarif.NewRun()
	driver := sarif.NewToolComponent().WithName("cage")
	run.Tool = sarif.NewTool().WithDriver(driver)
	run.WithColumnKind("utf16CodeUnits")
	for _, rule := range checkRules() {
		driver.AddRule(sarif.NewRule(string(rule.id)).
			WithShortDescription(sarif.NewMultiformatMessageString().WithText(rule.text)))
	}
	for _, f := range c.sorted() {
		run.AddResult(f.result().WithRuleIndex(run.GetRuleIndex(string(f.Rule))))
	}
	invocation := sarif.NewInvocation().WithExecutionSuccessful(true).WithExitCode(c.ExitCode)
	for _, warning := range c.Warnings {
		invocation.AddToolExecutionNotification(sarif.NewNotification().WithLevel("warning").
			WithMessage(sarif.NewTextMessage(Text(warning))))
	}
	run.AddInvocation(invocation)
	var out bytes.Buffer
	if err := sarif.NewReport().AddRun(run).PrettyWrite(&out); err != nil {
		return nil, fmt.Errorf("write SARIF: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

func (f CheckFinding) result() *sarif.Result {
	// A change has no line; readers of SARIF want one, and show the file by it.
	region := sarif.NewRegion().WithStartLine(1)
	place := sarif.NewPhysicalLocation().WithRegion(region).
		WithArtifactLocation(sarif.NewArtifactLocation().WithURI(relativeURI(f.Bytes())))
	// A result that is no failure has no level, by the format.
	kind, level := "fail", "error"
	if !f.Counts {
		kind, level = "informational", "none"
	}
	result := sarif.NewRuleResult(string(f.Rule)).WithKind(kind).WithLevel(level).
		WithMessage(sarif.NewTextMessage(f.sentence())).
		AddLocation(sarif.NewLocation().WithPhysicalLocation(place)).
		WithPartialFingerprints(map[string]string{"cageChange/v1": f.fingerprint()})
	if f.Overridden {
		result.AddSuppression(sarif.NewSuppression().WithKind("external").WithJustification("--allow-override"))
	}
	return result
}

// sentence says in one line what a finding is, in words for people.
func (f CheckFinding) sentence() string {
	text := fmt.Sprintf("%s is %s, which %s protects", Quote(f.Bytes()), f.Kind, f.Rule)
	if f.Commit != nil {
		text += ", in commit " + abbreviate(*f.Commit)
	}
	switch {
	case f.Overridden:
		text += "; overridden"
	case !f.Counts:
		text += "; only listed"
	}
	return text + "."
}

// fingerprint tells findings apart, and is the same for the same one in another
// run: that a commit is rebased does not make it another.
func (f CheckFinding) fingerprint() string {
	object := ""
	if f.ObjectAfter != nil {
		object = *f.ObjectAfter
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{string(f.Rule), string(f.Kind), object, f.Bytes()}, "\x00")))
	return fmt.Sprintf("%x", sum)
}

// relativeURI spells the bytes of a path as a relative URI reference. A colon in
// the first segment would make a scheme of what stands before it.
func relativeURI(path string) string {
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		segments[i] = strings.ReplaceAll(url.PathEscape(segment), ":", "%3A")
	}
	return strings.Join(segments, "/")
}

// checkRule is a rule as programs that show findings explain it.
type checkRule struct {
	id   rules.Rule
	text string
}

func checkRules() []checkRule {
	return []checkRule{
		{rules.CIConfig, "CI configuration is protected."},
		{rules.Secrets, "Files with secrets are protected."},
		{rules.GitControl, "Files that decide what git runs are protected."},
		{rules.Lockfile, "Changes to lockfiles are listed."},
		{rules.CageConfig, "The rules themselves are protected."},
		{rules.ForbiddenZone, "The forbidden zones of the agent manifest are protected."},
		{rules.Protect, "Paths that .cage.yaml names are protected."},
	}
}
