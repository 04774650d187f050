// Package physical finds where a path really leads.
//
// It promises an absolute path without symlinks, "." and "..", as the system
// would resolve it, and the symlinks that stand on the way. It cannot promise
// that they stand there a moment later: what is to hold must be opened.
package physical

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxLinks is how many symlinks one path may lead through, as in the kernel.
const maxLinks = 40

// Path returns an absolute path without symlinks, "." and "..". What does not
// exist is taken as it is spelled.
func Path(path string) (string, error) {
	physical, _, err := Way(path)
	return physical, err
}

// Way returns besides the symlinks that stand on the way to a path, each under
// its own physical name.
func Way(path string) (physical string, links []string, err error) {
	return WayBy(path, os.Readlink)
}

// WayBy is Way with symlinks as readlink knows them, which answers like
// os.Readlink.
func WayBy(path string, readlink func(name string) (string, error)) (physical string, links []string, err error) {
	if !filepath.IsAbs(path) {
		return "", nil, fmt.Errorf("resolve %q: not an absolute path", path)
	}
	physical = "/"
	rest := path
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		switch name {
		case "", ".":
			continue
		case "..":
			physical = filepath.Dir(physical)
			continue
		}
		next := filepath.Join(physical, name)
		target, err := readlink(next)
		switch {
		case err == nil:
			if links = append(links, next); len(links) > maxLinks {
				return "", nil, fmt.Errorf("resolve %q: %w", path, syscall.ELOOP)
			}
			if filepath.IsAbs(target) {
				physical = "/"
			}
			rest = target + "/" + rest
		case errors.Is(err, syscall.EINVAL), errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			// EINVAL is how readlink says that the entry is no link.
			physical = next
		default:
			return "", nil, fmt.Errorf("resolve %q: %w", path, err)
		}
	}
	return physical, links, nil
}

// Within reports whether path is dir or lies below it; both are absolute and
// clean.
func Within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
