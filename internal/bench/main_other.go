//go:build !linux

package main

import (
	"fmt"
	"os"
	"runtime"
)

func main() {
	fmt.Fprintf(os.Stderr, "bench: measures Linux only, this is %s\n", runtime.GOOS)
	os.Exit(1)
}
