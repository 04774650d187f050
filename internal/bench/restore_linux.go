package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// How a restore is sampled: in rounds in which every contender has its turn.
const (
	rounds      = 15
	perRound    = 20
	pollPerTurn = 2 // of the loop, which takes half a second each
)

// contender guards a file in a repository of its own.
type contender struct {
	dir     string
	file    string
	process *process
	took    sample
}

// contest is a cage, the floor and a polling loop, each with the same file.
type contest struct {
	cage, floor, polling *contender
	original, changed    []byte
}

// openContest starts the three, each in a new repository with one protected
// file of that size.
func (st *stage) openContest(ctx context.Context, size int) (*contest, error) {
	// What is written over the file: a kilobyte at its beginning, like an edit.
	c := &contest{original: randomBytes(size), changed: randomBytes(min(size, kilobyte))}
	for _, enter := range []struct {
		to   **contender
		argv func(file string) []string
	}{
		{&c.cage, func(string) []string { return st.guarded() }},
		{&c.floor, func(file string) []string { return []string{st.self, peerWord, peerInotify, file} }},
		{&c.polling, func(file string) []string { return []string{st.self, peerWord, peerPoll, file} }},
	} {
		var err error
		if *enter.to, err = st.enter(ctx, c.original, enter.argv); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	return c, nil
}

// enter starts one contender in a new repository.
func (st *stage) enter(ctx context.Context, original []byte, argv func(file string) []string) (*contender, error) {
	dir, err := st.repository(ctx)
	if err != nil {
		return nil, err
	}
	x := &contender{dir: dir, file: filepath.Join(dir, ".env")}
	if err := os.WriteFile(x.file, original, 0o600); err != nil {
		return nil, err
	}
	x.process, err = st.start(dir, argv(x.file)...)
	return x, err
}

const (
	kilobyte = 1 << 10
	megabyte = 1 << 20
)

func (c *contest) close() error {
	var errs []error
	for _, x := range []*contender{c.cage, c.floor, c.polling} {
		if x == nil {
			continue
		}
		if x.process != nil {
			errs = append(errs, x.process.stop())
		}
		errs = append(errs, os.RemoveAll(x.dir))
	}
	return errors.Join(errs...)
}

// repository makes a small one, as people have them.
func (st *stage) repository(ctx context.Context) (string, error) {
	dir, err := os.MkdirTemp(st.top, "repo-")
	if err != nil {
		return "", err
	}
	files := map[string]string{
		".github/workflows/ci.yml": "on: push\n", ".gitignore": ".env\n*.o\n", "src/main.c": "int main(void) { return 0; }\n",
		"docs/index.md": "# Title\n", "README.md": "# Title\n", "package-lock.json": "{}\n",
	}
	for name, content := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			return "", err
		}
	}
	identity := []string{"-c", "user.name=bench", "-c", "user.email=bench@example.invalid", "-c", "commit.gpgSign=false"}
	return dir, errors.Join(
		run(ctx, dir, st.git, "init", "-q"),
		run(ctx, dir, st.git, "add", "-A"),
		run(ctx, dir, append(append([]string{st.git}, identity...), "commit", "-q", "-m", "start")...),
	)
}

// patience bounds the wait for a restore.
const patience = 10 * time.Second

