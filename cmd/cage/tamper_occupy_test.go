package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

//	tamper occupy writer|lease|mapping <path> <ready> <until>
//	    opens the file for writing, takes a write lease on it, or maps it
//	    writable and closes it; then makes the file <ready>, and lets go when a
//	    file <until> exists
//	tamper socket <path>
//	    leaves a socket there that nobody listens to

func occupy(how, path, ready, until string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	switch how {
	case "writer":
	case "lease":
		if err := takeWriteLease(file); err != nil {
			return fmt.Errorf("take a lease on %s: %w", path, err)
		}
	case "mapping":
		shared, err := unix.Mmap(int(file.Fd()), 0, 1, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return fmt.Errorf("map %s: %w", path, err)
		}
		defer unix.Munmap(shared)
		file.Close()
	default:
		return fmt.Errorf("no such way to occupy a file: %q", how)
	}
	if err := os.WriteFile(ready, nil, 0o600); err != nil {
		return err
	}
	return awaitFile(until)
}

func awaitFile(path string) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		_, err := os.Lstat(path)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s did not appear", path)
		}
	}
}

func leaveSocket(path string) error {
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return err
	}
	listener.SetUnlinkOnClose(false)
	return listener.Close()
}
