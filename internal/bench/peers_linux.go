package main

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// peerWord makes this program one of the processes that a measurement needs.
const peerWord = "peer"

// The peers. All of them say that they are ready and work until their standard
// input ends.
const (
	peerHold    = "hold"    // does nothing: the command in a cage
	peerInotify = "inotify" // the floor: one watch, and a write over the file
	peerPoll    = "poll"    // looks at all files once a second
	peerRead    = "read"    // the floor of looking: reads all files once a second
	peerWatch   = "watch"   // the floor of starting: walks a tree and watches it
	peerChurn   = "churn"   // makes and removes files
	peerCrowd   = "crowd"   // has processes that sleep, and starts others
)

func peer(args []string) error {
	if len(args) == 0 {
		return errors.New("no peer named")
	}
	rest := args[1:]
	switch args[0] {
	case peerHold:
		return untilTold(nil)
	case peerInotify:
		return inotifyPeer(rest)
	case peerPoll:
		return pollPeer(rest, true)
	case peerRead:
		return pollPeer(rest, false)
	case peerWatch:
		return watchPeer(rest)
	case peerChurn:
		return churnPeer(rest)
	case peerCrowd:
		return crowdPeer(rest)
	}
	return fmt.Errorf("no peer called %q", args[0])
}

// untilTold starts work, if there is any, and returns when standard input ends.
func untilTold(work func()) error {
	if work != nil {
		go work()
	}
	fmt.Println(readyWord)
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// contents are files with what they shall hold.
type contents struct {
	name string
	want []byte
}

func readAll(names []string) ([]contents, error) {
	var all []contents
	for _, name := range names {
		want, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		all = append(all, contents{name, want})
	}
	return all, nil
}

// replace renames the original over the file.
func (c contents) replace() error {
	temp := c.name + ".new"
	if err := os.WriteFile(temp, c.want, 0o600); err != nil {
		return err
	}
	return os.Rename(temp, c.name)
}

// inotifyPeer is the least that restoring a file takes: a thread that blocks in
// read, and one write over the same file. It compares nothing, keeps nothing of
// what it writes over, and protects against nothing but a plain write.
func inotifyPeer(names []string) error {
	all, err := readAll(names)
	if err != nil {
		return err
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		return err
	}
	if _, err := unix.InotifyAddWatch(fd, all[0].name, unix.IN_MODIFY); err != nil {
		return err
	}
	file, err := os.OpenFile(all[0].name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return untilTold(func() {
		runtime.LockOSThread()
		buf := make([]byte, 4096)
		for {
			if _, err := unix.Read(fd, buf); err != nil && err != unix.EINTR {
				panic(err)
			}
			if _, err := file.WriteAt(all[0].want, 0); err != nil {
				panic(err)
			}
			drain(fd, buf) // the event of its own write
		}
	})
}

// drain takes the events that are there, without waiting for more.
func drain(fd int, buf []byte) {
	set := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(set, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return
		}
		_, _ = unix.Read(fd, buf)
	}
}

// pollInterval is the pace of the polling loop.
const pollInterval = time.Second

// pollPeer reads all files once a second. The polling loop also hashes what it
// read, and renames the original over a file that has another hash.
func pollPeer(args []string, hashes bool) error {
	names, err := matching(args)
	if err != nil {
		return err
	}
	all, err := readAll(names)
	if err != nil {
		return err
	}
	sums := make([][sha256.Size]byte, len(all))
	for i, c := range all {
		sums[i] = sha256.Sum256(c.want)
	}
	return untilTold(func() {
		for range time.Tick(pollInterval) {
			for i, c := range all {
				if !hashes {
					lookOnce(c)
				} else if now, err := os.ReadFile(c.name); err != nil || sha256.Sum256(now) != sums[i] {
					if err := c.replace(); err != nil {
						panic(err)
					}
				}
			}
		}
	})
}

// matching returns the files that the patterns match.
func matching(patterns []string) ([]string, error) {
	var names []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		names = append(names, found...)
	}
	if len(names) == 0 {
		return nil, errors.New("no file to look at")
	}
	return names, nil
}

// lookOnce compares a file byte by byte with as few system calls as that takes.
func lookOnce(c contents) bool {
	fd, err := unix.Open(c.name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	buf := make([]byte, len(c.want)+1)
	n, err := unix.Pread(fd, buf, 0)
	return err == nil && bytes.Equal(buf[:n], c.want)
}

// watchPeer is the least that starting in a tree takes: every directory is
// watched and read.
func watchPeer(args []string) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		return err
	}
	err = filepath.WalkDir(args[0], func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		const names = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVE | unix.IN_MODIFY | unix.IN_ATTRIB
		// Past the limit nothing more is watched.
		if _, err := unix.InotifyAddWatch(fd, path, names); err != nil && err != unix.ENOSPC {
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	return untilTold(nil)
}

// The churn: so many files a second, in bursts as timers allow.
const (
	churnRate  = 2000
	churnBurst = 10 * time.Millisecond
	churnKeeps = 200
)

// churnPeer makes files in directories and removes them again a while later.
func churnPeer(dirs []string) error {
	return untilTold(func() {
		last, made := time.Now(), 0
		for now := range time.Tick(churnBurst) {
			// What a busy machine let slip is not made up for: that would be a
			// storm.
			due := made + int(min(now.Sub(last), 2*churnBurst).Seconds()*churnRate)
			for ; made < due; made++ {
				if err := churnOne(dirs, made); err != nil {
					panic(err)
				}
			}
			last = now
		}
	})
}

func churnOne(dirs []string, n int) error {
	name := func(n int) string { return filepath.Join(dirs[n%len(dirs)], fmt.Sprintf("object-%d.o", n)) }
	if err := os.WriteFile(name(n), []byte("unrelated"), 0o600); err != nil {
		return err
	}
	if n < churnKeeps {
		return nil
	}
	return os.Remove(name(n - churnKeeps))
}

// randomBytes returns content that nothing compresses or shares.
func randomBytes(size int) []byte {
	content := make([]byte, size)
	rand.Read(content)
	return content
}

// crowdPeer holds a number of sleeping processes and starts a short one ten
// times a second.
func crowdPeer(args []string) error {
	if len(args) != 1 {
		return errors.New("crowd takes a number")
	}
	count, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	for range count {
		if err := exec.Command("sleep", "1000").Start(); err != nil {
			return err
		}
	}
	return untilTold(func() {
		for range time.Tick(100 * time.Millisecond) {
			_ = exec.Command("true").Run() // whatever it says
		}
	})
}
