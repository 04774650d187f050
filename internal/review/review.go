// Package review looks at what earlier sessions displaced, shows it beside what
// stands in its place, and puts one version back on a person's word.
//
// What it reads anybody could have written who runs as this user. It takes a
// version for what the index says only if its content has the digest that the
// index gives, and puts it only below the root or a git directory, at a path
// that a rule protects, where what the session protected still stands.
package review

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"cage/internal/kept"
	"cage/internal/safefile"
	"cage/rules"
)

// Session is what one session displaced, its recovery included.
type Session struct {
	ID      string
	Command string
	// Watch says that it was a watch, whose Command is the program it lasted as
	// long as, if any.
	Watch   bool
	Started time.Time
	Layout  rules.Layout
	// Versions are in the order in which they were displaced.
	Versions []Version
	// Untold counts versions past what the indexes hold.
	Untold int
	// Ended says that the session, or its recovery, came to its end.
	Ended bool
}

// Version is one displaced version. Its number counts from 1 within the
// session.
type Version struct {
	kept.Record
	Number int
	// Recovered says that a recovery displaced it, or copied it for the session.
	Recovered bool
}

// errTwoPlaces is what keeps the index of a recovery from being read with its
// session's.
var errTwoPlaces = errors.New("it names other directories than its session")

// Sessions returns the sessions that displaced something, the oldest first, and
// what could not be read of them.
func Sessions(folder string) ([]Session, []kept.Unusable, error) {
	indexes, unusable, err := kept.Indexes(folder)
	if err != nil {
		return nil, nil, fmt.Errorf("look for what sessions displaced: %w", err)
	}
	var sessions []Session
	for _, index := range indexes {
		at := slices.IndexFunc(sessions, func(s Session) bool { return s.ID == index.Session })
		if at < 0 {
			at = len(sessions)
			sessions = append(sessions, Session{
				ID: index.Session, Command: index.Command, Watch: index.Watch, Started: index.Started, Layout: index.Layout,
			})
		}
		if !sessions[at].add(index) {
			unusable = append(unusable, kept.Unusable{Store: index.Session, Err: errTwoPlaces})
		}
	}
	for i := range sessions {
		sessions[i].number()
	}
	return slices.DeleteFunc(sessions, func(s Session) bool { return len(s.Versions) == 0 }), unusable, nil
}

// add takes in what an index tells, unless that is about another place.
func (s *Session) add(index *kept.Index) bool {
	if !samePlace(s.Layout, index.Layout) {
		return false
	}
	s.Untold += index.Untold
	s.Ended = s.Ended || index.Complete
	for _, record := range index.Records {
		s.Versions = append(s.Versions, Version{Record: record, Recovered: index.Recovered})
	}
	return true
}

// samePlace reports whether two sessions stood in the same directories. Where
// the hooks are is left out: no version is put back there.
func samePlace(a, b rules.Layout) bool {
	return a.Root == b.Root && a.CommonDir == b.CommonDir && a.GitDir == b.GitDir
}

func (s *Session) number() {
	slices.SortStableFunc(s.Versions, func(a, b Version) int { return a.At.Compare(b.At) })
	for i := range s.Versions {
		s.Versions[i].Number = i + 1
	}
}

// Known reports whether somebody wrote down where the version stood.
func (v *Version) Known() bool { return v.Path.Rel != "" }

// Added reports whether nothing belonged where the version stood.
func (v *Version) Added() bool { return v.Known() && v.Before.Kind == safefile.None }

// Newest returns the newest version of every path, by path.
func (s *Session) Newest() []Version {
	newest := make(map[rules.Path]Version)
	for _, v := range s.Versions {
		if v.Known() {
			newest[v.Path] = v
		}
	}
	versions := make([]Version, 0, len(newest))
	for _, v := range newest {
		versions = append(versions, v)
	}
	slices.SortFunc(versions, func(a, b Version) int { return a.Path.Compare(b.Path) })
	return versions
}
