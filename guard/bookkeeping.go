package guard

import (
	"context"
	"slices"
	"time"

	"cage/internal/gitrepo"
	"cage/internal/safefile"
	"cage/rules"
	"cage/snapshot"
)

// parseFor bounds how long git may take to read two configurations.
const parseFor = 2 * time.Second

// Bounds of what waits for git's answer and of the answers that are remembered.
const (
	maxConfigBacklog = 64 << 20 // bytes
	maxConfigAnswers = 4096
)

// suspicion is how long a harmful configuration that was gone again when git
// had read it has the next change undone without a question.
const suspicion = time.Second

// configCheck is the state of the question whether a change of git's config is
// git's own bookkeeping. git answers it, beside the loop, of every content that
// was seen: none can hide behind another that stands there when the answer
// comes.
type configCheck struct {
	done    chan configVerdict
	running bool
	// backlog are contents that git has not judged, the youngest last, and size
	// is that of all together.
	backlog []config
	size    int
	// harmless are git's answers.
	harmless map[snapshot.Digest]bool
	// suspect says until when the next change is harmful whatever it is.
	suspect time.Time
}

// config is one content of git's config, with the file that held it.
type config struct {
	content []byte
	state   snapshot.State
}

type configVerdict struct {
	digest   snapshot.Digest
	harmless bool
	// failed says that git gave no answer: to be safe that is a bad one, but
	// only this time.
	failed bool
}

// admitBookkeeping lets a change of git's config stand that is git's own
// bookkeeping, and reports whether it does: for good, or until git, which it
// asks, has answered and the path is judged again.
func (g *Guard) admitBookkeeping(ctx context.Context, e *snapshot.Entry, sight snapshot.Sight) bool {
	now, ok := g.candidate(e, sight)
	// A new file may have the old one's content and even its number, and then
	// differs by its time. Whatever else was done to it is set back.
	if !ok || !rewritten(e.State, now.state) && now.state.MTime == e.State.MTime {
		return false
	}
	c := &g.config
	if g.exiting {
		return g.judgeLastConfig(ctx, e, now)
	}
	if time.Now().Before(c.suspect) {
		c.suspect = time.Time{}
		return false
	}
	harmless, judged := c.harmless[now.state.Digest]
	switch {
	case judged && !harmless:
		return false
	case judged && len(c.backlog) == 0:
		g.keepConfig(e, now)
		return true
	case !judged && !c.put(now):
		return false
	}
	g.askGit(ctx)
	return true
}

// judgeLastConfig judges what is left of the config when the command has ended.
func (g *Guard) judgeLastConfig(ctx context.Context, e *snapshot.Entry, now config) bool {
	if !g.parseBoth(ctx, now.content).harmless {
		return false
	}
	g.keepConfig(e, now)
	return true
}

// put adds a content to those that git is asked about, to be the next. It
// reports false where more waits than anybody writes who keeps books.
func (c *configCheck) put(now config) bool {
	c.drop(now.state.Digest)
	c.backlog = append(c.backlog, now)
	c.size += len(now.content)
	if c.size <= maxConfigBacklog {
		return true
	}
	c.backlog, c.size = nil, 0
	return false
}

func (c *configCheck) drop(digest snapshot.Digest) {
	i := slices.IndexFunc(c.backlog, func(waiting config) bool { return waiting.state.Digest == digest })
	if i >= 0 {
		c.size -= len(c.backlog[i].content)
		c.backlog = slices.Delete(c.backlog, i, i+1)
	}
}

// learn notes an answer.
func (c *configCheck) learn(v configVerdict, now time.Time) {
	c.drop(v.digest)
	if !v.harmless {
		c.suspect = now.Add(suspicion)
	}
	if v.failed {
		return
	}
	if len(c.harmless) >= maxConfigAnswers {
		clear(c.harmless)
	}
	c.harmless[v.digest] = v.harmless
}

// candidate returns git's config where it may be git that rewrote it.
func (g *Guard) candidate(e *snapshot.Entry, sight snapshot.Sight) (config, bool) {
	if e.Path != rules.GitConfig() || g.Git == nil || sight.Err != nil {
		return config{}, false
	}
	now, ok := g.read(e.Path)
	return now, ok && now.state.Kind == safefile.Regular && now.state.Perm == e.State.Perm
}

// harmless asks the same where nothing is restored and time does not matter.
func (g *Guard) harmless(ctx context.Context, e *snapshot.Entry, sight snapshot.Sight) bool {
	now, ok := g.candidate(e, sight)
	return ok && rewritten(e.State, now.state) && g.parseBoth(ctx, now.content).harmless
}

