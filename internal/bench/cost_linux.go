package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// wrap measures what a cage adds to a command that does nothing.
func wrap(ctx context.Context, st *stage) ([]figure, error) {
	dir, err := st.repository(ctx)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, ".env"), randomBytes(kilobyte), 0o600); err != nil {
		return nil, err
	}
	runs := []struct {
		argv []string
		took sample
	}{
		{argv: []string{st.bare}},
		{argv: []string{st.hello}},
		{argv: []string{st.git, "rev-parse", "--show-toplevel"}},
		{argv: []string{st.cage, "version"}},
		{argv: []string{st.cage, "--", st.bare}},
		{argv: []string{st.cage, "--lifetime", "run", "--rlimit", "cpu=1000,nofile=1000,fsize=1000000000", "--", st.bare}},
	}
	env := st.environment()
	for range max(1, int(200*st.scale)) {
		for i := range runs {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			took, err := once(dir, env, runs[i].argv...)
			if err != nil {
				return nil, err
			}
			runs[i].took = append(runs[i].took, ms(took))
		}
	}
	const goal = 20 // 10, and 10 for the journal
	bare, hello, git, version, wrapped, setUp := runs[0].took, runs[1].took, runs[2].took, runs[3].took, runs[4].took, runs[5].took
	return []figure{
		{name: "`cage -- true` over bare `true`", unit: milliseconds, cage: wrapped, floor: bare, goal: goal,
			value: func() float64 { return wrapped.median() - bare.median() }},
		{name: "the same with everything set up, over `cage -- true`", unit: milliseconds, cage: setUp, floor: wrapped,
			value: func() float64 { return setUp.median() - wrapped.median() }},
		{name: "`cage version` over a Go program that prints a line", unit: milliseconds, cage: version, floor: hello,
			value: func() float64 { return version.median() - hello.median() }},
		{name: "beside it: one `git rev-parse`", unit: milliseconds, cage: git, floor: bare},
	}, nil
}

// memory measures a cage in a small repository, before and after restores.
func memory(ctx context.Context, st *stage) (figures []figure, err error) {
	c, err := st.openContest(ctx, kilobyte)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	holder, err := st.start(c.cage.dir, st.self, peerWord, peerHold)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, holder.stop()) }()
	const goal = 30e6
	take := func(name string) error {
		f := figure{name: name, unit: megabytes, goal: goal}
		for _, x := range []struct {
			to  *sample
			pid int
		}{
			{&f.cage, c.cage.process.cmd.Process.Pid},
			{&f.floor, holder.cmd.Process.Pid},
			{&f.polling, c.polling.process.cmd.Process.Pid},
		} {
			_, highest, err := resident(x.pid)
			if err != nil {
				return err
			}
			*x.to = sample{highest}
		}
		figures = append(figures, f)
		return nil
	}
	if err := take("resident memory at its highest, small repository"); err != nil {
		return nil, err
	}
	if err := c.turn(ctx, c.cage, 200); err != nil {
		return nil, err
	}
	err = take("the same after 200 restores")
	return figures, err
}

// forest makes directories in a repository, a hundred in each of the first
// level.
func (st *stage) forest(ctx context.Context, dirs int) (string, error) {
	root, err := st.repository(ctx)
	if err != nil {
		return "", err
	}
	for i := range dirs {
		if err := os.MkdirAll(filepath.Join(root, "tree", fmt.Sprint(i/100), fmt.Sprint(i%100)), 0o755); err != nil {
			return "", err
		}
	}
	return root, nil
}

// idle measures what guarding costs while nothing happens: a thousand protected
// files in a tree of ten thousand directories.
func idle(ctx context.Context, st *stage) (figures []figure, err error) {
	const files, dirs = 1000, 10_000
	root, err := st.forest(ctx, dirs)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	for i := range files {
		name := filepath.Join(root, "tree", fmt.Sprint(i/100), fmt.Sprint(i%100), ".env")
		if err := os.WriteFile(name, randomBytes(kilobyte), 0o600); err != nil {
			return nil, err
		}
	}
	pattern := filepath.Join(root, "tree", "*", "*", ".env")
	var running [3]*process
	for i, argv := range [][]string{
		st.guarded(), {st.self, peerWord, peerRead, pattern}, {st.self, peerWord, peerPoll, pattern},
	} {
		if running[i], err = st.start(root, argv...); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, running[i].stop()) }()
	}
	cpu, err := st.watchIdle(ctx, running[:])
	if err != nil {
		return nil, err
	}
	_, highest, err := resident(running[0].cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	return []figure{
		{name: "one core, 1,000 files in 10,000 directories, idle", unit: percent, goal: 1, cage: cpu[0], floor: cpu[1], polling: cpu[2]},
		{name: "resident memory there at its highest, 1 MB of content kept", unit: megabytes, goal: 31e6, cage: sample{highest}},
	}, nil
}

// watchIdle returns the share of one core, in percent, that processes use while
// nothing happens.
func (st *stage) watchIdle(ctx context.Context, running []*process) ([]sample, error) {
	// What starting left to do is none of it.
	if err := sleep(ctx, 5*time.Second); err != nil {
		return nil, err
	}
	spent := make([]time.Duration, len(running))
	took := func(sign time.Duration) error {
		for i, p := range running {
			now, err := processorTime(p.cmd.Process.Pid)
			if err != nil {
				return err
			}
			spent[i] += sign * now
		}
		return nil
	}
	began := time.Now()
	if err := errors.Join(took(-1), sleep(ctx, st.idle), took(1)); err != nil {
		return nil, err
	}
	span := time.Since(began)
	shares := make([]sample, len(running))
	for i := range spent {
		shares[i] = sample{100 * float64(spent[i]) / float64(span)}
	}
	return shares, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// startLarge measures the time until a command runs, and the memory, in a tree
// of a hundred thousand directories.
func startLarge(ctx context.Context, st *stage) (figures []figure, err error) {
	root, err := st.forest(ctx, 100_000)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	start := figure{name: "start in 100,000 directories", unit: milliseconds, goal: 2000}
	space := figure{name: "resident memory there at its highest", unit: megabytes, goal: 100e6}
	for range max(1, int(5*st.scale)) {
		for _, x := range []struct {
			took, space *sample
			argv        []string
		}{
			{&start.cage, &space.cage, st.guarded()},
			{&start.floor, &space.floor, []string{st.self, peerWord, peerWatch, root}},
		} {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			p, err := st.start(root, x.argv...)
			if err != nil {
				return nil, err
			}
			_, highest, err := resident(p.cmd.Process.Pid)
			if err := errors.Join(err, p.stop()); err != nil {
				return nil, err
			}
			*x.took, *x.space = append(*x.took, ms(p.started)), append(*x.space, highest)
		}
	}
	return []figure{start, space}, nil
}
