//go:build linux

package spawn_test

import (
	"fmt"
	"io"
	"log"
	"os"

	"cage/spawn"
)

// A program begins with Main, because its own binary is what sets a command up
// and what holds the run. Open and Close then frame a run: whatever the command
// started, detached or not, is gone after Close.
func Example() {
	stage := spawn.Main()

	output, theirs, err := os.Pipe()
	if err != nil {
		log.Fatal(err)
	}
	run, err := stage.Open(spawn.Command{
		Path:   "sh",
		Args:   []string{"-c", "sleep 1000 & echo started; exit 3"},
		Stdout: theirs,
	})
	theirs.Close()
	if err != nil {
		log.Fatal(err)
	}
	exit := <-run.Exited()
	fmt.Println(exit)

	if err := run.Close(); err != nil {
		log.Fatal(err)
	}
	// Everything that could write is gone, so the output has an end.
	text, err := io.ReadAll(output)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(string(text))
	// Output:
	// exit code 3
	// started
}

// Nothing of the program reaches a command that was not asked for. Here it gets
// all but what by its name is a secret, and may write no large file.
func ExampleCommand() {
	stage := spawn.Main()
	os.Setenv("SHOP_REGION", "north")
	os.Setenv("SHOP_API_KEY", "…")
	defer os.Unsetenv("SHOP_REGION")
	defer os.Unsetenv("SHOP_API_KEY")

	mebibyte := uint64(1 << 20)
	run, err := stage.Open(spawn.Command{
		Path:   "sh",
		Args:   []string{"-c", `echo "region: $SHOP_REGION, key: ${SHOP_API_KEY-none}"`},
		Stdout: os.Stdout,
		Environment: spawn.Environment{
			Policy: spawn.Passthrough,
			Set:    []string{"LANG=C"},
		},
		Limits: spawn.Limits{FileSize: &mebibyte},
	})
	if err != nil {
		log.Fatal(err)
	}
	<-run.Exited()
	if err := run.Close(); err != nil {
		log.Fatal(err)
	}
	for _, name := range run.DroppedEnv() {
		if name == "SHOP_API_KEY" {
			fmt.Println("kept back:", name)
		}
	}
	// Output:
	// region: north, key: none
	// kept back: SHOP_API_KEY
}
