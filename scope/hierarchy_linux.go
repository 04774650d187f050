package scope

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cage/internal/proc"
)

// hierarchy is cgroup version 2 as this process sees it.
type hierarchy struct {
	// mount and proc are where it and the processes are found.
	mount, proc string
	magic       func(path string) (int64, error)
}

// machine is the hierarchy of this machine.
func machine() hierarchy {
	return hierarchy{mount: "/sys/fs/cgroup", proc: "/proc", magic: magicOf}
}

func magicOf(path string) (int64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return 0, err
	}
	return int64(fs.Type), nil
}

// CanRenice reports whether this process may set its own niceness.
func CanRenice() bool {
	inverse, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	return err == nil && unix.Setpriority(unix.PRIO_PROCESS, 0, 20-inverse) == nil
}

// check refuses a machine whose limits would be accepted and then ignored.
func (h hierarchy) check() error {
	magic, err := h.magic(h.mount)
	switch {
	case err != nil:
		return unavailable("%s cannot be looked at: %v", h.mount, err)
	case magic == unix.CGROUP2_SUPER_MAGIC:
		return nil
	case magic == unix.TMPFS_MAGIC:
		return unavailable("%s is not cgroup version 2 but version 1, alone or beside it; systemd.unified_cgroup_hierarchy=1 on the kernel's command line changes that", h.mount)
	default:
		return unavailable("%s is not cgroup version 2 (file system 0x%x)", h.mount, uint32(magic))
	}
}

// groupOf returns the group of a process, as an absolute path within the
// hierarchy.
func (h hierarchy) groupOf(process string) (string, error) {
	text, err := os.ReadFile(filepath.Join(h.proc, process, "cgroup"))
	if err != nil {
		return "", fmt.Errorf("finding the group of process %s: %w", process, err)
	}
	for line := range strings.Lines(string(text)) {
		// cgroups(7): the entry of version 2 has number 0 and no controllers.
		if group, found := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); found {
			return group, nil
		}
	}
	return "", unavailable("process %s is in no group of cgroup version 2", process)
}

func (h hierarchy) folder(group string) string { return filepath.Join(h.mount, group) }

// read returns what a control file holds, without the newline.
func (h hierarchy) read(group, file string) (string, error) {
	text, err := os.ReadFile(filepath.Join(h.folder(group), file))
	return strings.TrimSuffix(string(text), "\n"), err
}

// write fills a control file. It never makes one: what is not there is a
// controller that the group does not have.
func (h hierarchy) write(group, file, text string) error {
	f, err := os.OpenFile(filepath.Join(h.folder(group), file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// controllers returns the words of a file such as cgroup.controllers.
func (h hierarchy) controllers(group, file string) ([]string, error) {
	text, err := h.read(group, file)
	return strings.Fields(text), err
}

// above returns a group and those that contain it, innermost first.
func above(group string) []string {
	groups := []string{group}
	for group != "/" && group != "." {
		group = path.Dir(group)
		groups = append(groups, group)
	}
	return groups
}

// ceiling returns the smallest limit of memory of a group and those above it, nil
// where none has one.
func (h hierarchy) ceiling(group string) *uint64 {
	var least *uint64
	for _, g := range above(group) {
		least = lesser(least, h.number(g, "memory.max"))
	}
	return least
}

// number reads a control file that holds one; nil where it does not.
func (h hierarchy) number(group, file string) *uint64 {
	text, err := h.read(group, file)
	if err != nil {
		return nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

// lesser returns the smaller of two ceilings, of which nil is none.
func lesser(a, b *uint64) *uint64 {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}

// finite makes no ceiling of what systemd spells as infinity.
func finite(n uint64) *uint64 {
	if n == 0 || n == math.MaxUint64 {
		return nil
	}
	return &n
}

// memoryTotal is the machine's memory in bytes.
func memoryTotal() (uint64, error) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0, fmt.Errorf("asking for the machine's memory: %w", err)
	}
	return uint64(info.Totalram) * uint64(info.Unit), nil
}

// prove compares control files with what they must hold.
func (h hierarchy) prove(group string, controls []control) error {
	for _, c := range controls {
		got, err := h.read(group, c.file)
		if err != nil {
			return unavailable("%s cannot be read back: %v", c.file, errno(err))
		}
		if got != c.text {
			return unavailable("%s reads back as %s, not %s", c.file, got, c.text)
		}
	}
	return nil
}

// errno is the system's answer without the long name of the file.
func errno(err error) error {
	var answer syscall.Errno
	if errors.As(err, &answer) {
		return answer
	}
	return err
}

// members lists the processes of a group and of those below it. Those that
// end meanwhile may be missing.
func (h hierarchy) members(group string) []proc.ID {
	var ids []proc.ID
	filepath.WalkDir(h.folder(group), func(folder string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return nil
		}
		text, _ := os.ReadFile(filepath.Join(folder, "cgroup.procs"))
		for word := range bytes.FieldsSeq(text) {
			// 0 is a process of another pid namespace.
			pid, err := strconv.Atoi(string(word))
			if err != nil || pid == 0 {
				continue
			}
			if id, err := proc.Identify(pid); err == nil {
				ids = append(ids, id)
			}
		}
		return nil
	})
	return ids
}

// populated reports whether a process lives in a group or below it, and vacant
// whether the group is there and none does.
func (h hierarchy) populated(group string) bool { return h.occupied(group, "populated 1") }
func (h hierarchy) vacant(group string) bool    { return h.occupied(group, "populated 0") }

func (h hierarchy) occupied(group, line string) bool {
	text, err := h.read(group, "cgroup.events")
	return err == nil && slices.Contains(strings.Split(text, "\n"), line)
}

// look is how often it is looked whether a group is empty.
const look = 2 * time.Millisecond

// kill ends every process of a group, those that fork meanwhile included, and
// reports whether none was left in time.
func (h hierarchy) kill(group string, patience time.Duration) bool {
	for deadline := time.Now().Add(patience); ; {
		if !h.populated(group) {
			return true
		}
		// Before Linux 5.14 there is no such file, and a fork may overtake.
		if h.write(group, "cgroup.kill", "1") != nil {
			for _, id := range h.members(group) {
				_ = id.Signal(unix.SIGKILL)
			}
		}
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(look)
	}
}

// remove removes a group that has no processes, with what a process made
// below it. Just after the last one has ended the kernel may still be busy.
func (h hierarchy) remove(group string, patience time.Duration) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(look) {
		err := removeTree(h.folder(group))
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
			return fmt.Errorf("removing the group %s: %w", group, errno(err))
		}
	}
}

// removeTree removes folders from the innermost out; their files go with them.
func removeTree(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := removeTree(filepath.Join(folder, entry.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return unix.Rmdir(folder)
}
