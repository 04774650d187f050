package kept

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// keepFor is how long the copies of a session are kept.
const keepFor = 30 * 24 * time.Hour

// Prune removes the stores of sessions that were last written 30 days before
// now, in the folder that holds a store for every session. It removes only
// files and folders with exactly the names that a Keeper gives, follows no
// link, and leaves everything else alone.
func Prune(sessions string, now time.Time) error {
	root, err := os.OpenRoot(sessions)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !entry.IsDir() || !sessionName(entry.Name()) || now.Sub(info.ModTime()) < keepFor {
			continue
		}
		pruneSession(root, entry.Name())
	}
	return nil
}

func pruneSession(root *os.Root, session string) {
	entries, err := fs.ReadDir(root.FS(), session)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if entry.Type().IsRegular() && storedName(entry.Name()) {
			root.Remove(filepath.Join(session, entry.Name()))
		}
	}
	root.Remove(session) // stays where something of somebody else lies in it
}

// sessionName reports whether a folder has a name that a session can have: 16
// hexadecimal digits.
func sessionName(name string) bool { return len(name) == 16 && isHex(name) }

// storedName reports whether a file has a name that a Keeper or a Ledger gives:
// an address, that of an index, or that of a copy which was interrupted.
func storedName(name string) bool {
	if number, ok := strings.CutPrefix(name, incoming); ok {
		return number != "" && strings.Trim(number, "0123456789") == ""
	}
	return name == IndexName || len(name) == 64 && isHex(name)
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }
