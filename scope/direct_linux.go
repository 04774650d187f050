package scope

import (
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"cage/internal/proc"
)

// leaf is the group that a cage moves to where its own must be empty.
const leaf = "cage-leaf"

// lacking returns which of some words are not among others.
func lacking(have, need []string) []string {
	return slices.DeleteFunc(slices.Clone(need), func(word string) bool { return slices.Contains(have, word) })
}

// parent finds a group in which this process may make another with the
// controllers that limits need: the nearest one above that hands them down
// already, or else its own.
func (h hierarchy) parent(need []string) (string, error) {
	own, err := h.groupOf("self")
	if err != nil {
		return "", err
	}
	var refused error
	for _, group := range above(own) {
		down, err := h.controllers(group, "cgroup.subtree_control")
		if err != nil || len(lacking(down, need)) > 0 {
			continue
		}
		if refused = h.writable(group); refused == nil {
			return group, nil
		}
	}
	if err := h.handDown(own, need); err != nil {
		if refused != nil {
			return "", refused
		}
		return "", err
	}
	return own, nil
}

// writable reports whether this process may make a group there and move another
// process into it: for the second it has to write to the group that both are in.
func (h hierarchy) writable(group string) error {
	for _, file := range []string{"", "cgroup.procs"} {
		if err := unix.Faccessat(unix.AT_FDCWD, path.Join(h.folder(group), file), unix.W_OK, unix.AT_EACCESS); err != nil {
			return unavailable("the group %s may not be divided: %v", group, err)
		}
	}
	return nil
}

// handDown makes a group give the controllers to those below it. A group but the
// root of all can only do so where no process is in it (cgroups(7), no internal
// processes), so what is in it moves one down.
func (h hierarchy) handDown(group string, need []string) error {
	have, err := h.controllers(group, "cgroup.controllers")
	if err != nil {
		return unavailable("the group %s cannot be looked at: %v", group, errno(err))
	}
	if lacks := lacking(have, need); len(lacks) > 0 {
		return unavailable("the group %s was not given the controller %s (it has: %s)", group, lacks[0], listed(have))
	}
	if err := h.writable(group); err != nil {
		return err
	}
	if err := h.vacate(group); err != nil {
		return err
	}
	// One by one: a list with one that cannot be had fails whole.
	for _, controller := range need {
		if err := h.write(group, "cgroup.subtree_control", "+"+controller); err != nil {
			return unavailable("the group %s does not hand the controller %s down: %v", group, controller, errno(err))
		}
	}
	return nil
}

// vacate moves the processes of a group one down. Those of others are moved only
// where the group is all that a container sees, since no manager outside counts
// on where they are then.
func (h hierarchy) vacate(group string) error {
	if _, err := h.read(group, "cgroup.type"); err != nil {
		return nil // only the root of all has no type, and may keep its processes
	}
	members, err := h.direct(group)
	if err != nil {
		return unavailable("the group %s cannot be looked at: %v", group, errno(err))
	}
	self := os.Getpid()
	if group != "/" && slices.ContainsFunc(members, func(pid int) bool { return pid != self && !h.descends(pid, self) }) {
		return unavailable("the group %s is shared with other programs, and the groups above it hand nothing down", group)
	}
	if len(members) == 0 {
		return nil
	}
	at := path.Join(group, leaf)
	if err := os.Mkdir(h.folder(at), 0o755); err != nil && !os.IsExist(err) {
		return unavailable("no group can be made in %s: %v", group, errno(err))
	}
	for _, pid := range members {
		err := h.write(at, "cgroup.procs", strconv.Itoa(pid))
		if err != nil && errno(err) != unix.ESRCH {
			return unavailable("process %d cannot be moved out of the group %s: %v", pid, group, errno(err))
		}
	}
	return nil
}

// direct lists the process numbers in a group, and none below it.
func (h hierarchy) direct(group string) ([]int, error) {
	text, err := h.read(group, "cgroup.procs")
	if err != nil {
		return nil, err
	}
	var pids []int
	for word := range strings.FieldsSeq(text) {
		if pid, err := strconv.Atoi(word); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// descends reports whether a process has another one above it.
func (h hierarchy) descends(pid, ancestor int) bool {
	for pid > 1 && pid != ancestor {
		pid = h.parentOf(pid)
	}
	return pid == ancestor
}

func (h hierarchy) parentOf(pid int) int {
	text, err := os.ReadFile(path.Join(h.proc, strconv.Itoa(pid), "status"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if number, found := strings.CutPrefix(line, "PPid:"); found {
			parent, _ := strconv.Atoi(strings.TrimSpace(number))
			return parent
		}
	}
	return 0
}

// make makes a group. Where one of that name is there, it is another program's of
// the same process number, or one that could not be removed.
func (h hierarchy) make(parent string, n name) (string, error) {
	var err error
	for n.attempt = 1; n.attempt <= mostAttempts; n.attempt++ {
		group := path.Join(parent, n.String())
		if err = os.Mkdir(h.folder(group), 0o755); err == nil {
			return group, nil
		}
		if !os.IsExist(err) {
			break
		}
	}
	return "", unavailable("no group can be made in %s: %v", parent, errno(err))
}

// fill gives a group its limits, reads them back, and moves a process that
// stands still into it. A limit that cannot be written is none.
func (h hierarchy) fill(group string, id proc.ID, controls []control) error {
	for _, c := range controls {
		if err := h.write(group, c.file, c.text); err != nil {
			return unavailable("%s cannot be set: %v", c.file, errno(err))
		}
	}
	if err := h.prove(group, controls); err != nil {
		return err
	}
	if err := h.write(group, "cgroup.procs", strconv.Itoa(id.PID)); err != nil {
		return unavailable("the command cannot be moved into the group %s: %v", group, errno(err))
	}
	return nil
}
