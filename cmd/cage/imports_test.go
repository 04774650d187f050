package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The rules of the house. They hold for every file whatever system it is built
// for, so files are read by the parser and not by the build.

const houseModule = "cage"

// houseImports says which packages of the module a package may import; "*"
// stands for all, a trailing "/*" for all below. Nothing else is allowed, and
// a package that is not listed is not either.
var houseImports = map[string][]string{
	"cmd/cage": {"*"},
	"session":  {"guard", "watch", "journal", "spawn", "scope", "halt", "report", "rules", "snapshot", "internal/*"},
	"guard":    {"watch", "restore", "snapshot", "rules", "internal/kept", "internal/mailbox", "internal/safefile", "internal/gitrepo"},
	"watch":    {"rules", "snapshot", "internal/safefile"},
	"restore":  {"rules", "snapshot", "internal/safefile"},
	"snapshot": {"rules", "internal/physical", "internal/safefile"},
	"rules":    {},
	"journal":  {"rules", "snapshot", "internal/physical", "internal/record", "internal/safefile", "internal/proc", "internal/tempdir"},
	"halt":     {"internal/proc"},
	"spawn":    {"internal/proc", "internal/tempdir"},
	"scope":    {"internal/proc", "internal/program"},
	"check":    {"report", "rules", "internal/anchors", "internal/gitrepo", "internal/physical", "internal/program"},
	"report":   {"rules"},

	"report/reporttest":   {"report"},
	"internal/record":     {"rules"},
	"internal/safefile":   {},
	"internal/proc":       {},
	"internal/mailbox":    {},
	"internal/kept":       {"rules", "snapshot", "internal/mailbox", "internal/record", "internal/safefile"},
	"internal/gitrepo":    {"internal/physical", "internal/program"},
	"internal/physical":   {},
	"internal/program":    {"internal/physical"},
	"internal/githook":    {},
	"internal/anchors":    {"rules", "internal/gitrepo"},
	"internal/sessionlog": {"report", "rules"},
	"internal/demo":       {"report", "testdata/demo"},
	"internal/tempdir":    {},
	"internal/console":    {},
	"internal/pushguard":  {"spawn", "report", "rules", "internal/gitrepo", "internal/mailbox", "internal/program", "internal/tempdir"},
	"internal/doctor":     {"session", "journal", "spawn", "scope", "snapshot", "report", "rules", "internal/kept", "internal/proc", "internal/program", "internal/pushguard", "internal/tempdir"},
	"internal/review":     {"restore", "rules", "snapshot", "internal/kept", "internal/safefile", "internal/gitrepo", "internal/program"},
	"internal/suggest":    {"rules", "internal/safefile"},
	"internal/bench":      {"journal", "rules", "snapshot", "spawn", "internal/proc", "internal/torture"},
	"internal/torture":    {},
	"internal/limittest":  {},
	"testdata/demo":       {},
}

// houseTestImports says what test files may import besides.
var houseTestImports = map[string][]string{
	"guard":    {"internal/limittest", "internal/program"},
	"report":   {"report/reporttest"},
	"session":  {"report/reporttest"},
	"snapshot": {"internal/limittest"},

	"internal/pushguard":  {"internal/limittest"},
	"internal/safefile":   {"internal/limittest"},
	"internal/sessionlog": {"report/reporttest"},
	"spawn":               {"internal/torture"},
}

// housePackage is one package of the module with all its files parsed.
type housePackage struct {
	path  string // below the module
	name  string
	files map[string]*ast.File // by name below the module, tests left out
	tests map[string]*ast.File
}

// house asks `go list` for the packages and reads all their files. Nothing is
// resolved or built: -find needs no module but this one.
func house(t *testing.T) (*token.FileSet, []housePackage) {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "list", "-find", "-buildvcs=false", "-json=ImportPath,Name,Dir", "./...", "./testdata/demo")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	fset := token.NewFileSet()
	var packages []housePackage
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var listed struct{ ImportPath, Name, Dir string }
		if err := decoder.Decode(&listed); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		p := housePackage{
			path:  strings.TrimPrefix(listed.ImportPath, houseModule+"/"),
			name:  listed.Name,
			files: map[string]*ast.File{},
			tests: map[string]*ast.File{},
		}
		names, err := filepath.Glob(filepath.Join(listed.Dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			file, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if base := path.Join(p.path, filepath.Base(name)); strings.HasSuffix(name, "_test.go") {
				p.tests[base] = file
			} else {
				p.files[base] = file
			}
		}
		packages = append(packages, p)
	}
	if len(packages) == 0 {
		t.Fatal("go list names no package")
	}
	return fset, packages
}