// overwrite writes over the beginning of the file and returns the time from
// before the write until the original is there again. The look between is a
// tight loop; what it reads is the beginning, which only a restore brings back,
// and all of the file once that is there.
func (c *contest) overwrite(x *contender, pause time.Duration) (time.Duration, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	fd, err := unix.Open(x.file, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	seen := make([]byte, len(c.changed))
	began := time.Now()
	if _, err := unix.Pwrite(fd, c.changed, 0); err != nil {
		return 0, err
	}
	unix.Close(fd)
	for {
		n, err := look(x.file, seen)
		took := time.Since(began)
		if err == nil && bytes.Equal(seen[:n], c.original[:len(seen)]) {
			return took, c.whole(x)
		}
		if took > patience {
			return 0, fmt.Errorf("%s was not restored within %v: %v", x.file, patience, err)
		}
		if pause > 0 {
			time.Sleep(pause)
		}
	}
}

// look reads the beginning of a file by its name.
func look(name string, into []byte) (int, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	return unix.Pread(fd, into, 0)
}

// lookCost measures one look: a restore is seen that much late at most.
func lookCost(st *stage) time.Duration {
	name := filepath.Join(st.top, "look")
	if err := os.WriteFile(name, randomBytes(kilobyte), 0o600); err != nil {
		return 0
	}
	const looks = 10_000
	into := make([]byte, kilobyte)
	began := time.Now()
	for range looks {
		if _, err := look(name, into); err != nil {
			return 0
		}
	}
	return time.Since(began) / looks
}

func (c *contest) whole(x *contender) error {
	now, err := os.ReadFile(x.file)
	if err == nil && !bytes.Equal(now, c.original) {
		err = fmt.Errorf("%s was restored wrong", x.file)
	}
	return err
}

// turn takes samples of one contender, with pauses in which it can finish what
// it does after a restore. The loop is written to at any time of its second.
func (c *contest) turn(ctx context.Context, x *contender, samples int) error {
	rest, pause := 20*time.Millisecond, time.Duration(0)
	if x == c.polling {
		rest, pause = pollInterval, time.Millisecond
	}
	for range samples {
		if err := sleep(ctx, 30*time.Millisecond+rand.N(rest)); err != nil {
			return err
		}
		took, err := c.overwrite(x, pause)
		if err != nil {
			return err
		}
		x.took = append(x.took, ms(took))
	}
	return nil
}

// round gives every contender its turn, beside whatever beside starts in its
// directory.
func (c *contest) round(ctx context.Context, beside func(dir string) (*process, error)) error {
	for _, x := range []*contender{c.cage, c.floor, c.polling} {
		samples := perRound
		if x == c.polling {
			samples = pollPerTurn
		}
		other, err := beside(x.dir)
		if err != nil {
			return err
		}
		err = c.turn(ctx, x, samples)
		if other != nil {
			err = errors.Join(err, other.stop())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// contest takes all samples of one measurement.
func (st *stage) contest(ctx context.Context, size int, beside func(dir string) (*process, error)) (*contest, error) {
	c, err := st.openContest(ctx, size)
	if err != nil {
		return nil, err
	}
	for range max(1, int(rounds*st.scale)) {
		if err := c.round(ctx, beside); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	return c, c.close()
}

func nothing(string) (*process, error) { return nil, nil }

func (st *stage) churn(dir string) (*process, error) {
	return st.start(dir, st.self, peerWord, peerChurn, filepath.Join(dir, "src"), filepath.Join(dir, "docs"), dir)
}

func (c *contest) figure(name string, goal float64) figure {
	return figure{name: name, unit: milliseconds, goal: goal, cage: c.cage.took, floor: c.floor.took, polling: c.polling.took}
}

// figures are what is asked of restoring a small file.
func (c *contest) figures(name string) []figure {
	const p50, p99, advantage = 0.4, 5, 1000
	slow := c.figure(name+", p99", p99)
	slow.share = 0.99
	ratio := c.figure(name+", polling loop against it", 0)
	ratio.value = func() float64 { return c.polling.took.median() / c.cage.took.median() }
	ratio.atLeast, ratio.goalUnit = advantage, times
	return []figure{c.figure(name+", p50", p50), slow, ratio}
}

func restoreIdle(ctx context.Context, st *stage) ([]figure, error) {
	c, err := st.contest(ctx, kilobyte, nothing)
	if err != nil {
		return nil, err
	}
	return c.figures("write to restore, 1 KB, idle"), nil
}

func restoreBusy(ctx context.Context, st *stage) ([]figure, error) {
	c, err := st.contest(ctx, kilobyte, st.churn)
	if err != nil {
		return nil, err
	}
	return c.figures("write to restore, 1 KB, 2,000 files a second beside it"), nil
}

func restoreLarge(ctx context.Context, st *stage) ([]figure, error) {
	c, err := st.contest(ctx, 5*megabyte, nothing)
	if err != nil {
		return nil, err
	}
	const p50 = 3
	return []figure{c.figure("write to restore, 5 MB, p50", p50)}, nil
}
