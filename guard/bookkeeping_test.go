package guard

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"cage/internal/gitrepo"
	"cage/internal/kept"
	"cage/internal/program"
	"cage/rules"
	"cage/snapshot"
)

// The loop's work is done by hand here, one step after the other: what git has
// to say comes when the test takes it.

type rig struct {
	*Guard
	file  string
	start string
}

// newRig returns a guard of a real repository.
func newRig(t *testing.T) *rig {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("no git")
	}
	ctx := t.Context()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	if out, err := exec.Command(git, "-C", dir, "init", "-q", "--template=").CombinedOutput(); err != nil {
		t.Fatalf("git init: %v %s", err, out)
	}
	found, err := gitrepo.Discover(ctx, program.Exec, git, dir)
	if err != nil {
		t.Fatal(err)
	}
	repo := found.Repo
	layout := rules.Layout{Root: repo.Root, CommonDir: repo.CommonDir}
	plan, err := rules.New(rules.Inputs{Layout: layout})
	if err != nil {
		t.Fatal(err)
	}
	trees, err := snapshot.OpenTrees(layout)
	if err != nil {
		t.Fatal(err)
	}
	store := snapshot.NewStore()
	limits := snapshot.Limits{FileBytes: 1 << 20, Files: 100, TotalBytes: 1 << 20}
	manifest, err := snapshot.Take(ctx, trees, plan, []rules.Path{rules.GitConfig()}, store, limits)
	if err != nil {
		t.Fatal(err)
	}
	keeper := kept.Open(kept.Options{
		GitDir: trees.Root(rules.CommonDir), Session: "0123456789abcdef", Store: t.TempDir(), DigestLimit: 1 << 20,
	})
	g := New(Options{
		Plan: plan, Trees: trees, Manifest: manifest, Store: store, Keeper: keeper, Git: repo,
		Restores: true, FileBytes: 1 << 20,
	})
	t.Cleanup(func() {
		g.look.Forget()
		g.beside.Wait()
		keeper.Finish()
		trees.Close()
	})
	r := &rig{Guard: g, file: filepath.Join(repo.CommonDir, "config")}
	r.start = r.read(t)
	return r
}