// importsOf returns the packages of the module that a file imports.
func importsOf(file *ast.File) []string {
	var imports []string
	for _, spec := range file.Imports {
		if inside, ok := strings.CutPrefix(strings.Trim(spec.Path.Value, "`\""), houseModule+"/"); ok {
			imports = append(imports, inside)
		}
	}
	return imports
}

func houseAllows(allowed []string, imported string) bool {
	return slices.ContainsFunc(allowed, func(pattern string) bool {
		below, wild := strings.CutSuffix(pattern, "*")
		return pattern == imported || wild && strings.HasPrefix(imported, below)
	})
}

// Promise: the data flows one way. No package reaches another that the table
// does not let it reach, on any system.
func TestImportDirection(t *testing.T) {
	_, packages := house(t)
	for _, p := range packages {
		allowed, known := houseImports[p.path]
		if !known {
			t.Errorf("package %s is not in the table of rooms", p.path)
			continue
		}
		for name, file := range p.files {
			for _, imported := range importsOf(file) {
				if !houseAllows(allowed, imported) {
					t.Errorf("%s imports %s, which the table does not allow", name, imported)
				}
			}
		}
		allowed = slices.Concat(allowed, houseTestImports[p.path], []string{p.path})
		for name, file := range p.tests {
			for _, imported := range importsOf(file) {
				if !houseAllows(allowed, imported) {
					t.Errorf("%s imports %s, which the table does not allow", name, imported)
				}
			}
		}
	}
}

// Promise: each package says once what it holds, promises and does not.
func TestOnePackageComment(t *testing.T) {
	_, packages := house(t)
	for _, p := range packages {
		var commented []string
		for name, file := range p.files {
			// Text drops directives such as //go:build.
			text := file.Doc.Text()
			if text == "" {
				continue
			}
			commented = append(commented, name)
			if p.name != "main" && !strings.HasPrefix(text, "Package "+p.name+" ") {
				t.Errorf("%s: the package comment does not start with %q", name, "Package "+p.name)
			}
		}
		if len(commented) != 1 {
			slices.Sort(commented)
			t.Errorf("package %s has %d package comments, not one: %v", p.path, len(commented), commented)
		}
	}
}

// Promise: importing a package does nothing, and main only hands over.
func TestNoInitAndShortMain(t *testing.T) {
	fset, packages := house(t)
	for _, p := range packages {
		for name, file := range p.files {
			for _, decl := range file.Decls {
				f, ok := decl.(*ast.FuncDecl)
				if !ok || f.Recv != nil {
					continue
				}
				if f.Name.Name == "init" {
					t.Errorf("%s has an init function", name)
				}
				lines := fset.Position(f.End()).Line - fset.Position(f.Pos()).Line + 1
				if p.name == "main" && f.Name.Name == "main" && lines >= 30 {
					t.Errorf("%s: main has %d lines, not under 30", name, lines)
				}
			}
		}
	}
}

// Promise: no package keeps state.
func TestNoPackageState(t *testing.T) {
	fset, packages := house(t)
	for _, p := range packages {
		for _, fault := range stateFaults(fset, p.name, slices.Collect(maps.Values(p.files))) {
			t.Error(fault)
		}
	}
}

