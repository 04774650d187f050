package program

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"cage/internal/physical"
)

// ErrNotFound is wrapped where no usable program stands in the search path.
var ErrNotFound = errors.New("in the search path outside the protected directory")

// Find returns the program of that name that pathEnv, the value of a PATH
// variable, leads to first, ignoring relative and empty entries and everything
// that lies inside the directory outside or is reached by a link that does. An
// empty outside forbids nothing. The directory part of the result is free of
// symlinks; its last name is kept, since some version managers are called by the
// name of a link. Where there is none, the error is ErrNotFound.
func Find(name, pathEnv, outside string) (string, error) {
	if outside != "" {
		folder, err := physical.Path(outside)
		if err != nil {
			return "", fmt.Errorf("look for %s outside %q: %w", name, outside, err)
		}
		outside = folder
	}
	for _, entry := range filepath.SplitList(pathEnv) {
		if !filepath.IsAbs(entry) {
			continue
		}
		if program, ok := in(entry, name, outside); ok {
			return program, nil
		}
	}
	return "", fmt.Errorf("no %s %w", name, ErrNotFound)
}

// Finder returns Find in an environment.
func Finder(environ []string, outside string) func(name string) (string, error) {
	path := Variables(environ)["PATH"]
	return func(name string) (string, error) { return Find(name, path, outside) }
}

// in returns the executable of one directory, unless any step to it touches
// outside.
func in(dir, name, outside string) (string, bool) {
	program := dir + "/" + name
	// Nearly always there is nothing, which one call tells.
	if _, err := os.Stat(program); err != nil {
		return "", false
	}
	target, links, err := physical.Way(program)
	if err != nil {
		return "", false
	}
	info, err := os.Stat(target)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return "", false
	}
	folder, err := physical.Path(dir)
	if err != nil {
		return "", false
	}
	program = filepath.Join(folder, name)
	for _, step := range append(links, filepath.Clean(dir), program, target) {
		if outside != "" && physical.Within(step, outside) {
			return "", false
		}
	}
	return program, true
}
