package main

import (
	"encoding/json"
	"os"
	"strings"

	"cage/report"
	"cage/report/reporttest"

	"github.com/rogpeppe/go-internal/testscript"
)

// What a check printed with --json:
//
//	checked <file> <field>=<value>...         wants these values in the document
//	finding <file> <path> <field>=<value>...  the same of a finding of a path
//	nofinding <file> <path>                   wants no finding of a path
//
// A path stands for the first of its findings with the commit that a pair
// commit=<id> names, or the first of all. Every document is validated against
// the schema first.

func checkDocument(ts *testscript.TestScript, file string) map[string]any {
	data, err := os.ReadFile(ts.MkAbs(file))
	ts.Check(err)
	if err := reporttest.ValidateBy(report.CheckSchema(), data); err != nil {
		ts.Fatalf("%s is no valid check: %v", file, err)
	}
	var doc map[string]any
	ts.Check(json.Unmarshal(data, &doc))
	return doc
}

func cmdChecked(ts *testscript.TestScript, neg bool, args []string) {
	noNegation(ts, neg)
	if len(args) < 2 {
		ts.Fatalf("usage: checked <file> <field>=<value>...")
	}
	want(ts, checkDocument(ts, args[0]), args[1:])
}

func cmdFinding(ts *testscript.TestScript, neg bool, args []string) {
	noNegation(ts, neg)
	if len(args) < 3 {
		ts.Fatalf("usage: finding <file> <path> <field>=<value>...")
	}
	row := findFinding(ts, args[0], args[1], args[2:])
	if row == nil {
		ts.Fatalf("no such finding of %s in %s", args[1], args[0])
	}
	want(ts, row, args[2:])
}

func cmdNoFinding(ts *testscript.TestScript, neg bool, args []string) {
	noNegation(ts, neg)
	if len(args) != 2 {
		ts.Fatalf("usage: nofinding <file> <path>")
	}
	if row := findFinding(ts, args[0], args[1], nil); row != nil {
		ts.Fatalf("a finding of %s: %v", args[1], row)
	}
}

func findFinding(ts *testscript.TestScript, file, path string, pairs []string) map[string]any {
	rows, _ := checkDocument(ts, file)["findings"].([]any)
	for _, row := range rows {
		fields, ok := row.(map[string]any)
		if ok && fields["path"] == path && hasCommit(fields, pairs) {
			return fields
		}
	}
	return nil
}

// hasCommit reports whether a finding has the commit that the pairs name, if
// they name one.
func hasCommit(row map[string]any, pairs []string) bool {
	for _, pair := range pairs {
		if id, ok := strings.CutPrefix(pair, "commit="); ok {
			return spell(row["commit"]) == id
		}
	}
	return true
}
