//go:build !linux

package watch

import (
	"os"

	"cage/internal/safefile"
	"cage/rules"
)

// inodes is empty: only inotify(7) watches a file that has other names.
type inodes struct{}

func (*inodes) renew() (*os.File, error)            { return nil, nil }
func (*inodes) count() int                          { return 0 }
func (*inodes) armed(rules.Path) bool               { return true }
func (*inodes) arm(*safefile.Dir, rules.Path) error { return nil }
func (*inodes) disarm(rules.Path)                   {}
func (*inodes) close()                              {}
func (*Watcher) readInodes(*os.File)                {}

// mounts is empty: no such system tells of changed mounts. Rescans find them.
type mounts struct{}

func (*Watcher) startMounts() {}
func (*mounts) stop()         {}
func (*mounts) release()      {}
