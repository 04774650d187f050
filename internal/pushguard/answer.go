package pushguard

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"time"

	"cage/report"
)

// The talk between a hook and its session: one question, one answer. The binary
// may have been replaced by another version while the session runs, so each
// says which talk it means.

const version = 1

// question is what a pre-push hook has to ask.
type question struct {
	Version int
	// Pushed is what git said to the hook on its standard input.
	Pushed []byte
}

// answer is what the hook has to do.
type answer struct {
	Version int
	Refused bool
	// Text is for people, in whole lines.
	Text string
}

const (
	// maxQuestion bounds a question in bytes: some hundred thousand references.
	maxQuestion = 64 << 20
	// maxAtOnce is how many questions are answered at a time.
	maxAtOnce = 4
	// listening is how long a question may take to arrive.
	listening = 10 * time.Second
)

// answer takes questions until the listener is closed.
func (g *Guard) answer(ctx context.Context) {
	free := make(chan struct{}, maxAtOnce)
	for {
		conn, err := g.listener.Accept()
		if ctx.Err() != nil {
			if err == nil {
				conn.Close()
			}
			return
		}
		if err != nil {
			// As where descriptors run out: the next one may find some.
			time.Sleep(time.Millisecond)
			continue
		}
		free <- struct{}{}
		g.answering.Go(func() {
			defer func() { <-free }()
			g.converse(ctx, conn)
		})
	}
}

// converse answers one question.
func (g *Guard) converse(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	conn.SetReadDeadline(time.Now().Add(listening))
	// Whoever waits for the end of the session does not wait for a question.
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })()
	var q question
	if err := json.NewDecoder(io.LimitReader(conn, maxQuestion)).Decode(&q); err != nil {
		return // nobody asked: the stage takes silence for a refusal
	}
	refusal := g.judged(ctx, q)
	a := answer{Version: version}
	if refusal != nil {
		a.Refused, a.Text = true, refusal.text()
		g.refusals.Put(*refusal)
	}
	json.NewEncoder(conn).Encode(a) // who has gone away needs no answer
}

// judged returns why a push is refused; nil where it is not.
func (g *Guard) judged(ctx context.Context, q question) *Refusal {
	if q.Version != version {
		return &Refusal{Reason: errOtherProgram.Error()}
	}
	findings, err := g.judge.Push(ctx, q.Pushed)
	switch {
	case err != nil:
		return &Refusal{Reason: report.Text(err.Error())}
	case len(findings) > 0:
		return &Refusal{Findings: findings}
	}
	return nil
}

// mostNamed is how many findings a refusal names.
const mostNamed = 20

// text says to a person why a push is refused and what can be done.
func (r *Refusal) text() string {
	const way = "have a person push it outside of the session"
	if r.Reason != "" {
		return "cage: push refused: it cannot be judged: " + r.Reason + "\nfix: " + way + "\n"
	}
	text := "cage: push refused: commits made in this session change protected files\n"
	for _, f := range r.Findings[:min(len(r.Findings), mostNamed)] {
		text += fmt.Sprintf("  %s  (%s)  in %.12s\n", report.Quote(f.Path), f.Rule, f.Commit)
	}
	if more := len(r.Findings) - mostNamed; more > 0 {
		text += fmt.Sprintf("  and %d more\n", more)
	}
	return text + "fix: take the change out of the commits that make it; or " + way +
		", or start the session with --allow-override <path>\n"
}
