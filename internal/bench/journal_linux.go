package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"cage/journal"
	"cage/rules"
	"cage/snapshot"
)

// caps are the limits of a session that asks for no others.
const (
	capFiles = 5000
	capBytes = 64 * megabyte
)

// journals measures what the journal adds to the start and the end of a session.
func journals(ctx context.Context, st *stage) (figures []figure, err error) {
	for _, size := range []struct {
		name        string
		files, each int
		samples     int
		goal        float64
	}{
		{"journal, small repository, written and removed", 3, kilobyte, 100, 10},
		{"journal, 5,000 files and 64 MiB, written and removed", capFiles, capBytes / capFiles, 10, 400},
	} {
		f := figure{name: size.name, unit: milliseconds, goal: size.goal}
		root, err := st.secrets(ctx, size.files, size.each)
		if err != nil {
			return nil, err
		}
		record, err := baseline(ctx, root)
		if err != nil {
			return nil, err
		}
		content := randomBytes(size.files * size.each)
		for range max(1, int(float64(size.samples)*st.scale)) {
			for _, x := range []struct {
				to   *sample
				work func(string) error
			}{
				{&f.cage, func(folder string) error { return journalOnce(folder, record) }},
				{&f.floor, func(folder string) error { return syncedOnce(folder, content) }},
			} {
				began := time.Now()
				if err := x.work(filepath.Join(root, "journal")); err != nil {
					return nil, err
				}
				*x.to = append(*x.to, ms(time.Since(began)))
			}
		}
		figures = append(figures, f)
		if err := os.RemoveAll(root); err != nil {
			return nil, err
		}
	}
	return figures, nil
}

// secrets makes a folder with protected files.
func (st *stage) secrets(ctx context.Context, files, size int) (string, error) {
	root, err := os.MkdirTemp(st.top, "secrets-")
	if err != nil {
		return "", err
	}
	for i := range files {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if err := os.WriteFile(filepath.Join(root, fmt.Sprintf(".env.%d", i)), randomBytes(size), 0o600); err != nil {
			return "", err
		}
	}
	return root, nil
}

// baseline takes the baseline of a folder as a session does.
func baseline(ctx context.Context, root string) (journal.Record, error) {
	layout := rules.Layout{Root: root}
	plan, err := rules.New(rules.Inputs{Layout: layout})
	if err != nil {
		return journal.Record{}, err
	}
	trees, err := snapshot.OpenTrees(layout)
	if err != nil {
		return journal.Record{}, err
	}
	defer trees.Close()
	found := snapshot.Look(trees, plan, nil, nil).Found
	if plan, err = plan.Settle(found); err != nil {
		return journal.Record{}, err
	}
	r := journal.Record{Session: "0123456789abcdef", Started: time.Now(), Store: snapshot.NewStore()}
	r.Manifest, err = snapshot.Take(ctx, trees, plan, found, r.Store,
		snapshot.Limits{FileBytes: megabyte, Files: capFiles, TotalBytes: capBytes})
	return r, err
}

// journalOnce writes a journal that survives a power cut, and removes it.
func journalOnce(folder string, r journal.Record) error {
	j, _, err := journal.Acquire(folder)
	if err != nil {
		return err
	}
	return errors.Join(j.Write(r), j.Remove())
}

// syncedOnce writes the same content into one file that survives a power cut,
// and removes it.
func syncedOnce(name string, content []byte) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close(), os.Remove(name))
}

// crowded measures a cage that lists two hundred processes for its journal,
// anew at every refresh because others come and go, beside one whose command
// is alone.
func crowded(ctx context.Context, st *stage) (figures []figure, err error) {
	const processes = 200
	var running []*process
	for _, command := range [][]string{{peerCrowd, fmt.Sprint(processes)}, {peerHold}} {
		var root string
		if root, err = st.repository(ctx); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
		var p *process
		if p, err = st.start(root, st.guarding(command...)...); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, p.stop()) }()
		running = append(running, p)
	}
	cpu, err := st.watchIdle(ctx, running)
	if err != nil {
		return nil, err
	}
	return []figure{{name: "one core, 200 processes and ten new ones a second", unit: percent, goal: 1, cage: cpu[0], floor: cpu[1]}}, nil
}
