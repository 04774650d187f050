package main

import (
	"errors"
	"fmt"
	"os"

	"cage/internal/console"
	"cage/report"
)

// colours reports whether what is written into a file is for a person's
// terminal that wants colours.
func colours(file *os.File) bool {
	return console.IsTerminal(file) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// printText puts a text on stdout.
func printText(text string) error {
	if _, err := os.Stdout.WriteString(text); err != nil {
		return fmt.Errorf("print it: %w", err)
	}
	return nil
}

// printDocument puts a document on stdout.
func printDocument(document interface{ JSON() ([]byte, error) }) error {
	return printWith(document.JSON)
}

func printWith(render func() ([]byte, error)) error {
	data, err := render()
	if err == nil {
		_, err = os.Stdout.Write(data)
	}
	if err != nil {
		return fmt.Errorf("print the report: %w", err)
	}
	return nil
}

// printRefusal shows a refusal to programs, where they asked for documents. If
// that fails, complain's line for people still says it.
func printRefusal(asked bool, err error) {
	var refusal *report.Refusal
	if asked && errors.As(err, &refusal) {
		_ = printDocument(refusal)
	}
}
