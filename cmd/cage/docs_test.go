package main

import (
	"encoding/json"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"cage/report"
	"cage/rules"
	"cage/spawn"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The documentation is held against the program: what one of them has, the
// other has.

// page reads a page, named relative to the top of the module.
func page(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// table returns the rows of the first table in a page whose header begins with
// the given cell, as trimmed cells.
func table(t *testing.T, name, header string) [][]string {
	t.Helper()
	var rows [][]string
	var before string
	inside := false
	for line := range strings.Lines(page(t, name)) {
		cells, isRow := cellsOf(line)
		switch {
		case !isRow && len(rows) > 0:
			return rows
		case !isRow:
			inside, before = false, ""
		case inside:
			rows = append(rows, cells)
		default:
			inside = before == header && strings.HasPrefix(cells[0], "---")
			before = cells[0]
		}
	}
	if len(rows) == 0 {
		t.Fatalf("%s has no table whose header begins with %q", name, header)
	}
	return rows
}

func cellsOf(line string) ([]string, bool) {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "|") || !strings.HasSuffix(line, "|") {
		return nil, false
	}
	const escaped = `\|`
	cells := strings.Split(strings.ReplaceAll(line[1:len(line)-1], escaped, "\x00"), "|")
	for i := range cells {
		cells[i] = strings.ReplaceAll(strings.TrimSpace(cells[i]), "\x00", "|")
	}
	return cells, true
}

// codeWords returns what stands between backquotes.
func codeWords(text string) []string {
	var words []string
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 {
			words = append(words, part)
		}
	}
	return words
}

// sameSet says where two sets differ.
func sameSet(t *testing.T, what string, have, want []string) {
	t.Helper()
	for _, word := range want {
		if !slices.Contains(have, word) {
			t.Errorf("%s: %s is missing", what, word)
		}
	}
	for _, word := range have {
		if !slices.Contains(want, word) {
			t.Errorf("%s: %s is there, but not in the program", what, word)
		}
	}
}

// Promise: the table of rooms that people read is the one that is enforced.
func TestContributingTable(t *testing.T) {
	written := map[string][]string{}
	for _, row := range table(t, "CONTRIBUTING.md", "package") {
		name := codeWords(row[0])[0]
		switch row[2] {
		case "everything":
			written[name] = []string{"*"}
		default:
			written[name] = codeWords(row[2])
		}
	}
	_, packages := house(t)
	var exist []string
	for _, p := range packages {
		exist = append(exist, p.path)
	}
	var listed, enforced []string
	for name := range written {
		listed = append(listed, name)
	}
	for name := range houseImports {
		enforced = append(enforced, name)
	}
	sameSet(t, "imports_test.go", enforced, exist)
	sameSet(t, "CONTRIBUTING.md", listed, enforced)
	for name, allowed := range houseImports {
		sameSet(t, "CONTRIBUTING.md, "+name, written[name], allowed)
	}
}

// Promise: every flag is explained, and none that is not there.
func TestFlagsAreExplained(t *testing.T) {
	var code int
	for name, command := range map[string]*cobra.Command{
		"docs/cage-run.md":     newRun(spawn.Stage{}, &code),
		"docs/cage-watch.md":   newWatch(&code),
		"docs/cage-check.md":   newCheck(&code),
		"docs/cage-review.md":  newReview(),
		"docs/cage-suggest.md": newSuggest(),
	} {
		var flags, explained []string
		command.Flags().VisitAll(func(flag *pflag.Flag) { flags = append(flags, "--"+flag.Name) })
		for line := range strings.Lines(page(t, name)) {
			if cells, ok := cellsOf(line); ok && strings.HasPrefix(cells[0], "`--") {
				flag, _, _ := strings.Cut(codeWords(cells[0])[0], " ")
				explained = append(explained, flag)
			}
		}
		sameSet(t, name, explained, flags)
	}
}

// Promise: every subcommand that does something is on a page.
func TestCommandsAreExplained(t *testing.T) {
	var code int
	var pages strings.Builder
	for _, name := range pagesOf(t, "docs") {
		pages.WriteString(page(t, name))
	}
	for _, name := range subcommands(newRoot(spawn.Stage{}, &code)) {
		if !strings.Contains(pages.String(), "`cage "+name) && !strings.Contains(pages.String(), "    cage "+name) {
			t.Errorf("no page tells of cage %s", name)
		}
	}
}

