package gitrepo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrNoGit is returned where no usable git stands in the search path.
var ErrNoGit = errors.New("no git in the search path outside the protected directory")

// FindGit returns the git that pathEnv, the value of a PATH variable, leads to
// first, ignoring relative and empty entries and everything that lies inside
// the directory outside or is reached by a link that does. An empty outside
// forbids nothing. The directory part of the result is free of symlinks; its
// last name is kept, since some version managers are called by the name of a
// link. Where there is none, the error is ErrNoGit.
func FindGit(pathEnv string, outside string) (string, error) {
	if outside != "" {
		physical, _, err := resolve(outside)
		if err != nil {
			return "", fmt.Errorf("look for git outside %q: %w", outside, err)
		}
		outside = physical
	}
	for _, entry := range filepath.SplitList(pathEnv) {
		if !filepath.IsAbs(entry) {
			continue
		}
		if program, ok := programIn(entry, outside); ok {
			return program, nil
		}
	}
	return "", ErrNoGit
}

// programIn returns the executable git of one directory, unless any step to it
// touches outside.
func programIn(dir, outside string) (string, bool) {
	program := join(dir, "git")
	// Nearly always there is nothing, which one call tells.
	if _, err := os.Stat(program); err != nil {
		return "", false
	}
	target, links, err := resolve(program)
	if err != nil {
		return "", false
	}
	info, err := os.Stat(target)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return "", false
	}
	physical, _, err := resolve(dir)
	if err != nil {
		return "", false
	}
	program = join(physical, "git")
	for _, step := range append(links, filepath.Clean(dir), program, target) {
		if outside != "" && within(step, outside) {
			return "", false
		}
	}
	return program, true
}

// within reports whether path is dir or lies below it; both are clean.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// DotGitAbove returns the nearest entry called `.git`, of whatever type, in dir
// or a directory above it, and whether there is one. No git is run. A directory
// that cannot be looked into is an error: what it holds is not known.
func DotGitAbove(dir string) (string, bool, error) {
	if !filepath.IsAbs(dir) {
		return "", false, fmt.Errorf("look for .git above %q: not an absolute path", dir)
	}
	at, _, err := resolve(dir)
	if err != nil {
		return "", false, fmt.Errorf("look for .git above %q: %w", dir, err)
	}
	for {
		candidate := join(at, ".git")
		_, err := os.Lstat(candidate)
		if err == nil {
			return candidate, true, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return "", false, fmt.Errorf("look for .git above %q: %w", dir, err)
		}
		if at == "/" {
			return "", false, nil
		}
		at = filepath.Dir(at)
	}
}

// Physical returns an absolute path without symlinks, "." and "..", as the
// system resolves it. What does not exist is taken as it is spelled.
func Physical(path string) (string, error) {
	physical, _, err := resolve(path)
	return physical, err
}

// maxLinks is how many symlinks one path may lead through, as in the kernel.
const maxLinks = 40

// resolve returns an absolute path without symlinks, "." and "..", and the
// symlinks that stand on the way, each under its own physical name. What does
// not exist is taken as it is spelled.
func resolve(path string) (physical string, links []string, err error) {
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
		next := join(physical, name)
		target, err := os.Readlink(next)
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
