package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cage/internal/proc"
	"cage/internal/torture"
	"cage/spawn"
)

// plain is a command for which nothing has to be set up.
func (st *stage) plain() spawn.Command {
	return spawn.Command{Path: st.bare, Env: st.environment(), Dir: st.top, Lifetime: spawn.LifetimeTree}
}

// everything is one for which all is set up that can be.
func (st *stage) everything() spawn.Command {
	c := st.plain()
	c.Lifetime = spawn.LifetimeRun
	bound := uint64(1000)
	bytes := uint64(1 << 30)
	core := uint64(0)
	c.Limits = spawn.Limits{CPU: &bound, OpenFiles: &bound, FileSize: &bytes, Core: &core}
	return c
}

// spawning measures what package spawn adds to a command that does nothing.
func spawning(ctx context.Context, st *stage) ([]figure, error) {
	var bare, plain, everything sample
	for range max(1, int(200*st.scale)) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		took, err := once(st.top, st.environment(), st.bare)
		if err != nil {
			return nil, err
		}
		bare = append(bare, ms(took))
		for _, x := range []struct {
			to      *sample
			command spawn.Command
		}{{&plain, st.plain()}, {&everything, st.everything()}} {
			took, err := st.spawnOnce(x.command)
			if err != nil {
				return nil, err
			}
			*x.to = append(*x.to, ms(took))
		}
	}
	over := func(s sample) func() float64 { return func() float64 { return s.median() - bare.median() } }
	return []figure{
		{name: "`true` through package spawn, nothing set up, over bare `true`", unit: milliseconds, cage: plain, floor: bare, goal: 1, value: over(plain)},
		{name: "the same, everything set up", unit: milliseconds, cage: everything, floor: bare, goal: 3, value: over(everything)},
	}, nil
}

// spawnOnce runs a command to its end and returns the time until its exit was
// delivered.
func (st *stage) spawnOnce(c spawn.Command) (took time.Duration, err error) {
	// It waits for every child, so there is one only while nobody else does.
	r, err := proc.NewReaper()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	began := time.Now()
	run, err := st.hidden.Start(r, c)
	if err != nil {
		return 0, err
	}
	exit := <-run.Exited()
	took = time.Since(began)
	<-run.Gone()
	if exit.Status() != 0 {
		return 0, fmt.Errorf("%s ended with %v", c.Path, exit)
	}
	return took, nil
}

// ending measures how long the end of a run takes that does all it can against
// it, beside a walk from parents to children.
func ending(ctx context.Context, st *stage) ([]figure, error) {
	var figures []figure
	for _, part := range torture.Parts() {
		var ours, walk sample
		runs, survived := max(1, int(25*st.scale)), 0
		for range runs {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			took, left, err := st.end(part, func(run *spawn.Run) { run.Kill(patience) })
			if err == nil && left {
				err = errors.New("something survived the end of a run")
			}
			if err != nil {
				return nil, err
			}
			ours = append(ours, ms(took))
			took, left, err = st.end(part, func(run *spawn.Run) { walkParents(run.Command().PID) })
			if err != nil {
				return nil, err
			}
			walk = append(walk, ms(took))
			if left {
				survived++
			}
		}
		figures = append(figures, figure{
			name: fmt.Sprintf("end of %s; a walk by parents left something of it in %d of %d", part.Name, survived, runs),
			unit: milliseconds, cage: ours, floor: walk,
		})
	}
	return figures, nil
}

// end has a command begin a part of the torture, ends it when all of that is up,
// and returns how long that took and whether something survived it.
func (st *stage) end(part torture.Part, end func(*spawn.Run)) (took time.Duration, left bool, err error) {
	r, err := proc.NewReaper()
	if err != nil {
		return 0, false, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	out, theirs, err := os.Pipe()
	if err != nil {
		return 0, false, err
	}
	defer out.Close()
	run, err := st.hidden.Start(r, spawn.Command{
		Path: "sh", Args: append([]string{"-c", `"$@"; exec sleep 1000`, "sh", st.self}, part.Args()...),
		Env: st.environment(), Dir: st.top, Stdout: theirs, Lifetime: spawn.LifetimeTree,
	})
	theirs.Close()
	if err != nil {
		return 0, false, err
	}
	defer run.Kill(patience)
	lines := bufio.NewReader(out)
	for range part.Count {
		if _, err := lines.ReadString('\n'); err != nil {
			return 0, false, err
		}
	}
	began := time.Now()
	end(run)
	took = time.Since(began)
	return took, held(out), nil
}

// held reports whether anybody can still write into a pipe.
func held(out *os.File) bool {
	// One that nobody holds gives its end at once, whatever the deadline.
	if err := out.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		return true
	}
	var rest [512]byte
	for {
		if _, err := out.Read(rest[:]); err != nil {
			return errors.Is(err, os.ErrDeadlineExceeded)
		}
	}
}

// walkParents kills a process and what descends from it, as far as a list of
// processes and their parents tells, until it tells of nothing more.
func walkParents(root int) {
	for {
		children := make(map[int][]int)
		stats, _ := filepath.Glob("/proc/[0-9]*/stat")
		for _, name := range stats {
			stat, err := os.ReadFile(name)
			if err != nil {
				continue
			}
			fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			parent, _ := strconv.Atoi(fields[1])
			if fields[0] != "Z" {
				children[parent] = append(children[parent], pid)
			}
		}
		family := []int{root}
		for i := 0; i < len(family); i++ {
			family = append(family, children[family[i]]...)
		}
		hit := 0
		for _, pid := range family {
			if unix.Kill(pid, syscall.SIGKILL) == nil {
				hit++
			}
		}
		if hit == 0 {
			return
		}
	}
}
