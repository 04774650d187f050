package report_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"cage/report"
	"cage/report/reporttest"
	"cage/rules"
)

func id(c string) *string {
	text := strings.Repeat(c, 40)
	return &text
}

func pointer(text string) *string { return &text }

// checks are checks of every shape, with names that readers of no format may
// obey.
func checks() map[string]report.Check {
	clean := report.Check{Root: "/w/repo", Scope: report.ScopeStaged}
	found := report.Check{
		Root: "/w/repo", Scope: report.ScopeRange, Range: pointer("main..HEAD"), Commits: 2, Overrides: []string{"infra", "a", "a"},
		Warnings: []string{"100% of\nHEAD"},
		Findings: []report.CheckFinding{
			{Name: report.NameOf("x:y/%41,b\r\n::error::c"), Kind: report.Added, Rule: rules.Protect, Source: rules.CageYAML, Counts: true, Commit: id("a"), ObjectAfter: id("1"), ModeAfter: pointer("100644")},
			{Name: report.NameOf("\xff/.env"), Kind: report.Deleted, Rule: rules.Secrets, Source: rules.Builtin, Counts: true, Commit: id("b"), ObjectBefore: id("2"), ModeBefore: pointer("120000")},
			{Name: report.NameOf("go.sum"), Kind: report.Modified, Rule: rules.Lockfile, Source: rules.Builtin, Commit: id("b"), ObjectBefore: id("2"), ObjectAfter: id("3"), ModeBefore: pointer("100644"), ModeAfter: pointer("100644")},
			{Name: report.NameOf("infra/a"), Kind: report.Modified, Rule: rules.Protect, Source: rules.CageYAML, Overridden: true, Commit: id("a"), ModeBefore: pointer("160000"), ModeAfter: pointer("160000")},
		},
	}
	listed := report.Check{Root: "/w/repo", Scope: report.ScopePrePush, Commits: 1, Findings: found.Findings[2:]}
	edit := report.Check{Root: "/w/repo", Scope: report.ScopeEdit, Findings: []report.CheckFinding{
		{Name: report.NameOf("../x"), Kind: report.Added, Rule: rules.GitControl, Source: rules.Builtin, Counts: true}}}
	narrowed := report.Check{Root: "/w/repo", Scope: report.ScopeStaged, Paths: []report.Name{report.NameOf("infra/")}}
	narrow := report.Check{
		Root: "/w/repo", Scope: report.ScopeRange, Range: pointer("main..HEAD"), Commits: 3, Findings: found.Findings[:1],
		Paths: []report.Name{report.NameOf("x:y/"), report.NameOf("b\xff"), report.NameOf("x:y/"), report.NameOf("c"), report.NameOf("d"), report.NameOf("e"), report.NameOf("f")},
	}
	all := map[string]report.Check{"narrowed": narrowed, "narrow": narrow, "clean": clean, "found": found, "listed": listed, "edit": edit}
	for name, c := range all {
		c.Judge()
		all[name] = c
	}
	return all
}

