package main

import (
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// tamperMain is the program `tamper` of the scenarios: what a shell cannot do,
// or cannot do exactly. Every form ends by itself. The forms stand where they
// are defined: tamper_test.go, tamper_<topic>_test.go.
//
//	tamper await <path> <content>   waits until the file holds the content
func tamperMain() {
	if err := tamper(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "tamper: "+err.Error())
		os.Exit(1)
	}
}

func tamper(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("which form?")
	}
	form, rest := args[0], args[1:]
	switch {
	case form == "await" && len(rest) == 2:
		return await(rest[0], rest[1])
	case form == "occupy" && len(rest) == 4:
		return occupy(rest[0], rest[1], rest[2], rest[3])
	case form == "socket" && len(rest) == 1:
		return leaveSocket(rest[0])
	}
	if done, err := tamperFight(form, rest); done {
		return err
	}
	if known, err := tamperRestore(form, rest); known {
		return err
	}
	if known, err := tamperHonestly(form, rest); known {
		return err
	}
	return fmt.Errorf("no such form: %q", args)
}

// patience bounds every wait; it is far above anything that works.
const patience = 30 * time.Second

// hang bounds the wait for a whole program, of which some call git hundreds of
// times: a slow and busy machine has taken two minutes over one.
const hang = 10 * patience

func await(path, content string) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		data, err := readNow(path)
		if err == nil && string(data) == content {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s does not hold what it should: %q %v", path, data, err)
		}
	}
}

// readNow reads a file without waiting for whoever holds a lease on it: an open
// that waited would look at the file that has been displaced meanwhile.
func readNow(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}