// The check itself is checked: what it should find, it finds.
func TestStateFaults(t *testing.T) {
	for _, c := range []struct {
		name, pkg, source string
		faults            int
	}{
		{"proof of an interface", "p", `var _ error = (*fault)(nil)`, 0},
		{"error value", "p", `var ErrGone = errors.New("gone")`, 0},
		{"wrapped error value", "p", `var errGone = fmt.Errorf("gone: %w", ErrGone)`, 0},
		{"error value, written", "p", `var ErrGone = errors.New("gone"); func f() { ErrGone = nil }`, 1},
		{"error value, address taken", "p", `var ErrGone = errors.New("gone"); func f() { g(&ErrGone) }`, 1},
		{"error value, written in a range", "p", `var errX = errors.New("x"); func f(a []error) { for _, errX = range a {} }`, 1},
		{"somebody else's variable", "p", `func f() { os.Args = nil }`, 1},
		{"somebody else's variable, another name", "p", `func f() { z.TimeFieldFormat = "" }`, 1},
		{"embedded string", "p", "//go:embed a\nvar A string", 0},
		{"embedded bytes", "p", "//go:embed a\nvar A []byte", 1},
		{"plain string", "p", `var version = "dev"`, 1},
		{"plain string in main", "main", `var version = "dev"`, 0},
		{"plain string in main, written", "main", `var version = "dev"; func f() { version += "x" }`, 1},
		{"zero value", "p", `var cache map[string]int`, 1},
		{"mutex", "p", `var mu sync.Mutex`, 1},
		{"call", "p", `var pattern = regexp.MustCompile("a")`, 1},
		{"function", "p", `var now = time.Now`, 1},
		{"pointer", "p", `var one = &thing{}`, 1},
		{"grouped", "p", `var ( a = 1; b = 2 )`, 2},
		{"two in one", "p", `var a, b = f()`, 2},
		{"table, read", "p", `var t = map[string]bool{"a": true}; func f(k string) bool { return t[k] }`, 0},
		{"table, ranged over", "p", `var t = []string{"a"}; func f() { for range t {}; for i := range len(t) { g(i) } }`, 0},
		{"table, searched", "p", `var t = []string{"a"}; func f(k string) bool { return slices.Contains(t, k) }`, 0},
		{"table, exported", "p", `var T = []string{"a"}`, 1},
		{"table, element written", "p", `var t = []string{"a"}; func f() { t[0] = "b" }`, 1},
		{"table, element counted", "p", `var t = map[string]int{}; func f() { t["a"]++ }`, 1},
		{"table, field written", "p", `var t = []thing{{}}; func f() { t[0].n = 1 }`, 1},
		{"table, inner element written", "p", `var t = [][]int{{1}}; func f() { (t[0])[0] = 1 }`, 1},
		{"table, element's address", "p", `var t = []thing{{}}; func f() *thing { return &t[0] }`, 1},
		{"table, field's address", "p", `var t = []thing{{}}; func f() *int { return &t[0].n }`, 1},
		{"table, replaced", "p", `var t = []string{"a"}; func f() { t = nil }`, 1},
		{"table, emptied", "p", `var t = map[string]int{}; func f() { clear(t) }`, 1},
		{"table, deleted from", "p", `var t = map[string]int{}; func f() { delete(t, "a") }`, 1},
		{"table, sliced", "p", `var t = []string{"a"}; func f() []string { return t[:] }`, 1},
		{"table, returned", "p", `var t = []string{"a"}; func f() []string { return t }`, 1},
		{"table, passed on", "p", `var t = []string{"a"}; func f() { g(t) }`, 1},
		{"table, sorted", "p", `var t = []string{"a"}; func f() { slices.Sort(t) }`, 1},
		{"field of the same name", "p", `var t = []int{1}; type s struct{ t int }; func f(x s) int { return x.t + t[0] }`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			fset := token.NewFileSet()
			source := "package " + c.pkg + "\nimport (\"os\"; z \"example.invalid/zerolog/v2\")\n" + c.source
			file, err := parser.ParseFile(fset, "p.go", source, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if faults := stateFaults(fset, c.pkg, []*ast.File{file}); len(faults) != c.faults {
				t.Errorf("found %d, want %d: %q", len(faults), c.faults, faults)
			}
		})
	}
}

// stateFaults says where the files of one package keep state. What stands at
// package level is to be written once, by its declaration:
//
//   - `_`, the proof that a type has an interface;
//   - an error made by errors.New or fmt.Errorf;
//   - a string or embed.FS that go:embed fills;
//   - in main, a string that the linker may set;
//   - a lookup table: an unexported composite literal that is only ranged
//     over, indexed, measured, or given to functions that only read, so that
//     nobody else gets hold of it.
//
// The parser knows no types and no scopes, so names are compared as they are
// written: a local variable called like one of these counts as it.
func stateFaults(fset *token.FileSet, pkg string, files []*ast.File) []string {
	var faults []string
	complain := func(node ast.Node, what string) {
		faults = append(faults, fmt.Sprintf("%s: %s", fset.Position(node.Pos()), what))
	}
	values, tables := map[string]bool{}, map[string]bool{}
	for _, file := range files {
		for _, v := range packageVars(file) {
			switch {
			case v.name.Name == "_":
			case isLookupTable(v):
				tables[v.name.Name] = true
			case isErrorValue(v), isEmbedded(v), pkg == "main" && isLinkerString(v):
				values[v.name.Name] = true
			default:
				complain(v.name, "package-level variable "+v.name.Name)
			}
		}
	}
	for _, file := range files {
		for _, use := range writes(file, values) {
			complain(use, "writes to a package-level variable")
		}
		for _, use := range leaks(file, tables) {
			complain(use, "lets go of the table "+use.Name)
		}
	}
	return faults
}

// packageVar is one variable of a var declaration at package level.
type packageVar struct {
	name  *ast.Ident
	typed ast.Expr // nil if inferred
	value ast.Expr // nil if none of its own
	doc   *ast.CommentGroup
}

func packageVars(file *ast.File) []packageVar {
	var vars []packageVar
	for _, decl := range file.Decls {
		general, ok := decl.(*ast.GenDecl)
		if !ok || general.Tok != token.VAR {
			continue
		}
		for _, spec := range general.Specs {
			spec := spec.(*ast.ValueSpec)
			doc := spec.Doc
			if doc == nil {
				doc = general.Doc
			}
			for i, name := range spec.Names {
				v := packageVar{name: name, typed: spec.Type, doc: doc}
				if len(spec.Values) == len(spec.Names) {
					v.value = spec.Values[i]
				}
				vars = append(vars, v)
			}
		}
	}
	return vars
}

