package main

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// The forms that write as honest tools do:
//
//	tamper rewrite <path>                 cuts the file off and writes the same
//	tamper rewrite-slowly <path> <ms>     the same in four pieces, this far apart
//	tamper replace <path> <temp>          writes the same beside it, syncs it and
//	                                      renames it over
//	tamper recreate <path>                unlinks the file and creates the same
//	tamper flash <path> <ms>              makes a file and removes it after that
//
// and one that only looks like them:
//
//	tamper wipe-trace <path>              writes something else, waits for the
//	                                      restore, and makes what was displaced
//	                                      look like the baseline
func tamperHonestly(form string, args []string) (known bool, err error) {
	switch {
	case form == "rewrite" && len(args) == 1:
		return true, rewrite(args[0], 0)
	case form == "rewrite-slowly" && len(args) == 2:
		return true, withPause(args[1], func(pause time.Duration) error { return rewrite(args[0], pause) })
	case form == "replace" && len(args) == 2:
		return true, replaceBySame(args[0], args[1])
	case form == "recreate" && len(args) == 1:
		return true, recreate(args[0])
	case form == "flash" && len(args) == 2:
		return true, withPause(args[1], func(pause time.Duration) error { return flash(args[0], pause) })
	case form == "wipe-trace" && len(args) == 1:
		return true, wipeTrace(args[0])
	}
	return false, nil
}

func withPause(milliseconds string, f func(time.Duration) error) error {
	n, err := strconv.Atoi(milliseconds)
	if err != nil {
		return err
	}
	return f(time.Duration(n) * time.Millisecond)
}

// rewrite writes a file's own content into it, in one piece or, with a pause
// between them, in four.
func rewrite(path string, pause time.Duration) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	pieces := [][]byte{content}
	if quarter := len(content) / 4; pause > 0 && quarter > 0 {
		pieces = [][]byte{content[:quarter], content[quarter : 2*quarter], content[2*quarter : 3*quarter], content[3*quarter:]}
	}
	for _, piece := range pieces {
		time.Sleep(pause)
		if _, err := f.Write(piece); err != nil {
			return err
		}
	}
	return f.Close()
}

func replaceBySame(path, temp string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	if _, err := f.Write(content); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

func recreate(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	if _, err := bytes.NewReader(content).WriteTo(f); err != nil {
		return err
	}
	return f.Close()
}

func flash(path string, pause time.Duration) error {
	if err := os.WriteFile(path, []byte("KEY=1\n"), 0o600); err != nil {
		return err
	}
	time.Sleep(pause)
	return os.Remove(path)
}

func wipeTrace(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteAt(bytes.ToUpper(content), 0); err != nil {
		return err
	}
	if err := await(path, string(content)); err != nil {
		return err
	}
	_, err = f.WriteAt(content, 0)
	return err
}
