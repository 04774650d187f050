package main

import (
	"bytes"
	"encoding/base64"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// canMount reports whether a script can mount things in a namespace of its own:
// as root in `unshare -m`, else in `unshare -Urm`.
func canMount() bool {
	flags := "-Urm"
	if os.Geteuid() == 0 {
		flags = "-m"
	}
	return exec.Command("unshare", flags, "mount", "-t", "tmpfs", "none", "/mnt").Run() == nil
}

// canTrace reports whether strace may trace what it starts.
func canTrace() bool {
	return exec.Command("strace", "-f", "-e", "trace=none", "-o", os.DevNull, "true").Run() == nil
}

// cmdDisplaced looks at the places that a row names as displaced versions:
//
//	displaced <file> <path> <kind>=<count>... holds=<file>...
//
// wants them all to be there, so many of each kind (file, symlink, directory,
// fifo, socket) and no others, and for each `holds` one with those bytes.
func cmdDisplaced(ts *testscript.TestScript, neg bool, args []string) {
	noNegation(ts, neg)
	if len(args) < 3 {
		ts.Fatalf("usage: displaced <file> <path> <kind>=<count>... holds=<file>...")
	}
	row := findRow(ts, args[0], args[1])
	if row == nil {
		ts.Fatalf("no row for %s in %s", args[1], args[0])
	}
	places := placesOf(ts, row)
	counts := make(map[string]int)
	for _, place := range places {
		info, err := os.Lstat(place)
		ts.Check(err)
		counts[kindName(info.Mode())]++
	}
	for _, pair := range args[2:] {
		what, value, _ := strings.Cut(pair, "=")
		if what == "holds" {
			wantHeld(ts, places, value)
			continue
		}
		if n, err := strconv.Atoi(value); err != nil || counts[what] != n {
			ts.Fatalf("%d displaced of kind %s, want %s: %v", counts[what], what, value, places)
		}
		delete(counts, what)
	}
	if len(counts) > 0 && !strings.HasPrefix(args[2], "holds=") {
		ts.Fatalf("also displaced: %v", counts)
	}
}

// cmdOriginal: original <report file> <path> <file>
//
// wants the copy of what the path held at the start to hold the same.
func cmdOriginal(ts *testscript.TestScript, neg bool, args []string) {
	noNegation(ts, neg)
	if len(args) != 3 {
		ts.Fatalf("usage: original <report file> <path> <file>")
	}
	row := findRow(ts, args[0], args[1])
	if row == nil || row["original"] == nil {
		ts.Fatalf("no original of %s in %s", args[1], args[0])
	}
	wantHeld(ts, []string{placeOf(ts, row["original"])}, args[2])
}

// placeOf returns a name of a report as bytes.
func placeOf(ts *testscript.TestScript, value any) string {
	name := value.(map[string]any)
	if text, lossy := name["path_base64"].(string); lossy {
		raw, err := base64.StdEncoding.DecodeString(text)
		ts.Check(err)
		return string(raw)
	}
	return name["path"].(string)
}

// placesOf returns the places of a row as bytes.
func placesOf(ts *testscript.TestScript, row map[string]any) []string {
	var places []string
	all, _ := row["displaced"].([]any)
	for _, one := range all {
		places = append(places, placeOf(ts, one))
	}
	return places
}

func kindName(mode fs.FileMode) string {
	switch mode.Type() {
	case 0:
		return "file"
	case fs.ModeSymlink:
		return "symlink"
	case fs.ModeDir:
		return "directory"
	case fs.ModeNamedPipe:
		return "fifo"
	case fs.ModeSocket:
		return "socket"
	default:
		return "other"
	}
}

func wantHeld(ts *testscript.TestScript, places []string, file string) {
	want, err := os.ReadFile(ts.MkAbs(file))
	ts.Check(err)
	for _, place := range places {
		info, err := os.Lstat(place)
		ts.Check(err)
		if !info.Mode().IsRegular() || info.Size() != int64(len(want)) {
			continue
		}
		got, err := os.ReadFile(place)
		ts.Check(err)
		if bytes.Equal(got, want) {
			return
		}
	}
	ts.Fatalf("none of %v holds what %s does", places, filepath.Base(file))
}
