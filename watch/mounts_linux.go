package watch

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"cage/internal/safefile"
	"cage/rules"
)

const mountTable = "/proc/self/mountinfo"

// mounts wakes when a mount changes on the way to an anchor or beneath one.
// No watch tells of that.
type mounts struct {
	// table is a bare descriptor: an os.File would be polled by the runtime
	// too, and the kernel tells each change once for a descriptor.
	table int
	wake  int // eventfd that ends the waiting
	// looked says that there was a look at the table, seen what the last one that
	// did not fail showed.
	looked bool
	seen   []mount
}

// mount is one line of the mount table that concerns an anchor.
type mount struct {
	anchor rules.Anchor
	line   string
	point  string
	fstype string
}

// startMounts looks at the mount table once and waits for its changes from
// then on.
func (w *Watcher) startMounts() {
	m, err := openMounts()
	if err != nil {
		w.ledger.degrade(Lack{Reason: "changes of mounts cannot be watched: " + err.Error()})
		return
	}
	w.mounts = m
	w.noteMounts(os.ReadFile(mountTable))
	w.running.Go(func() {
		for m.wait() {
			w.noteMounts(os.ReadFile(mountTable))
		}
	})
}

func openMounts() (*mounts, error) {
	table, err := unix.Open(mountTable, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: mountTable, Err: err}
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(table)
		return nil, os.NewSyscallError("eventfd", err)
	}
	return &mounts{table: table, wake: wake}, nil
}

// wait returns true when the table changed since it last did, false when it is
// to end (proc_pid_mountinfo(5): a change is exceptional data).
func (m *mounts) wait() bool {
	for {
		set := []unix.PollFd{{Fd: int32(m.table), Events: unix.POLLPRI}, {Fd: int32(m.wake), Events: unix.POLLIN}}
		_, err := unix.Poll(set, -1)
		if err == unix.EINTR {
			continue
		}
		if err != nil || set[1].Revents != 0 {
			return false
		}
		if set[0].Revents != 0 {
			return true
		}
	}
}

// stop ends the waiting; release is for after that.
func (m *mounts) stop() {
	if m != nil {
		unix.Write(m.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
}

func (m *mounts) release() {
	if m != nil {
		unix.Close(m.table)
		unix.Close(m.wake)
	}
}

// noteMounts compares the table with the last look. Only mounts that concern
// an anchor count: on a busy machine others come and go all the time. After a
// look that failed nothing is known of what came and went since.
func (w *Watcher) noteMounts(table []byte, err error) {
	first := !w.mounts.looked
	w.mounts.looked = true
	if err != nil {
		w.hints.fail(fmt.Errorf("read the mount table: %w", err))
		w.lose(true)
		return
	}
	now := concerning(table, w.layout)
	same := slices.Equal(now, w.mounts.seen)
	w.mounts.seen = now
	if same {
		return
	}
	for _, reason := range unseen(now, w.layout) {
		w.ledger.degrade(Lack{Reason: reason})
	}
	if !first {
		w.dirs.distrust()
		w.hints.remounted()
	}
}

// concerning returns the mounts that an anchor lies on or that lie beneath it.
func concerning(table []byte, l rules.Layout) []mount {
	found := []mount{}
	for raw := range bytes.Lines(table) {
		line := strings.TrimSuffix(string(raw), "\n")
		point, named := safefile.MountPoint(line)
		_, source, typed := strings.Cut(line, " - ")
		if !named || !typed {
			continue
		}
		fstype, _, _ := strings.Cut(source, " ")
		for _, a := range rules.Anchors() {
			_, on := rules.Below(l.Dir(a), point)
			_, above := rules.Below(point, l.Dir(a))
			if on || above {
				found = append(found, mount{anchor: a, line: line, point: point, fstype: fstype})
			}
		}
	}
	return found
}

// unseen returns the reasons why changes can escape events on these mounts:
// somebody else changes files there behind the kernel's back.
func unseen(found []mount, l rules.Layout) []string {
	var reasons []string
	for _, a := range rules.Anchors() {
		var own mount // the innermost mount that the anchor lies on
		for _, m := range found {
			_, on := rules.Below(l.Dir(a), m.point)
			switch {
			case m.anchor != a:
			case on:
				if len(m.point) >= len(own.point) {
					own = m
				}
			case shared(m.fstype):
				reasons = append(reasons, sharedReason(m))
			}
		}
		if shared(own.fstype) {
			reasons = append(reasons, sharedReason(own))
		}
	}
	return reasons
}

func sharedReason(m mount) string {
	return fmt.Sprintf("%q is a %s file system: changes made there by another machine or by its server give no events, rescans find them",
		m.point, m.fstype)
}

// shared reports whether files of such a file system can change without this
// kernel being asked.
func shared(fstype string) bool {
	switch fstype {
	case "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "virtiofs", "vboxsf", "prl_fs", "vmhgfs", "drvfs",
		"afs", "ceph", "coda", "lustre", "gfs2", "ocfs2", "ncpfs", "orangefs", "fuse":
		return true
	}
	return strings.HasPrefix(fstype, "fuse.")
}
