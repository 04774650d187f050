package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The forms of `tamper` for fights. Those that fight go on until they are
// ended, or until patience has run out.
//
//	tamper held <file> <program> [args...]   runs the program with a lock on the
//	                                         file, which everything inherits that
//	                                         descends from it
//	tamper free <file>                       wants nobody to hold that lock
//	tamper hoard <file>                      writes the file again and again
//	                                         through descriptors that it keeps
//	tamper launder <file> <clean>            writes the file, and once that is
//	                                         undone gives what was displaced the
//	                                         content of another file through the
//	                                         descriptor that it still has
//	tamper flicker <file>                    has the file be absent, truncated
//	                                         and half there in turn
//	tamper bare <file> <mode>                has the file be there without its mode,
//	                                         made anew again and again
//	tamper swing <dir> <n>                   closes the directory and opens it to
//	                                         everybody n times
//	tamper blink <file> <there> <gone>       has the file be there and gone for
//	                                         so many milliseconds in turn
//	tamper flood <dir> <n> <file>            makes and removes n files in the
//	                                         directory, one after the other, and
//	                                         tampers with the file in the middle
//	tamper scatter <dir> <n>                 makes n files in the directory
//	tamper gossip <dir> <n>                  makes n files below the directory
//	                                         whose paths are as long and as hard
//	                                         to spell as can be, and waits until
//	                                         they are gone
func tamperFight(form string, args []string) (done bool, err error) {
	switch {
	case form == "held" && len(args) >= 2:
		return true, held(args[0], args[1:])
	case form == "free" && len(args) == 1:
		return true, free(args[0])
	case form == "hoard" && len(args) == 1:
		return true, hoard(args[0])
	case form == "launder" && len(args) == 2:
		return true, launder(args[0], args[1])
	case form == "flicker" && len(args) == 1:
		return true, flicker(args[0])
	case form == "bare" && len(args) == 2:
		return true, bare(args[0], args[1])
	case form == "swing" && len(args) == 2:
		return true, counted(args[1], func(n int) error { return swing(args[0], n) })
	case form == "blink" && len(args) == 3:
		return true, blink(args[0], args[1], args[2])
	case form == "flood" && len(args) == 3:
		return true, counted(args[1], func(n int) error { return flood(args[0], n, args[2]) })
	case form == "scatter" && len(args) == 2:
		return true, counted(args[1], func(n int) error { return scatter(args[0], n) })
	case form == "gossip" && len(args) == 2:
		return true, counted(args[1], func(n int) error { return gossip(args[0], n) })
	}
	return false, nil
}

func counted(number string, do func(n int) error) error {
	n, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	return do(n)
}

// errNotEnded is returned by a fighter that nobody has ended.
var errNotEnded = errors.New("nobody has ended the fight")

func held(file string, command []string) error {
	// A lock of flock(2) belongs to the open file: it lasts until the last copy
	// of the descriptor is closed, by whichever process.
	fd, err := unix.Open(file, unix.O_RDWR|unix.O_CREAT, 0o600)
	if err != nil {
		return err
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return err
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		return err
	}
	return syscall.Exec(path, command, os.Environ())
}

func free(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("somebody that inherited %s lives: %w", file, err)
	}
	return nil
}

// fighting calls one until patience has run out.
func fighting(one func(n int) error) error {
	end := time.Now().Add(patience)
	for n := 0; time.Now().Before(end); n++ {
		if err := one(n); err != nil {
			return err
		}
	}
	return errNotEnded
}

func hoard(file string) error {
	var kept []*os.File
	return fighting(func(n int) error {
		f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
		if err == nil {
			_, err = fmt.Fprintf(f, "EVIL=%d\n", n)
			kept = append(kept, f)
		}
		time.Sleep(100 * time.Millisecond)
		return unlessAbsent(err)
	})
}

func launder(file, clean string) error {
	content, err := os.ReadFile(clean)
	if err != nil {
		return err
	}
	return fighting(func(int) error {
		f, err := os.OpenFile(file, os.O_RDWR, 0)
		if err != nil {
			return unlessAbsent(err)
		}
		defer f.Close()
		if _, err := f.WriteAt([]byte("EVIL=1\n"), 0); err != nil {
			return err
		}
		if err := replaced(file, f); err != nil {
			return err
		}
		if _, err := f.WriteAt(content, 0); err != nil {
			return err
		}
		err = f.Truncate(int64(len(content)))
		// Rare enough that nothing is seen before it is clean.
		time.Sleep(300 * time.Millisecond)
		return err
	})
}

// replaced waits until the open file no longer stands at its path.
func replaced(file string, f *os.File) error {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		mine, err := f.Stat()
		if err != nil {
			return err
		}
		if now, err := os.Lstat(file); err == nil && !os.SameFile(mine, now) {
			return nil
		}
	}
	return errors.New("it stands there still")
}

func flicker(file string) error {
	whole, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return fighting(func(n int) error {
		var err error
		switch n % 3 {
		case 0:
			err = os.Remove(file)
		case 1:
			err = os.WriteFile(file, nil, 0o644)
		case 2:
			err = os.WriteFile(file, whole[:len(whole)/2], 0o644)
		}
		time.Sleep(2 * time.Millisecond)
		return unlessAbsent(err)
	})
}

func bare(file, mode string) error {
	whole, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	perm, err := strconv.ParseUint(mode, 8, 12)
	if err != nil {
		return err
	}
	temp := filepath.Join(filepath.Dir(filepath.Dir(file)), "bare")
	return fighting(func(int) error {
		if err := os.WriteFile(temp, whole, 0o600); err != nil {
			return err
		}
		if err := os.Chmod(temp, os.FileMode(perm)); err != nil {
			return err
		}
		time.Sleep(2 * time.Millisecond)
		return os.Rename(temp, file)
	})
}

func swing(dir string, n int) error {
	for range n {
		for _, mode := range []os.FileMode{0, 0o777} {
			if err := os.Chmod(dir, mode); err != nil {
				return err
			}
		}
	}
	return nil
}

func blink(file, there, gone string) error {
	on, err := time.ParseDuration(there + "ms")
	if err != nil {
		return err
	}
	off, err := time.ParseDuration(gone + "ms")
	if err != nil {
		return err
	}
	return fighting(func(int) error {
		if err := os.WriteFile(file, []byte("EVIL=1\n"), 0o600); err != nil {
			return err
		}
		time.Sleep(on)
		err := unlessAbsent(os.Remove(file))
		time.Sleep(off)
		return err
	})
}

func flood(dir string, n int, file string) error {
	for i := range n {
		name := filepath.Join(dir, "flood-"+strconv.Itoa(i))
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			return err
		}
		if err := os.Remove(name); err != nil {
			return err
		}
		if i == n/2 {
			if err := os.WriteFile(file, []byte("EVIL=1\n"), 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

func scatter(dir string, n int) error {
	for i := range n {
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func gossip(dir string, n int) error {
	// 0xff is in no UTF-8: it is spelled with three bytes, and once more in
	// base64.
	segment := strings.Repeat("\xff", 250)
	for range 13 {
		dir = filepath.Join(dir, segment)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := scatter(dir, n); err != nil {
		return err
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		left, err := os.ReadDir(dir)
		if err != nil || len(left) == 0 {
			return unlessAbsent(err)
		}
	}
	return errors.New("not all are gone")
}

// unlessAbsent drops the error of a file that the cage has taken away.
func unlessAbsent(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
