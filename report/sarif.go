package report

import (
	"crypto/sha256"
	"fmt"
	"net/url"
	"strings"

	"cage/rules"
)

// The parts of a SARIF 2.1.0 log that are written here, by the names and in the
// order of the format. A library for it would bring an HTTP client and a JSON
// Schema validator into every start of the program.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool         `json:"tool"`
		ColumnKind  string            `json:"columnKind"`
		Invocations []sarifInvocation `json:"invocations"`
		Results     List[sarifResult] `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name  string      `json:"name"`
		Rules []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string       `json:"id"`
		ShortDescription sarifMessage `json:"shortDescription"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	sarifInvocation struct {
		ExecutionSuccessful        bool                    `json:"executionSuccessful"`
		ExitCode                   int                     `json:"exitCode"`
		ToolExecutionNotifications List[sarifNotification] `json:"toolExecutionNotifications"`
	}
	sarifNotification struct {
		Level   string       `json:"level"`
		Message sarifMessage `json:"message"`
	}
	sarifResult struct {
		RuleID              string             `json:"ruleId"`
		RuleIndex           int                `json:"ruleIndex"`
		Kind                string             `json:"kind"`
		Level               string             `json:"level"`
		Message             sarifMessage       `json:"message"`
		Locations           []sarifLocation    `json:"locations"`
		PartialFingerprints map[string]string  `json:"partialFingerprints"`
		Suppressions        []sarifSuppression `json:"suppressions,omitempty"`
	}
	sarifLocation struct {
		PhysicalLocation sarifPhysicalLocation `json:"physicalLocation"`
	}
	sarifPhysicalLocation struct {
		ArtifactLocation sarifArtifact `json:"artifactLocation"`
		Region           sarifRegion   `json:"region"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
	}
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Justification string `json:"justification"`
	}
)

// SARIF renders the check as a SARIF 2.1.0 log: findings that count are errors,
// the others information, and what was overridden is suppressed. Paths are relative
// to the root, with every byte that is no plain text encoded in percents.
func (c Check) SARIF() ([]byte, error) {
	run := sarifRun{
		ColumnKind:  "utf16CodeUnits",
		Invocations: []sarifInvocation{{ExecutionSuccessful: true, ExitCode: c.ExitCode}},
	}
	run.Tool.Driver.Name = "cage"
	index := make(map[rules.Rule]int)
	for i, rule := range checkRules() {
		index[rule.id] = i
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{string(rule.id), sarifMessage{rule.text}})
	}
	for _, f := range c.sorted() {
		run.Results = append(run.Results, f.result(index[f.Rule]))
	}
	for _, warning := range c.Warnings {
		said := &run.Invocations[0].ToolExecutionNotifications
		*said = append(*said, sarifNotification{"warning", sarifMessage{Text(warning)}})
	}
	const schema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
	return encode(sarifLog{schema, "2.1.0", []sarifRun{run}}, "  ")
}

func (f CheckFinding) result(rule int) sarifResult {
	// A change has no line; readers of SARIF want one, and show the file by it.
	place := sarifPhysicalLocation{sarifArtifact{relativeURI(f.Bytes())}, sarifRegion{StartLine: 1}}
	result := sarifResult{
		RuleID: string(f.Rule), RuleIndex: rule, Kind: "fail", Level: "error",
		Message:             sarifMessage{f.sentence()},
		Locations:           []sarifLocation{{place}},
		PartialFingerprints: map[string]string{"cageChange/v1": f.fingerprint()},
	}
	if !f.Counts {
		// A result that is no failure has no level, by the format.
		result.Kind, result.Level = "informational", "none"
	}
	if f.Overridden {
		result.Suppressions = []sarifSuppression{{"external", "--allow-override"}}
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
