package guard

import (
	"context"
	"encoding/hex"
	"time"

	"cage/internal/gitrepo"
	"cage/internal/safefile"
	"cage/rules"
	"cage/snapshot"
)

// gitConfig is the file that git itself rewrites in everyday work.
func gitConfig() rules.Path { return rules.Path{Anchor: rules.CommonDir, Rel: "config"} }

// parseFor bounds how long git may take to read two configurations.
const parseFor = 2 * time.Second

// configBytes bounds the size of a configuration that is looked into: 1 MiB.
const configBytes = 1 << 20

// configCheck is the state of the question whether a change of git's config is
// git's own bookkeeping. git answers it, beside the loop.
type configCheck struct {
	done    chan configVerdict
	running bool
	answer  *configVerdict
}

type configVerdict struct {
	content  string
	harmless bool
}

// isBookkeeping reports whether a change of git's config is kept, or may be:
// then the answer comes later and the path is judged again. Content that
// changed while git was asked is asked about anew, but only after a good
// answer: who changes it faster than git reads gains nothing.
func (g *Guard) isBookkeeping(ctx context.Context, e *snapshot.Entry, sight snapshot.Sight) bool {
	content, ok := g.candidate(e, sight)
	if !ok {
		return false
	}
	if g.exiting {
		verdict := g.parseBoth(ctx, content)
		g.config.answer = &verdict
	}
	if answer := g.config.answer; answer != nil {
		g.config.answer = nil
		if !answer.harmless {
			return false
		}
		if answer.content == string(content) {
			g.keepConfig(e, content)
			return true
		}
	}
	g.askGit(ctx, content)
	return true
}

// candidate returns the content of git's config where nothing but its content
// changed.
func (g *Guard) candidate(e *snapshot.Entry, sight snapshot.Sight) ([]byte, bool) {
	if e.Path != gitConfig() || g.Git == nil || sight.Err != nil || !onlyContent(e, sight) {
		return nil, false
	}
	return g.read(e.Path)
}

// harmless asks the same where nothing is restored and time does not matter.
func (g *Guard) harmless(ctx context.Context, e *snapshot.Entry, sight snapshot.Sight) bool {
	content, ok := g.candidate(e, sight)
	return ok && g.parseBoth(ctx, content).harmless
}

func (g *Guard) askGit(ctx context.Context, content []byte) {
	if g.config.running {
		return
	}
	g.config.running = true
	g.beside.Add(1)
	go func() {
		defer g.beside.Done()
		g.config.done <- g.parseBoth(ctx, content)
	}()
}

// onlyContent reports whether type, mode, owner and attributes are those of
// the baseline.
func onlyContent(e *snapshot.Entry, sight snapshot.Sight) bool {
	s := sight.State
	return s.Kind == safefile.Regular && s.Perm == e.State.Perm && s.UID == e.State.UID && s.GID == e.State.GID &&
		safefile.SameAttrs(s.Attrs, e.State.Attrs)
}

func (g *Guard) read(p rules.Path) ([]byte, bool) {
	dir, err := g.Trees.Dir(p.Dir())
	if err != nil {
		return nil, false
	}
	defer dir.Close()
	f, _, err := dir.Open(p.Base())
	if err != nil {
		return nil, false
	}
	defer f.Close()
	content := make([]byte, configBytes+1)
	n, err := f.ReadAt(content, 0)
	return content[:n:n], err == nil && n <= configBytes
}

// parseBoth asks git what the config of the session's start and the new one
// say. The start is what counts, so that a remote may come and go again.
func (g *Guard) parseBoth(ctx context.Context, content []byte) configVerdict {
	ctx, cancel := context.WithTimeout(ctx, parseFor)
	defer cancel()
	verdict := configVerdict{content: string(content)}
	before, _ := g.Store.Get(g.startConfig)
	old, err := g.Git.ParseConfig(ctx, before)
	if err != nil {
		return verdict
	}
	now, err := g.Git.ParseConfig(ctx, content)
	verdict.harmless = err == nil && gitrepo.Bookkeeping(old, now)
	return verdict
}

// takeConfigVerdict has the config judged by git's answer.
func (g *Guard) takeConfigVerdict(v configVerdict) {
	g.config.running = false
	g.config.answer = &v
	g.dirty.add(gitConfig())
}

// keepConfig makes git's own change the state that later restores put back.
func (g *Guard) keepConfig(e *snapshot.Entry, content []byte) {
	g.settling.over(e.Path)
	changed := *e
	changed.State.Content = g.Store.Put(content)
	changed.State.Digest = snapshot.DigestOf(content)
	changed.State.Size = int64(len(content))
	row := g.row(e.Path, e.Verdict, Modified)
	if row.Outcome == "" {
		row.Before, row.Outcome = e.State.Digest, Kept
		g.emit(Listed{Path: e.Path, Verdict: e.Verdict, Kind: Modified, Outcome: Kept, Note: GitBookkeeping})
	}
	row.After, row.Note = changed.State.Digest, GitBookkeeping
	g.Manifest.Replace(&changed)
	g.emit(Rebased{Entry: &changed})
}

func hexOf(b []byte) string { return hex.EncodeToString(b) }
