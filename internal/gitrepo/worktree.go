package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Entry is what the index records at a path.
type Entry struct {
	Record
	// Skipped is set where a flag says that the work tree need not have it, as a
	// sparse checkout sets it, and anybody else can.
	Skipped bool
}

// Tracked returns what the index records, by path; of a conflict the side that
// is ours.
func (r *Repo) Tracked(ctx context.Context) (map[string]Entry, error) {
	out, err := r.ask(ctx, nil, "ls-files", "-s", "-t", "-z", "--full-name")
	if err != nil {
		return nil, fmt.Errorf("list the index of %q: %w", r.Root, err)
	}
	tracked := map[string]Entry{}
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if entry == "" {
			continue
		}
		// tag, mode, id, stage; tab; path.
		head, path, found := strings.Cut(entry, "\t")
		fields := strings.Split(head, " ")
		if !found || len(fields) != 4 {
			return nil, errListing
		}
		record, err := readRecord(fields[1], fields[2])
		if err != nil {
			return nil, err
		}
		if _, there := tracked[path]; !there || fields[3] == "2" {
			tracked[path] = Entry{Record: record, Skipped: fields[0] == "S"}
		}
	}
	return tracked, nil
}

// Untracked returns the paths of the work tree that the index does not hold and
// that nothing ignores. A repository in the work tree is one path, with a slash
// at its end.
func (r *Repo) Untracked(ctx context.Context) ([]string, error) {
	out, err := r.ask(ctx, nil, "ls-files", "-o", "-z", "--exclude-standard", "--full-name")
	if err != nil {
		return nil, fmt.Errorf("list what is untracked in %q: %w", r.Root, err)
	}
	return strings.FieldsFunc(string(out), func(c rune) bool { return c == 0 }), nil
}

// Sparse reports whether the work tree is a sparse checkout.
func (r *Repo) Sparse(ctx context.Context) (bool, error) {
	return r.set(ctx, "core.sparseCheckout", false)
}

// Executables reports whether git takes the mode of a file for what the work
// tree says of it, which not every file system can.
func (r *Repo) Executables(ctx context.Context) (bool, error) {
	return r.set(ctx, "core.fileMode", true)
}

// set returns a boolean setting.
func (r *Repo) set(ctx context.Context, key string, unless bool) (bool, error) {
	out, err := r.ask(ctx, nil, "config", "--bool", "--get", key)
	var refused *Error
	if errors.As(err, &refused) && refused.ExitCode == 1 {
		return unless, nil
	}
	if err != nil {
		return false, fmt.Errorf("look up a setting of %q: %w", r.Root, err)
	}
	return strings.TrimSpace(string(out)) == "true", nil
}

// Converts reports whether git would make what an entry of the index records of
// content at path. Line endings and encodings it converts itself. A filter
// program is not run: where one is asked for at the path, git's word counts that
// the file has not been touched since it was checked out or added.
func (r *Repo) Converts(ctx context.Context, path string, content []byte, entry Entry) (bool, error) {
	drivers, err := r.filters(ctx)
	if err != nil {
		return false, err
	}
	out, err := r.askConverting(ctx, content, append(disarmed(drivers), "hash-object", "--stdin", "--path", path)...)
	if err != nil {
		return false, fmt.Errorf("convert %q: %w", path, err)
	}
	if strings.TrimSpace(string(out)) == entry.ID {
		return true, nil
	}
	filtered, err := r.filtered(ctx, path, drivers)
	if err != nil || !filtered {
		return false, err
	}
	touched, err := r.touched(ctx, path, entry, drivers)
	return !touched, err
}

// touched reports whether git takes the file at path for another than the index
// records, by what the index knows of it. Where that does not tell, its content
// counts, without any filter program.
func (r *Repo) touched(ctx context.Context, path string, entry Entry, drivers []string) (bool, error) {
	// Unlike git diff-files this looks behind the flags that have git assume that
	// a file is as it was. It makes no new file, and without --force it leaves
	// one that stands alone: it fails where it would have to write.
	question := append(disarmed(drivers), "-c", "core.trustctime=true", "-c", "core.checkStat=default",
		"checkout-index", "--no-create", "--quiet")
	if entry.Skipped {
		question = append(question, "--ignore-skip-worktree-bits")
	}
	_, err := r.askConverting(ctx, nil, append(question, "--", path)...)
	var refused *Error
	if errors.As(err, &refused) && refused.ExitCode == 1 && refused.Words == "" {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("compare %q with the index: %w", path, err)
	}
	return false, nil
}

// disarmed are the settings by which no filter program runs.
func disarmed(drivers []string) []string {
	settings := make([]string, 0, 8*len(drivers))
	for _, driver := range drivers {
		for _, setting := range []string{"clean=", "smudge=", "process=", "required=false"} {
			settings = append(settings, "-c", "filter."+driver+"."+setting)
		}
	}
	return settings
}

// errDriver is returned for a filter whose name cannot be spelled on a command
// line, so that it cannot be kept from running there.
var errDriver = errors.New("a filter driver has a name with an equals sign")

// filters returns the names of the filter drivers that are configured.
func (r *Repo) filters(ctx context.Context) ([]string, error) {
	out, err := r.ask(ctx, nil, "config", "-z", "--name-only", "--list")
	if err != nil {
		return nil, fmt.Errorf("list the filters of %q: %w", r.Root, err)
	}
	var drivers []string
	for key := range strings.SplitSeq(string(out), "\x00") {
		name := split(key)
		if name.section != "filter" || name.subsection == "" {
			continue
		}
		if strings.ContainsAny(name.subsection, "=\n") {
			return nil, errDriver
		}
		drivers = append(drivers, name.subsection)
	}
	return drivers, nil
}

// filtered reports whether attributes ask for one of the drivers at path.
func (r *Repo) filtered(ctx context.Context, path string, drivers []string) (bool, error) {
	out, err := r.askConverting(ctx, []byte(path+"\x00"), "check-attr", "-z", "--stdin", "filter")
	if err != nil {
		return false, fmt.Errorf("look up the attributes of %q: %w", path, err)
	}
	// path, attribute and value, each ended by a NUL.
	fields := strings.Split(string(out), "\x00")
	const value = 2
	if len(fields) <= value {
		return false, errListing
	}
	for _, driver := range drivers {
		if fields[value] == driver {
			return true, nil
		}
	}
	return false, nil
}
