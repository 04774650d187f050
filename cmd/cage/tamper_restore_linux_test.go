package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Forms of `tamper` for what works against a restore:
//
//	tamper exchange <a> <b>            swaps two entries in one step
//	tamper rename <from> <to>          renames by the oldest of the calls
//	tamper lease <path> <until>        takes a write lease, writes, and holds it
//	                                   until a path is there
//	tamper map <path> <text>           writes over the beginning of the file
//	                                   through a mapping and puts its times back
//	tamper read <path> <until> <file>...
//	                                   reads the file over and over until a path
//	                                   is there; it must always be there and be one of those
func tamperRestore(form string, args []string) (known bool, err error) {
	switch {
	case form == "exchange" && len(args) == 2:
		return true, unix.Renameat2(unix.AT_FDCWD, args[0], unix.AT_FDCWD, args[1], unix.RENAME_EXCHANGE)
	case form == "rename" && len(args) == 2:
		return true, unix.Rename(args[0], args[1])
	case form == "lease" && len(args) == 2:
		return true, lease(args[0], args[1])
	case form == "map" && len(args) == 2:
		return true, writeMapped(args[0], args[1])
	case form == "read" && len(args) >= 3:
		return true, readAlways(args[0], args[1], args[2:])
	}
	return false, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// until calls f over and over until a path is there, which may take as long as
// a whole scenario.
func until(path string, f func() error) error {
	for deadline := time.Now().Add(10 * patience); !exists(path); {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s does not appear", path)
		}
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

func lease(path, end string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := takeWriteLease(f); err != nil {
		return fmt.Errorf("take a lease on %s: %w", path, err)
	}
	if _, err := f.WriteString("under a lease\n"); err != nil {
		return err
	}
	if err := os.WriteFile(end+".written", nil, 0o600); err != nil {
		return err
	}
	return awaitFile(end)
}

func writeMapped(path, text string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	var before unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &before); err != nil {
		return err
	}
	mapping, err := unix.Mmap(int(f.Fd()), 0, int(before.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	copy(mapping, text)
	if err := unix.Munmap(mapping); err != nil {
		return err
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{before.Atim, before.Mtim}, 0)
}

func readAlways(path, end string, files []string) error {
	var allowed [][]byte
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		allowed = append(allowed, content)
	}
	return until(end, func() error {
		content, err := os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%s was missing", path)
		case err != nil:
			return err
		case !slices.ContainsFunc(allowed, func(c []byte) bool { return bytes.Equal(c, content) }):
			return fmt.Errorf("%s was torn: %d bytes", path, len(content))
		}
		return nil
	})
}
