package gitrepo

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cage/internal/program"
)

// TestNothingConfiguredRuns plants every program that a repository can make
// git run, each of which leaves a marker, and asks every question.
func TestNothingConfiguredRuns(t *testing.T) {
	alone(t)
	base := physicalTemp(t)
	markers := mkdir(t, base+"/markers")
	r := initRepo(t, base+"/r")
	write(t, r+"/a", "1\n")
	write(t, r+"/.cage.yaml", "protect: []\n")
	write(t, r+"/.gitattributes", "* diff=planted filter=planted merge=planted text=auto eol=crlf ident\n")
	commit(t, r)
	git(t, r, "update-index", "--untracked-cache")
	start := git(t, r, "rev-parse", "HEAD")
	treeID := git(t, r, "rev-parse", "HEAD^{tree}")

	plant := func(name string) string {
		path := base + "/planted/" + name
		write(t, path, "#!/bin/sh\n: > '"+markers+"/"+name+"'\ncat 2>/dev/null\nexit 0\n")
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for key, value := range map[string]string{
		"core.fsmonitor": plant("fsmonitor"), "core.hooksPath": base + "/planted/hooks", "core.pager": plant("pager"),
		"core.sshCommand": plant("ssh"), "core.editor": plant("editor"), "core.askPass": plant("askpass"),
		"core.gitProxy": plant("proxy"), "core.alternateRefsCommand": plant("alternates"), "credential.helper": plant("credential"),
		"diff.external": plant("external"), "diff.planted.textconv": plant("textconv"), "diff.planted.command": plant("driver"),
		"filter.planted.clean": plant("clean"), "filter.planted.smudge": plant("smudge"), "filter.planted.process": plant("process"),
		"filter.planted.required": "true", "merge.planted.driver": plant("merge"), "gpg.program": plant("gpg"), "log.showSignature": "true",
		"pager.config": plant("pager-config"), "pager.ls-files": plant("pager-files"), "pager.rev-parse": plant("pager-parse"),
		"sequence.editor": plant("sequence"), "gc.auto": "1", "uploadpack.packObjectsHook": plant("pack"),
		"extensions.partialClone": "planted", "remote.planted.promisor": "true", "remote.planted.url": "ext::" + plant("transport") + " x",
		"remote.planted.uploadpack": plant("uploadpack"), "protocol.ext.allow": "always", "protocol.allow": "always",
		"core.repositoryFormatVersion": "1", "index.skipHash": "false",
	} {
		git(t, r, "-c", "core.fsmonitor=false", "config", key, value)
	}
	for _, name := range []string{"ls-files", "rev-parse", "config", "ls-tree", "cat-file", "rev-list", "diff-tree", "for-each-ref",
		"diff-index", "diff-files", "merge-base", "hash-object", "check-attr"} {
		git(t, r, "config", "alias."+name, "!"+plant("alias-"+name))
	}
	for _, hook := range []string{"post-index-change", "reference-transaction", "pre-commit", "post-checkout", "fsmonitor-watchman", "pre-auto-gc"} {
		plant("hooks/" + hook)
		mkdir(t, markers+"/hooks")
	}
	bin := base + "/planted"
	for _, name := range []string{"git-remote-ext", "less", "ssh", "git-ls-files", "gpg"} {
		plant(name)
	}
	t.Setenv("PATH", os.Getenv("PATH")+":"+bin)
	for _, variable := range []string{"GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_EDITOR", "GIT_ASKPASS", "GIT_SSH_COMMAND", "PAGER", "EDITOR", "SSH_ASKPASS"} {
		t.Setenv(variable, plant("env-"+variable))
	}
	t.Setenv("GIT_TRACE", markers+"/trace")

	// The planted programs do run where git is asked carelessly.
	careless, err := program.Exec(context.Background(), program.Call{Path: realGit(t), Dir: r, Env: os.Environ(), Args: []string{"status"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(markers + "/fsmonitor"); err != nil {
		t.Fatalf("no marker after a careless call (%+v)", careless)
	}
	for _, entry := range tree(t, markers) {
		if err := os.Remove(entry); err != nil {
			t.Fatal(err)
		}
	}
	before := contents(t, r)

	ctx := context.Background()
	repo := discover(t, r)
	if _, err := repo.Config(ctx); err != nil {
		t.Error(err)
	}
	if _, err := repo.ParseConfig(ctx, []byte(before[r+"/.git/config"])); err != nil {
		t.Error(err)
	}
	if _, ok, err := repo.CommittedBlob(ctx, ".cage.yaml"); err != nil || !ok {
		t.Error(ok, err)
	}
	refs, err := repo.StartRefs(ctx)
	if err != nil || !slices.Equal(refs, Refs{start}) {
		t.Error(refs, err)
	}
	// One state is an object that git has, one would have to be fetched.
	states := []State{file(repo, "a", "1\n"), file(repo, "a", "nowhere"), {Path: "a"}, {Path: "b"}}
	if got, err := repo.Held(ctx, states); err != nil || !slices.Equal(got, []bool{true, false, false, true}) {
		t.Error(got, err)
	}
	if got, err := repo.Reached(ctx, refs, states); err != nil || !slices.Equal(got, []bool{true, false, false, true}) {
		t.Error(got, err)
	}
	if got, err := repo.Reached(ctx, append(refs, strings.Repeat("1", 40)), states); err != nil || !got[0] {
		t.Error(got, err)
	}
	for name, ask := range map[string]func() error{
		"StagedChanges": func() error { _, err := repo.StagedChanges(ctx); return err },
		"At":            func() error { _, err := repo.At(ctx, start, []string{"a"}); return err },
		"Paths":         func() error { _, err := repo.Paths(ctx, ""); return err },
		"Links":         func() error { _, err := repo.Links(ctx, "HEAD"); return err },
		"Blobs": func() error {
			_, err := repo.Blobs(ctx, []string{BlobID(repo.ObjectFormat, []byte("1\n"))}, 10)
			return err
		},
		"Tracked":   func() error { _, err := repo.Tracked(ctx); return err },
		"Untracked": func() error { _, err := repo.Untracked(ctx); return err },
		"Sparse":    func() error { _, err := repo.Sparse(ctx); return err },
		"touched": func() error {
			drivers, err := repo.filters(ctx)
			if err != nil {
				return err
			}
			_, err = repo.touched(ctx, "a", Entry{Skipped: true}, drivers)
			return err
		},
		"CommitIDs":   func() error { _, err := repo.CommitIDs(ctx, []string{"HEAD", "nowhere"}); return err },
		"Commits":     func() error { _, err := repo.Commits(ctx, []string{start}, nil); return err },
		"StepChanges": func() error { _, err := repo.StepChanges(ctx, []Step{{Commit: start}}); return err },
		"MergeBases":  func() error { _, err := repo.MergeBases(ctx, start, start); return err },
		"Independent": func() error { _, err := repo.Independent(ctx, []string{start, start}); return err },
		"RemoteRefs":  func() error { _, err := repo.RemoteRefs(ctx); return err },
		"Converts": func() error {
			_, err := repo.Converts(ctx, "a", []byte("2\n"), Entry{Record: Record{ModeFile, BlobID(repo.ObjectFormat, []byte("1\n"))}})
			return err
		},
	} {
		if err := ask(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Without its tree the commit itself would have to be fetched.
	if err := os.Rename(r+"/.git/objects/"+treeID[:2], base+"/kept"); err != nil {
		t.Fatal(err)
	}
	if got, err := repo.Reached(ctx, refs, states); err == nil {
		t.Errorf("%v without the tree", got)
	}
	if got, err := repo.Held(ctx, states); err == nil {
		t.Errorf("%v without the tree", got)
	}
	if err := os.Rename(base+"/kept", r+"/.git/objects/"+treeID[:2]); err != nil {
		t.Fatal(err)
	}

	if left := tree(t, markers); len(left) > 0 {
		t.Errorf("these ran: %q", left)
	}
	after := contents(t, r)
	for path, content := range before {
		if after[path] != content {
			t.Errorf("%s was written", path)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d files in the repository, %d before", len(after), len(before))
	}
}

// tree returns the files below dir.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// contents returns the content of every file below dir.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, path := range tree(t, dir) {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[path] = string(content)
	}
	return all
}
