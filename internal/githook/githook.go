// Package githook installs a hook that runs a check. It never writes over
// another hook: that one keeps its place in the order, under a name of its own
// beside the new one. What it did it tells, and where it cannot, nothing is
// changed.
package githook

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
)

// Installed says what an installation did.
type Installed struct {
	// Hook is the absolute path of the hook.
	Hook string
	// Already is set where it was installed before and nothing was done.
	Already bool
	// Chained is where the hook lies now that was there before, and that runs
	// first; empty where there was none.
	Chained string
}

// mark is the line by which an installed hook is known.
const mark = "# Installed by: cage check --install-hook"

// chainedSuffix is what the name of a hook gets that runs before an installed
// one.
const chainedSuffix = ".chained"

var (
	// ErrManaged is returned for a folder that a hook manager writes anew.
	ErrManaged = errors.New("a hook manager writes this folder anew")
	// ErrOff is returned for a place that is no folder, such as /dev/null.
	ErrOff = errors.New("hooks are turned off: this is no folder")
	// ErrNamed is returned where the hook that is there may do what it does by the
	// name it is called under.
	ErrNamed = errors.New("the hook that is there may go by its own name")
	// ErrTaken is returned where two hooks would have to run before.
	ErrTaken = errors.New("there is a hook and another one from an earlier time")
)

// Install installs the hook of that name in a hooks folder: it runs program, an
// absolute path, with arguments. A pre-push hook gets what git tells it, and so
// does the one before it.
func Install(folder, name, program string, arguments ...string) (Installed, error) {
	done := Installed{Hook: filepath.Join(folder, name)}
	if err := fit(folder); err != nil {
		return done, err
	}
	script := scriptOf(name, program, arguments)
	present, err := os.ReadFile(done.Hook)
	switch {
	case errors.Is(err, fs.ErrNotExist) && absent(done.Hook):
		return done, place(done.Hook, script, os.Link)
	case err != nil:
		return done, fmt.Errorf("look at the hook that is there: %w", err)
	case bytes.Equal(present, script):
		done.Already = true
		return done, nil
	case bytes.Contains(present, []byte("\n"+mark+"\n")):
		return done, place(done.Hook, script, os.Rename)
	}
	if goesByName(present) {
		return done, fmt.Errorf("%w: %s", ErrNamed, done.Hook)
	}
	done.Chained = done.Hook + chainedSuffix
	if !absent(done.Chained) {
		return done, fmt.Errorf("%w: %s", ErrTaken, done.Chained)
	}
	// Under both names for a moment, so that there is a hook all the time.
	if err := os.Link(done.Hook, done.Chained); err != nil {
		return done, fmt.Errorf("keep the hook that is there: %w", err)
	}
	if err := place(done.Hook, script, os.Rename); err != nil {
		return done, errors.Join(err, os.Remove(done.Chained))
	}
	return done, nil
}

// fit makes a folder that does not exist, and refuses what can hold no hook.
func fit(folder string) error {
	if filepath.Base(folder) == "_" && filepath.Base(filepath.Dir(folder)) == ".husky" {
		return fmt.Errorf("%w: %s", ErrManaged, folder)
	}
	info, err := os.Stat(folder)
	if err == nil && !info.IsDir() {
		return fmt.Errorf("%w: %s", ErrOff, folder)
	}
	const everybodyReads = 0o755
	if err := os.MkdirAll(folder, everybodyReads); err != nil {
		return fmt.Errorf("make the hooks folder: %w", err)
	}
	return nil
}

// goesByName reports whether a hook may look at the name it is called under,
// which chaining changes: it would be called, and do nothing.
func goesByName(hook []byte) bool {
	for _, sign := range []string{"basename", "${0##*/}", "$PROGRAM_NAME", "argv[0]"} {
		if bytes.Contains(hook, []byte(sign)) {
			return true
		}
	}
	return false
}

func absent(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// place writes the script under a name that nobody has and has put give it its
// own: os.Link where nothing may stand there, os.Rename where it is replaced.
func place(hook string, script []byte, put func(from, to string) error) error {
	const everybodyRuns = 0o755
	file, err := renameio.NewPendingFile(hook, renameio.WithTempDir(filepath.Dir(hook)), renameio.WithStaticPermissions(everybodyRuns))
	if err != nil {
		return fmt.Errorf("write the hook: %w", err)
	}
	defer file.Cleanup()
	if _, err := file.Write(script); err != nil {
		return fmt.Errorf("write the hook: %w", err)
	}
	if err := file.Sync(); err != nil {
		return fmt.Errorf("write the hook: %w", err)
	}
	if err := put(file.Name(), hook); err != nil {
		return fmt.Errorf("put the hook into its place: %w", err)
	}
	return nil
}

// scriptOf is the hook. The one before it runs first, since it may change what
// is to be committed.
func scriptOf(name, program string, arguments []string) []byte {
	words := []string{shellWord(program)}
	for _, argument := range arguments {
		words = append(words, shellWord(argument))
	}
	script := `#!/bin/sh
` + mark + `
# A hook that was here before runs first, as the file beside this one.
before="$0` + chainedSuffix + `"
`
	if name == "pre-push" {
		// Both get what git tells on standard input.
		script += `told=$(cat)
tell() { [ -z "$told" ] || printf '%s\n' "$told"; }
if [ -x "$before" ]; then tell | "$before" "$@" || exit; fi
tell | `
	} else {
		script += `if [ -x "$before" ]; then "$before" "$@" || exit; fi
exec `
	}
	return []byte(script + strings.Join(words, " ") + "\n")
}

// shellWord spells bytes as one word of a POSIX shell.
func shellWord(word string) string {
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
