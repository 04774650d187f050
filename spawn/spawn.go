// Package spawn starts a command and holds on to everything that descends from
// it until that is gone. It also keeps what is the caller's from the command:
// open files, environment, terminal, limits.
//
// A program that uses it begins its main with Main, and opens a run with
// Stage.Open:
//
//	func main() {
//		stage := spawn.Main()
//		run, err := stage.Open(spawn.Command{Path: "make", Args: []string{"test"}, Stdout: os.Stdout})
//		if err != nil {
//			log.Fatal(err)
//		}
//		defer run.Close()
//		exit := <-run.Exited()
//		…
//	}
//
// The zero Command gives nothing away: no variable of the caller's, no open file,
// no terminal, no core dumps; and its lifetime is LifetimeRun. What a command
// gets beyond that is said field by field.
//
// The package promises that the command is found as a shell would find it, that
// it dies with whoever keeps it (where the system has a parent-death signal), and
// that Gone speaks of this command's descendants alone: children that the
// program has otherwise are not awaited and not signalled. Where there may be
// any, the run gets a keeper: the same binary, started again into a hidden
// stage, which becomes the parent of every orphan of the run in the program's
// place. What has to be set between fork and exec is set by another stage, which
// becomes the command. If a step of that fails the command never runs, and the
// error names the step.
//
// A command that kills its keeper, having the same user, is killed with it. What
// it had started may live on then, in any lifetime, and Close says that it proves
// nothing. Work that a command hands to a process outside the run, such as a
// service manager, is out of reach. The package knows nothing of the files that
// the command changes. What systems other than Linux cannot hold, Gaps names.
package spawn

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"cage/internal/proc"
	"cage/internal/tempdir"
)

// The mechanisms by which a run is held.
const (
	// Subreaper: this program is the parent of every orphan of the run.
	Subreaper = "subreaper"
	// Keeper: a process of its own is.
	Keeper = "keeper"
	// ProcessList: the system has no subreaper; what was never listed while
	// its parent lived is not found.
	ProcessList = "process-list"
)

// ErrNoStage is returned where a run needs a hidden stage and main did not
// begin with Main.
var ErrNoStage = errors.New("the program does not call spawn.Main first")

// Stage is the permission to start the program's own binary into a hidden
// stage. Only Main gives one out; the zero Stage serves every run that needs no
// stage.
type Stage struct{ entered bool }

// Command says what to run.
type Command struct {
	// Path is the command as a user types it: a name that is looked up in
	// PATH, relative entries included, or a path.
	Path string
	// Args are the arguments after the name.
	Args []string
	// Env is the whole environment, and Environment counts for nothing then. Where
	// it is nil, it is what Environment passes of the program's own. Either way
	// LifetimeRun adds settings of git (GIT_CONFIG_COUNT and what belongs to it), by
	// which that tidies up in the run, and PrivateTmp sets TMPDIR.
	Env         []string
	Environment Environment
	// Dir is the directory to start in; the current one where it is empty.
	Dir string
	// The standard streams; nil is the null device. With a NewPTY they are that.
	Stdin, Stdout, Stderr *os.File
	// Terminal says which terminal it has, and Screen how a NewPTY starts.
	Terminal Terminal
	Screen   Screen
	// Descriptors are numbers, from 3 up, of open files that the command gets
	// under the same numbers, close-on-exec or not. It gets no others.
	Descriptors []int
	// Limits bound it and each of its descendants.
	Limits Limits
	// Lifetime says what may outlive what.
	Lifetime Lifetime
	// PrivateTmp makes a directory for temporary files that is the run's own, in
	// the program's temporary directory, and sets TMPDIR to it. Close removes it;
	// where the program dies before and something of the run lives, the run's
	// keeper does. Where nothing lives any more the directory stays then.
	// It does not go with LifetimeLeave.
	PrivateTmp bool
	// Confine, where it is set, is called once while the command is started.
	Confine Confine
}

// Tree is a command with everything that descends from it.
type Tree interface {
	// Command identifies the command itself. It is the zero ID where the run's keeper
	// was killed before it could tell: the command may have run then.
	Command() proc.ID
	// Exited delivers, once, how the command ended. What it started may live on.
	Exited() <-chan proc.Exit
	// Stopped delivers the signal that stopped the command, the last one where
	// several have. The command may run again by then.
	Stopped() <-chan syscall.Signal
	// Gone is closed when nothing is left. The command's exit was delivered
	// before.
	Gone() <-chan struct{}
	// Processes lists what lives, parents before children; a process younger
	// than the listing may be missing.
	Processes() ([]proc.Process, error)
	// Leave lists what lives and ends nothing; nothing is told of the run from
	// then on. Gone is closed where nothing was left.
	Leave() ([]proc.Process, error)
	// Terminate sends SIGTERM to every process, wakes those that are stopped,
	// and returns how many took it.
	Terminate() int
	// Kill sends SIGKILL until nothing is left, or until nothing but what
	// refuses to die was found for as long as patience.
	Kill(patience time.Duration) proc.Killed
}

