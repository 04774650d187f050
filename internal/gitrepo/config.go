package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
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
	// an entry of its own. Of a repository's files those count too that git does
	// not read now because a condition does not hold, with what they include: a
	// switch of the branch can make it hold.
	Includes []string
	// HooksLinks are the symlinks on the way to the active hooks folder, in
	// the order of the way. Whoever replaces one of them replaces the hooks.
	HooksLinks []string
	// HooksBy is the file whose core.hooksPath names that folder; empty where
	// none does.
	HooksBy string
}

// Config asks git once for everything that Config holds, and once more for each
// included file of the repository that git does not read now.
func (r *Repo) Config(ctx context.Context) (*Config, error) {
	out, err := query{
		run: r.run, git: r.Git, dir: r.Root, env: r.env,
		args: []string{"--no-pager", "config", "-z", "--show-origin", "--list"},
	}.output(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the git configuration of %q: %w", r.Root, err)
	}
	config, read, err := r.sort(out)
	if err == nil {
		err = r.readAhead(ctx, config, read)
	}
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
// setting in turn, each ended by a NUL. It returns the origins too.
func (r *Repo) sort(listing []byte) (config *Config, read map[string]bool, err error) {
	config, read = &Config{}, map[string]bool{}
	hooks := join(r.CommonDir, "hooks")
	fields := bytes.Split(bytes.TrimSuffix(listing, []byte{0}), []byte{0})
	for pair := range slices.Chunk(fields, 2) {
		file, isFile := strings.CutPrefix(string(pair[0]), "file:")
		if len(pair) < 2 || !isFile {
			continue
		}
		file = join(r.Root, file)
		read[file] = true
		setting := parseSetting(string(pair[1]))
		if setting.Key == "core.hookspath" {
			hooks, config.HooksBy = join(r.Root, r.home(setting.Value)), file
		}
		if err := r.include(config, file, setting); err != nil {
			return nil, nil, err
		}
	}
	_, config.HooksLinks, err = physical.Way(hooks)
	return config, read, err
}

// readAhead adds what files of the repository include that git does not read
// now; read names those that it does read. What is no configuration includes
// nothing.
func (r *Repo) readAhead(ctx context.Context, config *Config, read map[string]bool) error {
	for at := 0; at < len(config.Includes); at++ {
		file := config.Includes[at]
		if read[file] || !physical.Within(file, r.Root) && !physical.Within(file, r.CommonDir) {
			continue
		}
		read[file] = true
		settings, err := r.parseFile(ctx, file)
		if err != nil {
			return err
		}
		for _, setting := range settings {
			if err := r.include(config, file, setting); err != nil {
				return err
			}
		}
	}
	slices.Sort(config.Includes)
	config.Includes = slices.Compact(config.Includes)
	return nil
}

// parseFile returns the settings of a regular file that git can read.
func (r *Repo) parseFile(ctx context.Context, name string) ([]Setting, error) {
	info, err := os.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, nil
	}
	settings, err := r.ParseConfig(ctx, content)
	if errors.Is(err, errConfig) {
		return nil, nil
	}
	return settings, err
}

// include adds what a setting of a file names to include, if it does. What is
// relative is relative to the file, by the name that git opened it under.
func (r *Repo) include(config *Config, file string, setting Setting) error {
	if !includes(setting.Key) {
		return nil
	}
	target, links, err := physical.Way(join(file[:strings.LastIndexByte(file, '/')], r.home(setting.Value)))
	if err != nil {
		return fmt.Errorf("%s of %q: %w", setting.Key, file, err)
	}
	config.Includes = append(config.Includes, append(links, target)...)
	return nil
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
