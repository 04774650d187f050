package pushguard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// Stage is the name under which the hook starts the cage's program to ask the
// session, as a link in the folder.
const Stage = "cage-push-judge"

// Main must be called early in main: in a process that a hook started to ask its
// session it does that and does not return.
func Main() {
	if filepath.Base(os.Args[0]) != Stage || len(os.Args) != 2 {
		return
	}
	said, err := ask(os.Args[1], os.Stdin)
	if err != nil {
		said = answer{Refused: true, Text: fmt.Sprintf("cage: push refused: the session does not answer: %v\nfix: push when the session has ended\n", err)}
	}
	io.WriteString(os.Stderr, said.Text) // nobody to tell if it fails
	if said.Refused {
		os.Exit(1)
	}
	os.Exit(0)
}

// ask asks the session whose folder it is about a push.
func ask(folder string, pushed io.Reader) (answer, error) {
	var said answer
	all, err := io.ReadAll(pushed)
	if err != nil {
		return said, fmt.Errorf("read what git says: %w", err)
	}
	conn, err := dial(folder)
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT) {
		return said, errors.New("it is gone")
	}
	if err != nil {
		return said, err
	}
	defer conn.Close()
	if err := json.NewEncoder(conn).Encode(question{Version: version, Pushed: all}); err != nil {
		return said, err
	}
	if err := json.NewDecoder(conn).Decode(&said); err != nil {
		return said, err
	}
	if said.Version != version {
		return said, errOtherProgram
	}
	return said, nil
}

// errOtherProgram is what a session and a program of another version say of each
// other.
var errOtherProgram = errors.New("the cage's program is no longer the one that the session runs")
