package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/user"
	"slices"
	"strings"

	"cage/internal/physical"
	"cage/internal/program"
)

// Config says where git's configuration of a repository comes from. It holds
// no value of it but a path: configuration files hold secrets.
type Config struct {
	// Includes are the files that include.path and includeIf.*.path settings
	// name, whatever the condition says and whether or not they exist: free of
	// symlinks, sorted, each once, and with every symlink that leads to one as
	// an entry of its own. Files that only an inactive include would include
	// are not among them, since git does not read those either.
	Includes []string
	// HooksLinks are the symlinks on the way to the active hooks folder, in
	// the order of the way. Whoever replaces one of them replaces the hooks.
	HooksLinks []string
	// HooksBy is the file whose core.hooksPath names that folder; empty where
	// none does.
	HooksBy string
}

// Config asks git once for everything that Config holds.
func (r *Repo) Config(ctx context.Context) (*Config, error) {
	out, err := query{
		run: r.run, git: r.Git, dir: r.Root, env: r.env,
		args: []string{"--no-pager", "config", "-z", "--show-origin", "--list"},
	}.output(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the git configuration of %q: %w", r.Root, err)
	}
	config, err := r.sort(out)
	if err != nil {
		return nil, fmt.Errorf("read the git configuration of %q: %w", r.Root, err)
	}
	return config, nil
}

// Hook returns where git looks for a hook, in an environment that has variables
// besides. What of the answer is relative is relative to the root.
func (r *Repo) Hook(ctx context.Context, name string, variables []string) (string, error) {
	out, err := query{
		run: r.run, git: r.Git, dir: r.Root, env: append(slices.Clone(r.env), variables...),
		args: []string{"--no-pager", "rev-parse", "--git-path", "hooks/" + name},
	}.output(ctx)
	if err != nil {
		return "", fmt.Errorf("ask git for its %s hook: %w", name, err)
	}
	return join(r.Root, strings.TrimSuffix(string(out), "\n")), nil
}

// sort makes a Config of what git config --show-origin -z lists: origin and
// setting in turn, each ended by a NUL.
func (r *Repo) sort(listing []byte) (*Config, error) {
	config := &Config{}
	hooks := join(r.CommonDir, "hooks")
	fields := bytes.Split(bytes.TrimSuffix(listing, []byte{0}), []byte{0})
	for pair := range slices.Chunk(fields, 2) {
		file, isFile := strings.CutPrefix(string(pair[0]), "file:")
		if len(pair) < 2 || !isFile {
			continue
		}
		file = join(r.Root, file)
		setting := parseSetting(string(pair[1]))
		switch {
		case setting.Key == "core.hookspath":
			hooks, config.HooksBy = join(r.Root, r.home(setting.Value)), file
		case includes(setting.Key):
			// What is relative is relative to the file that says it, by the
			// name that git opened it under.
			named := join(file[:strings.LastIndexByte(file, '/')], r.home(setting.Value))
			target, links, err := physical.Way(named)
			if err != nil {
				return nil, fmt.Errorf("%s of %q: %w", setting.Key, file, err)
			}
			config.Includes = append(config.Includes, append(links, target)...)
		}
	}
	slices.Sort(config.Includes)
	config.Includes = slices.Compact(config.Includes)
	var err error
	_, config.HooksLinks, err = physical.Way(hooks)
	return config, err
}

// includes reports whether key names a file to include.
func includes(key string) bool {
	return key == "include.path" || strings.HasPrefix(key, "includeif.") && strings.HasSuffix(key, ".path")
}

// home expands a leading "~" or "~name" as git does. A name without a home
// stays as it is.
func (r *Repo) home(path string) string {
	if !strings.HasPrefix(path, "~") {
		return path
	}
	name, rest, _ := strings.Cut(path[1:], "/")
	dir := ""
	if name == "" {
		dir = program.Variables(r.env)["HOME"]
	} else if account, err := user.Lookup(name); err == nil {
		dir = account.HomeDir
	}
	if dir == "" {
		return path
	}
	return join(dir, rest)
}

// Setting is one setting of a configuration file.
type Setting struct {
	// Key is section, subsection if there is one, and name, joined by dots;
	// section and name in lower case. The subsection may hold dots itself.
	Key string
	// Value is the value, with quotes and escapes resolved.
	Value string
	// NoValue is set for a name without "=", which git reads as true.
	NoValue bool
}

// errConfig is returned for a configuration that git cannot read.
var errConfig = errors.New("not a configuration that git can read")

// ParseConfig returns the settings that git reads in the content of a
// configuration file, in their order and without following includes. git is
// the parser. Content that git refuses, and content with a NUL byte (which git
// would take for the end of a value), is an error. What the content says never
// becomes part of an error.
func (r *Repo) ParseConfig(ctx context.Context, content []byte) ([]Setting, error) {
	if bytes.IndexByte(content, 0) >= 0 {
		return nil, fmt.Errorf("parse a configuration: NUL byte: %w", errConfig)
	}
	out, err := query{
		run: r.run, git: r.Git, dir: "/", env: isolatedEnv(r.env),
		args:  []string{"--no-pager", "config", "-z", "--list", "--no-includes", "--file", "-"},
		stdin: content,
	}.output(ctx)
	var refused *Error
	if errors.As(err, &refused) {
		return nil, fmt.Errorf("parse a configuration: %w (exit code %d)", errConfig, refused.ExitCode)
	}
	if err != nil {
		return nil, fmt.Errorf("parse a configuration: %w", err)
	}
	var settings []Setting
	for field := range bytes.SplitSeq(bytes.TrimSuffix(out, []byte{0}), []byte{0}) {
		if len(field) > 0 {
			settings = append(settings, parseSetting(string(field)))
		}
	}
	return settings, nil
}

// parseSetting takes one entry of git config -z --list apart. Neither part of
// a key can hold a newline, so the first one ends it.
func parseSetting(entry string) Setting {
	key, value, found := strings.Cut(entry, "\n")
	return Setting{Key: key, Value: value, NoValue: !found}
}