// stringsOf returns the string literals of the program's own files that match,
// sorted, each once.
func stringsOf(t *testing.T, packages []housePackage, match *regexp.Regexp) []string {
	t.Helper()
	found := map[string]bool{}
	for _, p := range packages {
		for _, file := range p.files {
			ast.Inspect(file, func(n ast.Node) bool {
				if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
					if text, err := strconv.Unquote(literal.Value); err == nil && match.MatchString(text) {
						found[text] = true
					}
				}
				return true
			})
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// firstWords returns what the first cells of a table have between backquotes.
func firstWords(t *testing.T, name, header string) []string {
	t.Helper()
	var words []string
	for _, row := range table(t, name, header) {
		words = append(words, codeWords(row[0])...)
	}
	return words
}

// Promise: every refusal is listed, and none that does not exist.
func TestErrorCodesAreListed(t *testing.T) {
	_, packages := house(t)
	codes := stringsOf(t, packages, regexp.MustCompile(`^GXT_[A-Z_]+$`))
	sameSet(t, "docs/exit-codes.md", firstWords(t, "docs/exit-codes.md", "`error_code`"), codes)
}

// Promise: every rule is listed in the order that decides between equals.
func TestRulesAreListed(t *testing.T) {
	written := firstWords(t, "docs/rules.md", "rule")
	want := []string{
		string(rules.CIConfig), string(rules.Secrets), string(rules.GitControl), string(rules.Lockfile),
		string(rules.CageConfig), string(rules.ForbiddenZone), string(rules.Protect),
	}
	if !slices.Equal(written, want) {
		t.Errorf("docs/rules.md lists %q, the program has %q", written, want)
	}
}

// Promise: every field and every word of a report is explained.
func TestReportIsExplained(t *testing.T) {
	const name = "docs/report.md"
	sameSet(t, name, firstWords(t, name, "field"), fieldsOf(reflect.TypeFor[report.Document]()))
	words := codeWords(page(t, name))
	for _, part := range []reflect.Type{
		reflect.TypeFor[report.Change](), reflect.TypeFor[report.Watch](), reflect.TypeFor[report.Halt](),
		reflect.TypeFor[report.CageConfig](), reflect.TypeFor[report.PushGuard](), reflect.TypeFor[report.Published](), reflect.TypeFor[report.PublishedChange](),
		reflect.TypeFor[report.Recovery](), reflect.TypeFor[report.Session](),
		reflect.TypeFor[report.Contest](), reflect.TypeFor[report.Lifetime](), reflect.TypeFor[report.Process](),
		reflect.TypeFor[report.Hygiene](), reflect.TypeFor[report.PrivateTmp](), reflect.TypeFor[report.Resources](), reflect.TypeFor[report.Failure](),
		reflect.TypeFor[report.AttributeError](),
	} {
		for _, field := range fieldsOf(part) {
			if !slices.Contains(words, field) {
				t.Errorf("%s: %s of %s is missing", name, field, part.Name())
			}
		}
	}
	sameSet(t, name, firstWords(t, name, "`outcome`"), []string{
		string(report.OutcomeReverted), string(report.OutcomeRemoved), string(report.OutcomeReported),
		string(report.OutcomeDetectOnly), string(report.OutcomeRevertFailed), string(report.OutcomeKept),
	})
	sameSet(t, name, firstWords(t, name, "`note`"), []string{
		string(report.NoteGitBookkeeping), string(report.NoteBranchSwitch),
		string(report.NoteTargetOutside), string(report.NoteGuardedElsewhere),
	})
}

// Promise: every field of a check is explained.
func TestCheckIsExplained(t *testing.T) {
	const name = "docs/cage-check.md"
	sameSet(t, name, firstWords(t, name, "field"), fieldsOf(reflect.TypeFor[report.Check]()))
	sameSet(t, name, firstWords(t, name, "field of a finding"), fieldsOf(reflect.TypeFor[report.CheckFinding]()))
}

// Promise: every area and every kind that the doctor names is explained, and in
// the schema.
func TestDoctorIsExplained(t *testing.T) {
	const name = "docs/cage-doctor.md"
	var schema struct {
		Defs struct {
			Finding struct {
				Properties struct{ Area struct{ Enum []string } }
			}
			Leftover struct {
				Properties struct{ Kind struct{ Enum []string } }
			}
		} `json:"$defs"`
	}
	if err := json.Unmarshal([]byte(report.DoctorSchema()), &schema); err != nil {
		t.Fatal(err)
	}
	areas := schema.Defs.Finding.Properties.Area.Enum
	sameSet(t, name, firstWords(t, name, "`area`"), areas)
	sameSet(t, name, firstWords(t, name, "`kind`"), schema.Defs.Leftover.Properties.Kind.Enum)
	_, packages := house(t)
	for _, p := range packages {
		if p.path != "internal/doctor" {
			continue
		}
		for _, area := range firstArguments(p, "ok", "note", "degraded") {
			if !slices.Contains(areas, area) {
				t.Errorf("the schema does not know the area %s", area)
			}
		}
	}
}

// fieldsOf returns the names that a struct's fields have in JSON.
func fieldsOf(of reflect.Type) []string {
	var names []string
	for _, field := range reflect.VisibleFields(of) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// Promise: every event of the session log is listed.
func TestEventsAreListed(t *testing.T) {
	_, packages := house(t)
	var events []string
	for _, p := range packages {
		if p.path == "internal/sessionlog" {
			events = firstArguments(p, "l.emit", "l.render")
		}
	}
	sameSet(t, "docs/report.md", firstWords(t, "docs/report.md", "`event`"), events)
}

// firstArguments returns the literals with which a package calls functions,
// sorted, each once.
func firstArguments(p housePackage, functions ...string) []string {
	names := map[string]bool{}
	for _, file := range p.files {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !slices.Contains(functions, dotted(call.Fun)) {
				return true
			}
			if literal, ok := call.Args[0].(*ast.BasicLit); ok {
				names[strings.Trim(literal.Value, `"`)] = true
			}
			return true
		})
	}
	return slices.Sorted(maps.Keys(names))
}

// pagesOf returns the pages in a directory, named relative to the top of the
// module.
func pagesOf(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join("..", "..", dir, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range found {
		found[i] = path.Join(dir, filepath.Base(found[i]))
	}
	return found
}

// Promise: every link between the pages leads somewhere, to the heading too.
func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, name := range append(pagesOf(t, "."), pagesOf(t, "docs")...) {
		for _, match := range link.FindAllStringSubmatch(page(t, name), -1) {
			file, heading, _ := strings.Cut(match[1], "#")
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			if _, err := os.Stat(filepath.Join("..", "..", target)); err != nil {
				t.Errorf("%s links to %s, which is not there", name, match[1])
			} else if heading != "" && !slices.Contains(headings(page(t, target)), heading) {
				t.Errorf("%s links to %s, where there is no such heading", name, match[1])
			}
		}
	}
}

// headings returns a page's headings as links spell them.
func headings(text string) []string {
	var names []string
	for line := range strings.Lines(text) {
		title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if !ok || !strings.HasPrefix(line, "#") {
			continue
		}
		names = append(names, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
				return unicode.ToLower(r)
			default:
				return -1
			}
		}, strings.TrimSpace(title)))
	}
	return names
}