// Run is a command that was started.
type Run struct {
	Tree
	mechanism  string
	lifetime   Lifetime
	droppedEnv []string
	// attendant waits for the keeper of a run that Open made.
	attendant *proc.Reaper
	// lost is closed when the keeper has ended; nil where the run has none.
	lost    <-chan struct{}
	closing sync.Once
	closed  error
	pty     *PTY
	temp    *tempdir.Dir
}

// Mechanism says how the run is held: Subreaper, Keeper or ProcessList.
func (r *Run) Mechanism() string { return r.mechanism }

// PTY is the controller's side of a NewPTY, which is the caller's to close; nil
// where the command has another terminal.
func (r *Run) PTY() *PTY { return r.pty }

// PrivateTmp is the path of the directory that PrivateTmp asked for; empty where
// it did not.
func (r *Run) PrivateTmp() string {
	if r.temp == nil {
		return ""
	}
	return r.temp.Path()
}

// DroppedEnv returns the names of the program's variables that Environment did
// not pass, sorted.
func (r *Run) DroppedEnv() []string { return r.droppedEnv }

// Start starts a command for a program whose every child one Reaper starts; Open
// is for others. A command that cannot be run is a *StartError.
//
// Where the Reaper is shared the run is given a keeper, and so is one with a
// NewPTY: a shell's job control takes a parent in the session of that. A keeper
// that is killed takes the command with it: Exited then delivers SIGKILL. Where the
// Reaper is shared Kill proves nothing any more then; else what the keeper held has
// come to the program, which ends it. Without a keeper Start marks every descriptor
// of the program from 3 up close-on-exec.
func (s Stage) Start(r *proc.Reaper, c Command) (*Run, error) {
	spec, dropped, err := c.spec()
	if err != nil {
		return nil, err
	}
	temp, err := c.makeTemp(&spec)
	if err != nil {
		return nil, err
	}
	run, err := s.start(r, c, spec, temp)
	if err != nil {
		return nil, errors.Join(err, removeTemp(temp))
	}
	run.lifetime, run.droppedEnv, run.temp = c.Lifetime, dropped, temp
	return run, nil
}

func (s Stage) start(r *proc.Reaper, c Command, spec proc.Spec, temp *tempdir.Dir) (*Run, error) {
	if c.Terminal != NewPTY {
		return s.startOn(r, c, spec, temp)
	}
	pty, err := openPTY(c.Screen)
	if err != nil {
		return nil, err
	}
	spec.Files = []*os.File{pty.line, pty.line, pty.line}
	run, err := s.startOn(r, c, spec, temp)
	if err != nil {
		pty.letGo()
		pty.Close()
		return nil, err
	}
	run.pty = pty
	go pty.hold(run.Gone())
	return run, nil
}

// startOn starts a command on the standard streams that its spec has.
func (s Stage) startOn(r *proc.Reaper, c Command, spec proc.Spec, temp *tempdir.Dir) (*Run, error) {
	if r.Shared() || c.Terminal.needsKeeper() {
		return s.startKept(r, c, spec, temp)
	}
	if err := hideDescriptors(); err != nil {
		return nil, err
	}
	tree, err := s.startOwn(r, c, spec)
	if err != nil {
		return nil, c.startError(spec, err)
	}
	return &Run{Tree: tree, mechanism: ownMechanism}, nil
}

func (c Command) spec() (spec proc.Spec, dropped []string, err error) {
	if err := errors.Join(c.checkDescriptors(), c.checkModes()); err != nil {
		return proc.Spec{}, nil, err
	}
	path, err := c.find()
	if err != nil {
		return proc.Spec{}, nil, err
	}
	env := c.Env
	if env == nil {
		env, dropped = c.Environment.Apply(os.Environ())
	}
	if c.Lifetime == LifetimeRun {
		env = WithGitSettings(env, gitInForeground()...)
	}
	return proc.Spec{
		Path:  path,
		Args:  append([]string{c.Path}, c.Args...),
		Env:   env,
		Dir:   c.Dir,
		Files: []*os.File{c.Stdin, c.Stdout, c.Stderr},
		More:  named(c.Descriptors),

		Place: c.Terminal.place(), Outlives: c.Lifetime == LifetimeLeave,
	}, dropped, nil
}