// dotted returns `a.b` for a selector of a plain name, the name for a name,
// and "" for everything else.
func dotted(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok {
			return x.Name + "." + e.Sel.Name
		}
	}
	return ""
}

func isErrorValue(v packageVar) bool {
	call, ok := v.value.(*ast.CallExpr)
	return ok && (dotted(call.Fun) == "errors.New" || dotted(call.Fun) == "fmt.Errorf")
}

func isEmbedded(v packageVar) bool {
	if v.doc == nil || v.value != nil || dotted(v.typed) != "string" && dotted(v.typed) != "embed.FS" {
		return false
	}
	return slices.ContainsFunc(v.doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed ") })
}

func isLinkerString(v packageVar) bool {
	literal, ok := v.value.(*ast.BasicLit)
	return ok && literal.Kind == token.STRING && !v.name.IsExported()
}

func isLookupTable(v packageVar) bool {
	_, ok := v.value.(*ast.CompositeLit)
	return ok && !v.name.IsExported()
}

// writes returns what in a file assigns to one of the names, takes its
// address, or assigns to a variable of an imported package.
func writes(file *ast.File, names map[string]bool) []ast.Node {
	imported := map[string]bool{}
	for _, spec := range file.Imports {
		name := presumedName(strings.Trim(spec.Path.Value, "`\""))
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imported[name] = true
	}
	var found []ast.Node
	check := func(target ast.Expr) {
		first, second, qualified := strings.Cut(dotted(target), ".")
		if !qualified && names[first] || qualified && imported[first] && ast.IsExported(second) {
			found = append(found, target)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, target := range n.Lhs {
					check(target)
				}
			}
		case *ast.IncDecStmt:
			check(n.X)
		case *ast.RangeStmt:
			if n.Tok == token.ASSIGN {
				check(n.Key)
				check(n.Value)
			}
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				check(n.X)
			}
		}
		return true
	})
	return found
}

// presumedName guesses a package's name from its import path: a last segment
// that is a version names nothing.
func presumedName(imported string) string {
	base := path.Base(imported)
	if len(base) > 1 && base[0] == 'v' && strings.Trim(base[1:], "0123456789") == "" {
		base = path.Base(path.Dir(imported))
	}
	name, _, _ := strings.Cut(base, ".")
	return name
}

// leaks returns the uses of the names that could change a table or hand it to
// somebody who could.
func leaks(file *ast.File, names map[string]bool) []*ast.Ident {
	harmless := map[*ast.Ident]bool{}
	spare := func(e ast.Expr) {
		if name, ok := e.(*ast.Ident); ok {
			harmless[name] = true
		}
	}
	// Parents come before their children, so what is written is known before
	// the index expressions in it are met.
	written := map[ast.Expr]bool{}
	write := func(e ast.Expr) {
		for e != nil {
			written[e] = true
			switch inner := e.(type) {
			case *ast.IndexExpr:
				e = inner.X
			case *ast.SelectorExpr:
				e = inner.X
			case *ast.ParenExpr:
				e = inner.X
			default:
				e = nil
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for _, name := range n.Names {
				spare(name)
			}
		case *ast.Field: // a field or parameter of that name is no use of it
			for _, name := range n.Names {
				spare(name)
			}
		case *ast.SelectorExpr:
			spare(n.Sel)
		case *ast.KeyValueExpr:
			spare(n.Key)
		case *ast.RangeStmt:
			spare(n.X)
		case *ast.AssignStmt:
			for _, target := range n.Lhs {
				write(target)
			}
		case *ast.IncDecStmt:
			write(n.X)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				write(n.X)
			}
		case *ast.IndexExpr:
			if !written[n] {
				spare(n.X)
			}
		case *ast.CallExpr:
			if onlyReads(dotted(n.Fun)) {
				for _, argument := range n.Args {
					spare(argument)
				}
			}
		}
		return true
	})
	found := map[*ast.Ident]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if name, ok := n.(*ast.Ident); ok && names[name.Name] && !harmless[name] {
			found[name] = true
		}
		return true
	})
	return slices.Collect(maps.Keys(found))
}

// onlyReads says whether a function leaves its arguments as they are and keeps
// none of them.
func onlyReads(called string) bool {
	switch called {
	case "len", "slices.Contains", "slices.ContainsFunc", "slices.Index", "slices.IndexFunc", "slices.BinarySearch",
		"slices.BinarySearchFunc", "slices.Clone", "slices.Concat", "maps.Clone", "strings.Join":
		return true
	}
	return false
}