// Promise: what the pages show of the demo is what it prints.
func TestTranscriptsAreReal(t *testing.T) {
	demo := exec.Command("cage", "demo")
	demo.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	out, err := demo.CombinedOutput()
	if err != nil {
		t.Fatalf("the demo failed: %v\n%s", err, out)
	}
	printed := strings.Split(timeless(string(out)), "\n")
	for _, name := range []string{"README.md", "docs/cage-demo.md"} {
		_, shown, ok := strings.Cut(page(t, name), "```text\n")
		if !ok {
			t.Fatalf("%s shows no transcript", name)
		}
		shown, _, _ = strings.Cut(shown, "\n```")
		from := 0
		for line := range strings.SplitSeq(timeless(shown), "\n") {
			at := slices.Index(printed[from:], line)
			if at < 0 {
				t.Errorf("%s shows a line that the demo does not print there: %s", name, line)
				continue
			}
			from += at + 1
		}
	}
}

// timeless drops from a transcript what differs from run to run.
func timeless(text string) string {
	for _, differs := range []string{`\S*/cage-demo-\d+`, `gantry-cage-\d+-[0-9a-f]+`, `sessions/[0-9a-f]+`, `review [0-9a-f]+`} {
		text = regexp.MustCompile(differs).ReplaceAllString(text, "…")
	}
	return text
}

// Promise: what the threat model names as evidence exists, and only what is
// open has none.
func TestEvidenceExists(t *testing.T) {
	tests := map[string]bool{}
	_, packages := house(t)
	for _, p := range packages {
		for _, file := range p.tests {
			for _, decl := range file.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok {
					tests[path.Base(p.path)+"."+f.Name.Name] = true
				}
			}
		}
	}
	for _, row := range table(t, "docs/threat-model.md", "id") {
		evidence := codeWords(row[4])
		if len(evidence) == 0 && row[2] != "open" {
			t.Errorf("%s has no evidence", row[0])
		}
		for _, name := range evidence {
			_, err := os.Stat(filepath.Join("..", "..", "testdata", "script", name+".txtar"))
			if err != nil && !tests[name] {
				t.Errorf("%s names %s, which is neither a scenario nor a test", row[0], name)
			}
		}
	}
}