func (r *rig) read(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(r.file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// see puts a content in place as git does, whole, and has it judged.
func (r *rig) see(t *testing.T, content string) {
	t.Helper()
	if err := os.WriteFile(r.file+".lock", []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(r.file+".lock", r.file); err != nil {
		t.Fatal(err)
	}
	r.judge(t.Context(), rules.GitConfig())
}

// answer takes git's next answer, and does what is due then.
func (r *rig) answer(t *testing.T) {
	t.Helper()
	select {
	case v := <-r.config.done:
		r.takeConfigVerdict(t.Context(), v)
	case <-time.After(30 * time.Second):
		t.Fatal("git gives no answer")
	}
	r.work(t.Context())
}

func (r *rig) answerAll(t *testing.T) {
	t.Helper()
	for r.config.running {
		r.answer(t)
	}
}

func (r *rig) restores() int { return r.live }

func (r *rig) books(n string) string {
	return r.start + "[branch \"a\"]\n\tdescription = " + n + "\n"
}

func (r *rig) evil() string { return r.start + "[core]\n\tfsmonitor = evil\n" }

func TestBookkeepingIsKept(t *testing.T) {
	r := newRig(t)
	for _, n := range []string{"1", "2", "3"} {
		r.see(t, r.books(n))
	}
	r.answerAll(t)
	if got := r.read(t); got != r.books("3") || r.restores() != 0 {
		t.Fatalf("%d restores, config is %q", r.restores(), got)
	}
	// From now on that is what is put back.
	r.see(t, r.evil())
	r.answerAll(t)
	if got := r.read(t); got != r.books("3") || r.restores() != 1 {
		t.Errorf("%d restores, config is %q", r.restores(), got)
	}
}

func TestHarmfulConfigCannotHideBehindAHarmlessOne(t *testing.T) {
	r := newRig(t)
	r.see(t, r.books("1")) // git is asked about this one
	r.see(t, r.evil())
	r.see(t, r.books("1"))
	r.answerAll(t)
	if got := r.read(t); got != r.start || r.restores() != 1 {
		t.Errorf("%d restores, config is %q", r.restores(), got)
	}
}

func TestHarmfulConfigThatIsGoneAgainIsRemembered(t *testing.T) {
	r := newRig(t)
	r.see(t, r.evil())
	r.see(t, r.start)
	r.answerAll(t)
	if r.restores() != 0 {
		t.Fatalf("%d restores of a whole file", r.restores())
	}
	// What git has read needs no second reading.
	r.see(t, r.evil())
	if got := r.read(t); got != r.start || r.restores() != 1 {
		t.Errorf("%d restores, config is %q", r.restores(), got)
	}
}

func TestSuspicionFallsOnTheNextChangeOnly(t *testing.T) {
	r := newRig(t)
	r.see(t, r.evil())
	r.see(t, r.start)
	r.answerAll(t)
	r.see(t, r.evil()+"# another\n")
	if got := r.read(t); got != r.start || r.restores() != 1 {
		t.Fatalf("%d restores, config is %q", r.restores(), got)
	}
	r.see(t, r.books("1"))
	r.answerAll(t)
	if got := r.read(t); got != r.books("1") || r.restores() != 1 {
		t.Errorf("%d restores, config is %q", r.restores(), got)
	}
}

func TestSuspicionPasses(t *testing.T) {
	r := newRig(t)
	r.see(t, r.evil())
	r.see(t, r.start)
	r.answerAll(t)
	r.config.suspect = time.Now().Add(-time.Nanosecond)
	r.see(t, r.books("1"))
	r.answerAll(t)
	if got := r.read(t); got != r.books("1") || r.restores() != 0 {
		t.Errorf("%d restores, config is %q", r.restores(), got)
	}
}

// ownedBy has the config belong to somebody else at the baseline, as far as the
// test may give it away.
func (r *rig) ownedBy(t *testing.T, uid uint32) {
	t.Helper()
	e, _ := r.Manifest.Entry(rules.GitConfig())
	changed := *e
	changed.State.UID = uid
	r.Manifest.Replace(&changed)
	if err := os.Chown(r.file, int(uid), -1); err != nil && os.Geteuid() == 0 {
		t.Fatal(err)
	}
}

func (r *rig) owner(t *testing.T) uint32 {
	t.Helper()
	dir, err := r.Trees.Dir(rules.GitConfig().Dir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	info, err := dir.Stat(rules.GitConfig().Base())
	if err != nil {
		t.Fatal(err)
	}
	return info.UID
}

// Promise: git may keep its books as another user than the config's. Where that
// can be, the config belongs afterwards to whom it belonged.
func TestBookkeepingOfAnotherUser(t *testing.T) {
	const other = 65534
	r := newRig(t)
	r.ownedBy(t, other)
	for _, n := range []string{"1", "2", "2", "3"} {
		r.see(t, r.books(n))
		r.answerAll(t)
		if got := r.read(t); got != r.books(n) {
			t.Fatalf("the config is %q", got)
		}
	}
	r.wantRows(t, row{"config", Kept, GitBookkeeping, 0})
	want := uint32(os.Geteuid())
	if want == 0 {
		want = other
	}
	if got := r.owner(t); got != want {
		t.Errorf("the config belongs to %d, want %d", got, want)
	}
	if e, _ := r.Manifest.Entry(rules.GitConfig()); e.State.UID != want {
		t.Errorf("at the baseline it belongs to %d, want %d", e.State.UID, want)
	}

	// Everything else is undone, with its owner.
	r.see(t, r.evil())
	r.answerAll(t)
	r.wantRows(t, row{"config", Reverted, "", 1})
	if got := r.owner(t); r.read(t) != r.books("3") || got != want {
		t.Errorf("after a restore the config is %q and belongs to %d", r.read(t), got)
	}
}

// Promise: a new owner or mode alone is nobody's bookkeeping.
func TestNewOwnerAloneIsNoBookkeeping(t *testing.T) {
	r := newRig(t)
	r.see(t, r.books("1"))
	r.answerAll(t)
	if err := os.Chmod(r.file, 0o600); err != nil {
		t.Fatal(err)
	}
	r.judge(t.Context(), rules.GitConfig())
	r.answerAll(t)
	r.wantRows(t, row{"config", Reverted, "", 1})
	if os.Geteuid() != 0 {
		return
	}
	if err := os.Chown(r.file, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	r.judge(t.Context(), rules.GitConfig())
	r.answerAll(t)
	r.wantRows(t, row{"config", Reverted, "", 2})
	if got := r.owner(t); got != 0 {
		t.Errorf("the config belongs to %d", got)
	}
}

// holding returns a config of which only the content matters.
func holding(content []byte) config {
	return config{content: content, state: snapshot.State{Digest: snapshot.DigestOf(content)}}
}

func TestNoAnswerIsABadOneOnce(t *testing.T) {
	r := newRig(t)
	var c configCheck
	c.harmless = make(map[snapshot.Digest]bool)
	waiting := holding([]byte("a"))
	c.put(waiting)
	c.learn(configVerdict{digest: waiting.state.Digest, failed: true}, time.Now())
	if _, judged := c.harmless[waiting.state.Digest]; judged || c.suspect.IsZero() || len(c.backlog) != 0 || c.size != 0 {
		t.Errorf("after no answer: %+v", c)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if v := r.parseBoth(ctx, []byte(r.books("1"))); v.harmless || !v.failed {
		t.Errorf("the answer of a git that was ended is %+v", v)
	}
}

func TestBacklogIsBounded(t *testing.T) {
	c := configCheck{harmless: make(map[snapshot.Digest]bool)}
	large := make([]byte, maxConfigBacklog/4)
	put := func(n byte) bool {
		content := slices.Clone(large)
		content[0] = n
		return c.put(holding(content))
	}
	for n := range byte(4) {
		if first, again := put(n), put(n); !first || !again { // each counts once
			t.Fatalf("the backlog is full with %d contents", n)
		}
	}
	if put(4) || len(c.backlog) != 0 {
		t.Error("the backlog has no bound")
	}
	if !put(5) {
		t.Error("nothing is asked about any more")
	}

	for n := range maxConfigAnswers + 10 {
		c.learn(configVerdict{digest: snapshot.DigestOf([]byte{byte(n), byte(n >> 8)})}, time.Now())
	}
	if len(c.harmless) > maxConfigAnswers {
		t.Errorf("%d answers are remembered", len(c.harmless))
	}
}
