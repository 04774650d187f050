package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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
	inside := false
	for line := range strings.Lines(page(t, name)) {
		cells, isRow := cellsOf(line)
		switch {
		case !isRow:
			if inside && len(rows) > 0 {
				return rows
			}
			inside = false
		case inside && !strings.HasPrefix(cells[0], "---"):
			rows = append(rows, cells)
		case cells[0] == header:
			inside = true
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
	cells := strings.Split(line[1:len(line)-1], "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
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
