package main

import (
	"fmt"
	"os"
	"time"
)

// tamperMain is the program `tamper` of the scenarios: what a shell cannot do,
// or cannot do exactly. Every form ends by itself.
//
//	tamper await <path> <content>   waits until the file holds the content
func tamperMain() {
	if err := tamper(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "tamper: "+err.Error())
		os.Exit(1)
	}
}

func tamper(args []string) error {
	if len(args) == 3 && args[0] == "await" {
		return await(args[1], args[2])
	}
	return fmt.Errorf("no such form: %q", args)
}

// patience bounds every wait; it is far above anything that works.
const patience = 30 * time.Second

func await(path, content string) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		data, err := os.ReadFile(path)
		if err == nil && string(data) == content {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s does not hold what it should: %q %v", path, data, err)
		}
	}
}
