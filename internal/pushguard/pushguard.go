// Package pushguard judges what is pushed from inside a session. It lays a
// folder of hooks in the way of git, in the session's own repository alone: its
// pre-push hook asks the session about the commits that are about to go out,
// and every hook of it runs the repository's own one in its place, as if there
// were no such folder.
//
// It promises that a push is judged by the rules of the session's start, which
// the session holds in its own memory; that what cannot be judged does not go
// out; and that other repositories see nothing of it: the setting that leads
// git to the folder holds under the condition that the repository is this one.
//
// It binds nobody who goes past git's hooks: --no-verify, core.hooksPath on the
// command line, a cleared environment, another client, another clone. What git
// noted of such a push can be told afterwards, see Judge.Published.
package pushguard

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"cage/internal/mailbox"
	"cage/internal/tempdir"
	"cage/spawn"
)

// Options say what is guarded and with what.
type Options struct {
	// Temp is the directory that gets the folder, and Session its session.
	Temp, Session string
	Judge         Judge
	// Env is the environment of the command.
	Env []string
	// Program is the path of the cage's own binary, which the hook asks through.
	Program string
}

// Refusal is one push that was refused.
type Refusal struct {
	// Findings are the changes that it would have published.
	Findings []Finding
	// Reason says why it could not be judged; empty where it was.
	Reason string
}

// Guard is a folder of hooks that is in force, and who answers them.
type Guard struct {
	judge    Judge
	folder   string
	held     *tempdir.Folder
	program  string
	listener *net.UnixListener

	stop      context.CancelFunc
	answering sync.WaitGroup

	refusals *mailbox.Box[Refusal]
}

// Open makes the folder and begins to answer. Where it fails nothing is left.
func Open(o Options) (*Guard, error) {
	folder := Folder(o.Temp, o.Session)
	held, err := hold(folder)
	if err != nil {
		return nil, err
	}
	var listener *net.UnixListener
	if err = lay(folder, o); err == nil {
		listener, err = listen(folder)
	}
	if err != nil {
		unlay(held) // what it cannot remove, recovery or doctor finds
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	g := &Guard{judge: o.Judge, folder: folder, held: held, program: o.Program, listener: listener, stop: stop, refusals: mailbox.New[Refusal]()}
	g.answering.Go(func() { g.answer(ctx) })
	return g, nil
}

// Settings lead git to the folder in the session's repository: in its main work
// tree, and in the linked ones.
func (g *Guard) Settings() []spawn.GitSetting {
	common := pattern(g.judge.Repo.CommonDir)
	include := filepath.Join(g.folder, configName)
	return []spawn.GitSetting{
		{Key: "includeIf.gitdir:" + common + ".path", Value: include},
		{Key: "includeIf.gitdir:" + common + "/worktrees/*.path", Value: include},
	}
}

// pattern spells a directory so that git's matching takes it for itself. A
// newline cannot stand in the name of a setting; any character stands for it.
func pattern(dir string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "\n", "?").Replace(dir)
}

// Ready delivers when there is something to Take.
func (g *Guard) Ready() <-chan struct{} { return g.refusals.Ready() }

// Take returns the pushes that were refused since it was last called.
func (g *Guard) Take() []Refusal { return g.refusals.Take() }

// Whole reports whether the folder still holds what makes git ask.
func (g *Guard) Whole() bool {
	program, err := os.Readlink(filepath.Join(g.folder, Stage))
	return err == nil && program == g.program &&
		holds(filepath.Join(g.folder, configName), config(g.folder)) && holds(filepath.Join(g.folder, "pre-push"), []byte(script))
}

// holds reports whether a file has that content.
func holds(path string, content []byte) bool {
	// Whatever somebody put in its place is not waited for.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() != int64(len(content)) {
		return false
	}
	data := make([]byte, len(content))
	_, err = io.ReadFull(f, data)
	return err == nil && bytes.Equal(data, content)
}

// Close ends the answering and removes the folder. What somebody put there, or in
// its place, stays, and the error says so.
func (g *Guard) Close() error {
	g.stop()
	g.listener.Close() // its end is what is wanted, and its socket goes with the folder
	g.answering.Wait()
	held := g.held
	if g.held = nil; held == nil {
		return nil // it was closed before
	}
	return unlay(held)
}