// askGit has git judge the youngest content that waits: most likely it is what
// stands there.
func (g *Guard) askGit(ctx context.Context) {
	if g.config.running || len(g.config.backlog) == 0 {
		return
	}
	g.config.running = true
	content := g.config.backlog[len(g.config.backlog)-1].content
	g.beside.Go(func() { g.config.done <- g.parseBoth(ctx, content) })
}

// rewritten reports whether somebody wrote a file as git does: into a new one,
// which then takes its name. The new one has the owner and attributes of whoever
// runs git. Where they changed alone, nobody did.
func rewritten(before, now snapshot.State) bool {
	return now.Digest != before.Digest || now.Inode != before.Inode || sameDress(now, before)
}

// sameDress reports whether two states have the same owner and attributes.
func sameDress(a, b snapshot.State) bool {
	return a.UID == b.UID && a.GID == b.GID && safefile.SameAttrs(a.Attrs, b.Attrs)
}

// read reads a file to its end, if that is not too far.
func (g *Guard) read(p rules.Path) (config, bool) {
	f, info, err := g.open(p)
	if err != nil {
		return config{}, false
	}
	defer f.Close()
	attrs, err := f.Attrs()
	if err != nil {
		return config{}, false
	}
	content := make([]byte, snapshot.ConfigBytes+1)
	n, err := f.ReadAt(content, 0)
	content = content[:n:n]
	state := snapshot.State{Info: info, Attrs: attrs, Digest: snapshot.DigestOf(content)}
	return config{content, state}, err == nil && n <= snapshot.ConfigBytes
}

func (g *Guard) open(p rules.Path) (*safefile.File, safefile.Info, error) {
	dir, err := g.Trees.Dir(p.Dir())
	if err != nil {
		return nil, safefile.Info{}, err
	}
	defer dir.Close()
	return dir.Open(p.Base())
}

// parseBoth asks git what the config of the session's start and the new one
// say. The start is what counts, so that a remote may come and go again.
func (g *Guard) parseBoth(ctx context.Context, content []byte) configVerdict {
	ctx, cancel := context.WithTimeout(ctx, parseFor)
	defer cancel()
	verdict := configVerdict{digest: snapshot.DigestOf(content), failed: true}
	before, known := g.Store.Get(g.startConfig)
	if !known {
		return verdict
	}
	old, err := g.Git.ParseConfig(ctx, before)
	if err != nil {
		return verdict
	}
	now, err := g.Git.ParseConfig(ctx, content)
	verdict.failed = ctx.Err() != nil
	verdict.harmless = err == nil && gitrepo.Bookkeeping(old, now)
	return verdict
}

// takeConfigVerdict has the config judged by git's answer.
func (g *Guard) takeConfigVerdict(ctx context.Context, v configVerdict) {
	g.config.running = false
	g.config.learn(v, time.Now())
	g.dirty.add(rules.GitConfig())
	g.askGit(ctx)
}

// keepConfig makes git's own change the state that later restores put back.
func (g *Guard) keepConfig(e *snapshot.Entry, now config) {
	g.settling.over(e.Path)
	row := g.row(e.Path, e.Verdict, Modified)
	if row.Outcome == "" {
		row.Before, row.Outcome, row.Note = e.State.Digest, Kept, GitBookkeeping
		g.emit(Listed{Path: e.Path, Verdict: e.Verdict, Kind: Modified, Outcome: Kept, Note: GitBookkeeping})
	}
	row.After = now.state.Digest
	changed := *e
	changed.State.Content, changed.State.Digest = g.Store.Put(now.content), now.state.Digest
	changed.State.Size, changed.State.MTime = int64(len(now.content)), now.state.MTime
	changed.State.Inode, changed.State.Nlink = now.state.Inode, now.state.Nlink
	g.stood.own(e.Path, now.state.Inode, time.Now())
	if !sameDress(now.state, e.State) {
		unset := g.dress(&changed)
		changed = *changed.WithAttributes(unset, now.state)
		row.Unset = mergeUnset(row.Unset, unset)
		g.dirty.add(e.Path) // for what is not the same even now
	}
	g.Manifest.Replace(&changed)
	g.emit(Rebased{Entry: &changed})
}

// dress gives the file of an entry the owner and attributes that belong to it,
// and returns those that the system refused. It leaves a file that is no more
// the one at the path, and one that has other names: whose it is nobody knows.
func (g *Guard) dress(e *snapshot.Entry) []safefile.UnsetAttr {
	f, info, err := g.open(e.Path)
	if err != nil {
		return nil
	}
	defer f.Close()
	if info.Inode != e.State.Inode || info.Nlink != 1 {
		return nil
	}
	node := safefile.Node{Perm: e.State.Perm, UID: e.State.UID, GID: e.State.GID, Attrs: e.State.Attrs}
	unset, err := f.Dress(node)
	if err != nil {
		return nil
	}
	return unset
}
