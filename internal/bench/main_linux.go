// Command bench measures what the cage costs and how fast it is, through the
// real program, and prints one table: every figure beside the least that the
// system itself takes for it, and beside a loop that looks once a second.
//
//	go run ./internal/bench
//
// The contenders take turns within every measurement, so that whatever else
// the machine does meets all of them. It works in a temporary folder that it
// makes and removes. It asserts nothing: a figure that misses its goal is a
// line in the table, not a failure.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"cage/internal/torture"
	"cage/spawn"
)

func main() {
	hidden := spawn.Main()
	torture.Main()
	if len(os.Args) > 1 && os.Args[1] == peerWord {
		os.Exit(exitCode(peer(os.Args[2:])))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(exitCode(bench(ctx, hidden)))
}

func exitCode(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "bench: "+err.Error())
	return 1
}

// settings are what a caller can ask for.
type settings struct {
	cage  string
	only  *regexp.Regexp
	scale float64
	idle  time.Duration
	dir   string
}

func parse() (settings, error) {
	var s settings
	flag.StringVar(&s.cage, "cage", "", "measure this cage instead of building one")
	flag.StringVar(&s.dir, "dir", os.TempDir(), "work in a folder in this one")
	flag.Float64Var(&s.scale, "scale", 1, "take this many times as many samples")
	flag.DurationVar(&s.idle, "idle", time.Minute, "how long to watch a cage that has nothing to do")
	only := flag.String("only", "", "take the measurements whose name matches this regular expression")
	flag.Parse()
	var err error
	s.only, err = regexp.Compile(*only)
	if err == nil && (flag.NArg() > 0 || s.scale <= 0 || s.idle <= 0) {
		err = errors.New("takes no arguments, and numbers above 0; see -help")
	}
	return s, err
}

// measurement fills one or more lines of the table.
type measurement struct {
	name string
	take func(context.Context, *stage) ([]figure, error)
}

func measurements() []measurement {
	return []measurement{
		{"restore 1 KB", restoreIdle},
		{"restore 1 KB beside 2,000 files a second", restoreBusy},
		{"restore 5 MB", restoreLarge},
		{"wrap", wrap},
		{"spawn", spawning},
		{"ending", ending},
		{"check", checking},
		{"memory", memory},
		{"journal", journals},
		{"process list", crowded},
		{"idle", idle},
		{"start in 100,000 directories", startLarge},
	}
}

func bench(ctx context.Context, hidden spawn.Stage) (err error) {
	set, err := parse()
	if err != nil {
		return err
	}
	st, err := build(ctx, set, hidden)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(st.top)) }()
	before := load()
	var figures []figure
	for _, m := range measurements() {
		if !set.only.MatchString(m.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "measuring: %s\n", m.name)
		taken, err := m.take(ctx, st)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		figures = append(figures, taken...)
	}
	printTable(os.Stdout, figures)
	printHost(os.Stdout, st, before)
	return nil
}

// stage is the benchmark's own corner of the machine.
type stage struct {
	settings
	hidden spawn.Stage
	top    string
	self   string // this program, for peers
	hello,
	git,
	bare string // programs to compare with
}

// build makes the folder and the programs.
func build(ctx context.Context, set settings, hidden spawn.Stage) (*stage, error) {
	top, err := os.MkdirTemp(set.dir, "cage-bench-")
	if err != nil {
		return nil, err
	}
	st := &stage{settings: set, hidden: hidden, top: top}
	if err := st.programs(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(top))
	}
	return st, nil
}

func (st *stage) programs(ctx context.Context) error {
	var err error
	if st.self, err = os.Executable(); err != nil {
		return err
	}
	if st.git, err = lookPath("git"); err != nil {
		return err
	}
	if st.bare, err = lookPath("true"); err != nil {
		return err
	}
	const source = "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"hello, world\") }\n"
	hello := filepath.Join(st.top, "hello.go")
	if err := os.WriteFile(hello, []byte(source), 0o600); err != nil {
		return err
	}
	st.hello = filepath.Join(st.top, "hello")
	if err := run(ctx, "", "go", "build", "-o", st.hello, hello); err != nil {
		return err
	}
	if st.cage != "" {
		st.cage, err = filepath.Abs(st.cage)
		return err
	}
	st.cage = filepath.Join(st.top, "cage")
	return run(ctx, "", "go", "build", "-o", st.cage, "cage/cmd/cage")
}
