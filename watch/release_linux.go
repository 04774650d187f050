package watch

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// instanceLink is what the link of an inotify instance in /proc/self/fd reads.
const instanceLink = "anon_inode:inotify"

// deferRelease lets the instances of this program be closed without a wait:
// whoever closes the last reference to one that has watches sleeps until no
// processor looks at them any more (synchronize_srcu in the kernel), 10 to 30
// ms and longer than all else at the end of a session. So the last reference is
// the kernel's: it travels in a message between two sockets that nothing but
// this message refers to, once they are closed here. The function that is
// returned, to be called when the instances are closed, has the kernel collect
// such sockets: recent kernels do it in a thread of their own, older ones on the
// spot. Where something of this fails, closing waits.
func deferRelease() (collect func()) {
	instances := openInstances()
	if len(instances) == 0 {
		return func() {}
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return func() {}
	}
	_ = unix.Sendmsg(pair[0], []byte{0}, unix.UnixRights(append(instances, pair[:]...)...), nil, 0)
	unix.Close(pair[0])
	unix.Close(pair[1])
	return collectSockets
}

// openInstances returns the descriptors of this program that are inotify
// instances. fsnotify does not tell its own.
func openInstances() []int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil
	}
	var found []int
	for _, entry := range entries {
		link, err := os.Readlink("/proc/self/fd/" + entry.Name())
		if err != nil || link != instanceLink {
			continue
		}
		if fd, err := strconv.Atoi(entry.Name()); err == nil {
			found = append(found, fd)
		}
	}
	return found
}

// collectSockets closes a socket, upon which the kernel looks for those that
// only their own messages refer to. Were it just about to end such a look, the
// next socket that anybody closes brings the next.
func collectSockets() {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return
	}
	unix.Close(pair[0])
	unix.Close(pair[1])
}
