package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrMissing is returned for an object that is recorded and not there, as in a
// partial clone. Nothing is fetched.
var ErrMissing = errors.New("the object is not in this repository")

// Blobs returns the contents of blobs by their ids. Of one that is larger than
// limit bytes it returns limit+1 zero bytes: such a one is not read.
func (r *Repo) Blobs(ctx context.Context, ids []string, limit int) (map[string][]byte, error) {
	contents := make(map[string][]byte, len(ids))
	if len(ids) == 0 {
		return contents, nil
	}
	small, err := r.smallBlobs(ctx, ids, limit, contents)
	if err != nil || len(small) == 0 {
		return contents, err
	}
	out, err := r.ask(ctx, []byte(strings.Join(small, "\n")+"\n"), "cat-file", "--batch")
	if err != nil {
		return nil, fmt.Errorf("read objects: %w", err)
	}
	for _, id := range small {
		head, rest, found := bytes.Cut(out, []byte("\n"))
		_, _, size, err := readObject(string(head))
		if err != nil || !found || size > len(rest)-1 {
			return nil, errListing
		}
		contents[id], out = rest[:size], rest[size+1:]
	}
	return contents, nil
}

// smallBlobs returns those of ids that are no larger than limit, and puts the
// others into contents.
func (r *Repo) smallBlobs(ctx context.Context, ids []string, limit int, contents map[string][]byte) ([]string, error) {
	out, err := r.ask(ctx, []byte(strings.Join(ids, "\n")+"\n"), "cat-file", "--batch-check")
	if err != nil {
		return nil, fmt.Errorf("look up objects: %w", err)
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) != len(ids) {
		return nil, errListing
	}
	var small []string
	for i, line := range lines {
		_, kind, size, err := readObject(line)
		switch {
		case err != nil:
			return nil, fmt.Errorf("read object %s: %w", ids[i], err)
		case kind != "blob":
			return nil, fmt.Errorf("read object %s: it is a %s, not a file", ids[i], kind)
		case size > limit:
			contents[ids[i]] = make([]byte, limit+1)
		default:
			small = append(small, ids[i])
		}
	}
	return small, nil
}

// readObject reads a line of git cat-file: id, type and size, or what was asked
// for and that it is missing.
func readObject(line string) (id, kind string, size int, err error) {
	fields := strings.Split(line, " ")
	if last := fields[len(fields)-1]; last == "missing" || last == "ambiguous" {
		return "", "", 0, ErrMissing
	}
	if len(fields) != 3 {
		return "", "", 0, errListing
	}
	size, err = strconv.Atoi(fields[2])
	if err != nil {
		return "", "", 0, errListing
	}
	return fields[0], fields[1], size, nil
}

// Have reports whether the repository has all objects.
func (r *Repo) Have(ctx context.Context, ids []string) (bool, error) {
	out, err := r.ask(ctx, []byte(strings.Join(ids, "\n")+"\n"), "cat-file", "--batch-check")
	if err != nil {
		return false, fmt.Errorf("look up objects: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		if _, _, _, err := readObject(strings.TrimSuffix(line, "\n")); err != nil {
			return false, nil
		}
	}
	return true, nil
}
