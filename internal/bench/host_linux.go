package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// load returns the machine's load averages (proc_loadavg(5)).
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}

// printHost says on what the figures were measured.
func printHost(w io.Writer, st *stage, before string) {
	var name unix.Utsname
	_ = unix.Uname(&name) // empty where it fails
	fmt.Fprintf(w, "\n- %s, Linux %s, %s/%s\n", time.Now().UTC().Format(time.DateOnly), unix.ByteSliceToString(name.Release[:]), runtime.GOOS, runtime.GOARCH)
	fmt.Fprintf(w, "- %d × %s, %.0f MB of memory\n", runtime.NumCPU(), field("/proc/cpuinfo", "model name"), memoryTotal()/1e6)
	fmt.Fprintf(w, "- load before %s, after %s\n", before, load())
	fmt.Fprintf(w, "- file system %s, fs.inotify.max_user_watches %s\n", fileSystem(st.top), oneLine("/proc/sys/fs/inotify/max_user_watches"))
	version, _ := exec.Command(st.git, "version").Output()
	fmt.Fprintf(w, "- %s, %s, method's own cost: %s a look\n", runtime.Version(), bytes.TrimSpace(version), lookCost(st))
}

func oneLine(name string) string {
	text, err := os.ReadFile(name)
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}

// field returns the first value of that name in a file of "name: value" lines.
func field(file, name string) string {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}

// memoryTotal returns the machine's memory in bytes.
func memoryTotal() float64 {
	var info unix.Sysinfo_t
	_ = unix.Sysinfo(&info) // zero where it fails
	return float64(info.Totalram) * float64(info.Unit)
}

func fileSystem(dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "unknown"
	}
	switch st.Type {
	case unix.EXT4_SUPER_MAGIC:
		return "ext4"
	case unix.TMPFS_MAGIC:
		return "tmpfs"
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs"
	case unix.XFS_SUPER_MAGIC:
		return "xfs"
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlay"
	}
	return fmt.Sprintf("%#x", st.Type)
}