// Promise: every document holds to its schema, and to that of SARIF as OASIS
// published it.
func TestCheckDocuments(t *testing.T) {
	published := sarifSchema(t)
	for name, c := range checks() {
		out, err := c.JSON()
		if err != nil {
			t.Fatal(err)
		}
		if err := reporttest.ValidateBy(report.CheckSchema(), out); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		out, err = c.SARIF()
		if err != nil {
			t.Fatal(err)
		}
		if err := reporttest.ValidateBy(published, out); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	log, err := checks()["found"].SARIF()
	if err != nil {
		t.Fatal(err)
	}
	if reporttest.ValidateBy(published, bytes.ReplaceAll(log, []byte(`"fail"`), []byte(`"failed"`))) == nil {
		t.Error("the published schema takes a kind that it does not know")
	}
	broken := checks()["found"]
	broken.Status = report.CheckClean
	out, err := broken.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if reporttest.ValidateBy(report.CheckSchema(), out) == nil {
		t.Error("the schema takes a clean check with findings")
	}
}

// sarifSchema is the schema of SARIF 2.1.0 as OASIS published it.
func sarifSchema(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/sarif-schema-2.1.0.json")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestCheckFieldOrder(t *testing.T) {
	out, err := checks()["found"].JSON()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(`report_schema status exit_code root scope range paths commits overrides findings warnings`)
	if got := keys(t, out); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	var back report.Check
	if err := json.Unmarshal(out, &back); err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, f := range back.Findings {
		order = append(order, f.Bytes())
	}
	if want := []string{"go.sum", "infra/a", "x:y/%41,b\r\n::error::c", "\xff/.env"}; !slices.Equal(order, want) {
		t.Errorf("findings in the order %q", order)
	}
	if !slices.Equal(back.Overrides, []string{"a", "infra"}) {
		t.Errorf("overrides %q", back.Overrides)
	}
}

// Promise: programs that show SARIF find the file, by its bytes, and tell what
// counts from what does not.
func TestCheckSARIF(t *testing.T) {
	out, err := checks()["found"].SARIF()
	if err != nil {
		t.Fatal(err)
	}
	var log struct {
		Runs []struct {
			Invocations []struct{ ExitCode int }
			Tool        struct {
				Driver struct{ Rules []struct{ ID string } }
			}
			Results []struct {
				RuleID, Kind, Level string
				RuleIndex           int
				Suppressions        []any
				PartialFingerprints map[string]string
				Locations           []struct {
					PhysicalLocation struct{ ArtifactLocation struct{ URI string } }
				}
			}
		}
	}
	if err := json.Unmarshal(out, &log); err != nil {
		t.Fatal(err)
	}
	run := log.Runs[0]
	if code := run.Invocations[0].ExitCode; code != 3 {
		t.Errorf("the invocation exited %d", code)
	}
	seen := map[string]bool{}
	var got []string
	for _, result := range run.Results {
		place := result.Locations[0].PhysicalLocation
		line := place.ArtifactLocation.URI + " " + result.RuleID + " " + result.Kind + " " + result.Level
		if len(result.Suppressions) > 0 {
			line += " suppressed"
		}
		if rule := run.Tool.Driver.Rules[result.RuleIndex]; rule.ID != result.RuleID {
			t.Errorf("%s has the index of %s", line, rule.ID)
		}
		got = append(got, line)
		seen[result.PartialFingerprints["cageChange/v1"]] = true
	}
	want := []string{
		"go.sum lockfile informational none",
		"infra/a cage_protect informational none suppressed",
		"x%3Ay/%2541%2Cb%0D%0A%3A%3Aerror%3A%3Ac cage_protect fail error",
		"%FF/.env secrets fail error",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(seen) != len(got) {
		t.Errorf("%d fingerprints of %d findings", len(seen), len(got))
	}
}

// Promise: no name can end a workflow command or begin another.
func TestCheckAnnotations(t *testing.T) {
	want := `::notice file=go.sum,title=cage lockfile::go.sum is modified, which lockfile protects, in commit bbbbbbbbbbbb; only listed.
::notice file=infra/a,title=cage cage_protect::infra/a is modified, which cage_protect protects, in commit aaaaaaaaaaaa; overridden.
::error file=x%3Ay/%2541%2Cb%0D%0A%3A%3Aerror%3A%3Ac,title=cage cage_protect::"x:y/%2541,b\r\n::error::c" is added, which cage_protect protects, in commit aaaaaaaaaaaa.
::error file=` + "\uFFFD" + `/.env,title=cage secrets::"\xff/.env" is deleted, which secrets protects, in commit bbbbbbbbbbbb.
::warning title=cage::100%25 of%0AHEAD
`
	if got := checks()["found"].Annotations(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestCheckSummary(t *testing.T) {
	for name, want := range map[string]string{
		"clean":    "cage: no protected path is changed in what is staged\n",
		"narrowed": "cage: no protected path below infra/ is changed in what is staged\n",
		"narrow": `cage: 1 protected path at or below "b\xff", c, d, e, f and 1 more is changed in 3 commits of main..HEAD
  finding  added     "x:y/%41,b\r\n::error::c"  (cage_protect)  in aaaaaaaaaaaa
fix: take the change out of the commit that makes it; or, if a person approves it, pass --allow-override <path>
`,
		"found": `cage: warning: 100% of\nHEAD
cage: OVERRIDE: changes to a, infra are listed and let through, in this check
cage: 2 protected paths are changed in 2 commits of main..HEAD; 2 only listed
  listed   modified  go.sum                     (lockfile)  in bbbbbbbbbbbb
  listed   modified  infra/a                    (cage_protect)  in aaaaaaaaaaaa  overridden
  finding  added     "x:y/%41,b\r\n::error::c"  (cage_protect)  in aaaaaaaaaaaa
  finding  deleted   "\xff/.env"                (secrets)  in bbbbbbbbbbbb
fix: take the change out of the commit that makes it; or, if a person approves it, pass --allow-override <path>
`,
		"listed": `cage: no protected path is changed in 1 outgoing commit; 2 only listed
  listed   modified  go.sum   (lockfile)  in bbbbbbbbbbbb
  listed   modified  infra/a  (cage_protect)  in aaaaaaaaaaaa  overridden
`,
	} {
		if got := checks()[name].Summary(false); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	}
}

// Promise: what an agent reads is one line, however many and whatever names.
func TestCheckReason(t *testing.T) {
	if got, want := checks()["edit"].Reason(), "cage: 1 protected path is changed by what the tool is about to do: ../x (git_control); leave it as it is, and tell the user what you wanted to change\n"; got != want {
		t.Errorf("got %q", got)
	}
	many := report.Check{Scope: report.ScopeWorkTree}
	for _, name := range []string{"a\n", "b", "c", "d", "e", "f", "g"} {
		many.Findings = append(many.Findings, report.CheckFinding{Name: report.NameOf(name), Rule: rules.Protect, Counts: true})
	}
	many.Judge()
	want := `cage: 7 protected paths are changed in the index and the work tree: "a\n" (cage_protect), b (cage_protect), c (cage_protect), d (cage_protect), e (cage_protect) and 2 more; put it back as HEAD has it, or tell the user, who can approve it` + "\n"
	if got := many.Reason(); got != want {
		t.Errorf("got %q", got)
	}
	failure := report.Failure{ErrorCode: "GXT_X", Message: "a\nb", FixHints: []string{"c\nd", "e"}}
	if got, want := failure.OneLine(), "cage: [GXT_X] a b; fix: c d; or e\n"; got != want {
		t.Errorf("got %q", got)
	}
}
