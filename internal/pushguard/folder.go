package pushguard

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"cage/internal/tempdir"
	"cage/rules"

	"golang.org/x/sys/unix"
)

// What lies in the folder.
const (
	configName = "cage-config"
	scriptName = "cage-hook"
	socketName = "cage-socket"
)

// folderPrefix is how the folder of a session is called before its id.
const folderPrefix = "gantry-cage-hooks-"

// The compiler wants a variable here; nothing assigns to it.
//
//go:embed hook.sh
var script string

// Folder is where the hooks of a session lie.
func Folder(temp, session string) string { return filepath.Join(temp, folderPrefix+session) }

const ownerOnly, ownerReadWrite = 0o700, 0o600

// hold makes the folder and holds it.
func hold(folder string) (*tempdir.Folder, error) {
	err := os.Mkdir(folder, ownerOnly)
	if err == nil {
		var held *tempdir.Folder
		if held, err = tempdir.Hold(folder); err == nil {
			return held, nil
		}
		os.Remove(folder) // nothing lies in it yet
	}
	return nil, fmt.Errorf("make the push guard's folder: %w", err)
}

// unlay removes what was laid in the folder, and the folder, and lets go of it.
func unlay(held *tempdir.Folder) error {
	defer held.Close()
	if err := held.Clear(laid); err != nil {
		return fmt.Errorf("remove the push guard's folder: %w", err)
	}
	return nil
}

// laid reports whether a name in the folder is one that the guard gives.
func laid(name string) bool {
	return name == configName || name == scriptName || name == socketName || name == Stage || slices.Contains(rules.GitHooks(), name)
}

// lay fills the folder, with as few inodes as can be: to make one takes a file
// system longer than everything else here.
func lay(folder string, o Options) error {
	hook := filepath.Join(folder, scriptName)
	for _, step := range []func() error{
		func() error { return os.WriteFile(hook, []byte(script), ownerOnly) },
		func() error { return executable(hook) },
		func() error { return os.WriteFile(filepath.Join(folder, configName), config(folder), ownerReadWrite) },
		func() error { return os.Symlink(o.Program, filepath.Join(folder, Stage)) },
		func() error { return layHooks(folder, o) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("make the push guard's folder: %w", err)
		}
	}
	return nil
}

// config is the file that leads git to the folder.
func config(folder string) []byte { return []byte("[core]\n\thooksPath = " + quote(folder) + "\n") }

// executable reports an error where the system would not execute a file, as on
// a mount that forbids it: git would pass over every hook then, the user's own
// included.
func executable(path string) error {
	if err := unix.Access(path, unix.X_OK); err != nil {
		return &fs.PathError{Op: "execute", Path: path, Err: err}
	}
	return nil
}

// layHooks puts the script under the name of every hook, but for those that are
// passed by and that the repository does not have.
func layHooks(folder string, o Options) error {
	known := !configures(o.Env)
	for _, name := range rules.GitHooks() {
		if known && passed(name) && !exists(filepath.Join(o.Judge.Repo.HooksDir, name)) {
			continue
		}
		if err := os.Link(filepath.Join(folder, scriptName), filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	return nil
}

// configures reports whether an environment gives git settings: they can name
// another hooks folder than the repository has by its files.
func configures(environ []string) bool {
	return slices.ContainsFunc(environ, func(entry string) bool {
		return strings.HasPrefix(entry, "GIT_CONFIG_KEY_") || strings.HasPrefix(entry, "GIT_CONFIG_PARAMETERS=")
	})
}

// passed reports whether a hook is passed by where the repository has none of
// that name. The first two would run several times for every commit. Where git
// finds one of the others it does other work: it writes the message of a commit
// that it picks into a file, and leaves a work tree that was pushed to alone.
func passed(name string) bool {
	switch name {
	case "reference-transaction", "post-index-change", "prepare-commit-msg", "push-to-checkout", "proc-receive":
		return true
	}
	return false
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// quote spells a value of git's configuration.
func quote(value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(value) + `"`
}

// Remove removes the folder of a session that did not end. Of anything else in its
// place, or in it, the error says that it stays.
func Remove(temp, session string) error {
	if filepath.Base(Folder(temp, session)) != folderPrefix+session {
		return fmt.Errorf("remove the push guard's folder: %q names no session", session)
	}
	held, err := tempdir.Hold(Folder(temp, session))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove the push guard's folder: %w", err)
	}
	return unlay(held)
}

// Leftovers returns the folders of this user in a directory whose sessions no
// longer answer.
func Leftovers(temp string) ([]string, error) {
	entries, err := os.ReadDir(temp)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for folders of push guards: %w", err)
	}
	var left []string
	for _, entry := range entries {
		path := filepath.Join(temp, entry.Name())
		if entry.IsDir() && strings.HasPrefix(entry.Name(), folderPrefix) && mine(path) && !answers(path) {
			left = append(left, path)
		}
	}
	return left, nil
}

func mine(path string) bool {
	info, err := os.Lstat(path)
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// answers reports whether the session of a folder lives.
func answers(folder string) bool {
	conn, err := dial(folder)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}
