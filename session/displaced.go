package session

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"cage/internal/kept"
	"cage/snapshot"
)

// storeFolder is where displaced versions of a recovery are kept for good: a
// folder with this name is never pruned.
func (r *recovery) storeFolder() string { return r.sessionFolder() + kept.RecoveredSuffix }

// sessionFolder is where the session kept its own.
func (r *recovery) sessionFolder() string {
	return filepath.Join(r.session.state, "sessions", r.left.Session)
}

func (r *recovery) keeperOptions(trees *snapshot.Trees) kept.Options {
	return kept.Options{
		GitDir:      kept.GitDirOf(trees),
		Store:       r.storeFolder(),
		Spare:       refuge(r.session.temp, r.left.Session),
		Session:     r.left.Session,
		DigestLimit: r.session.Limits.FileBytes,
	}
}

// adoptQuarantine takes charge of what the session had displaced and not yet
// copied, and opens the ledger of the recovery with it. What cannot be copied
// stays where it is.
func (r *recovery) adoptQuarantine() {
	trees, err := snapshot.OpenTrees(r.session.layout)
	if err != nil {
		return
	}
	defer trees.Close()
	options := r.keeperOptions(trees)
	own := r.ownIndex()
	own.ListCopies(r.sessionFolder(), kept.Stored)
	own.ListCopies(options.Spare, kept.Spared)
	written := len(own.Records) > 0
	r.ledger = kept.NewLedger(options, kept.Index{
		Session: own.Session, Recovered: true, Command: own.Command, Watch: own.Watch, Started: own.Started, Layout: r.session.layout,
	})
	keeper := kept.Open(options)
	keeper.Adopt()
	keeper.Finish()
	for _, sealed := range keeper.Take() {
		r.adopt(own, sealed)
	}
	// First where they are now: a kill in between must not leave them unnamed.
	r.writeLedger()
	if own.Complete = true; written {
		r.warn(kept.WriteIndex(r.sessionFolder(), own))
	}
}

// ownIndex returns what the session itself wrote down of its versions, as far
// as that can be had.
func (r *recovery) ownIndex() *kept.Index {
	own, err := kept.ReadIndex(r.sessionFolder())
	if err == nil {
		return own
	}
	if !errors.Is(err, fs.ErrNotExist) {
		r.warn(err)
	}
	return &kept.Index{Session: r.left.Session, Started: r.left.Started, Layout: r.session.layout}
}

// adopt moves a version from the session's index to that of the recovery. What
// the session had no time to write down stood at a path that nobody knows.
func (r *recovery) adopt(own *kept.Index, sealed kept.Sealed) {
	var before snapshot.State
	at := time.Now()
	known := slices.IndexFunc(own.Records, func(v kept.Record) bool {
		return v.Spot.Room == kept.Quarantined && v.Spot.Name == sealed.Quarantined
	})
	if known >= 0 {
		record := own.Records[known]
		sealed.Path, before, at = record.Path, record.Before, record.At
		own.Records = slices.Delete(own.Records, known, known+1)
	}
	r.ledger.Note(sealed, before, at)
}

// writeLedger writes down what the recovery displaced.
func (r *recovery) writeLedger() {
	if r.ledger != nil {
		r.warn(r.ledger.Write(true))
	}
}

func (r *recovery) warn(err error) {
	if err != nil {
		r.session.warnings = append(r.session.warnings, err.Error())
	}
}
