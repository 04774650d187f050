package session

import (
	"errors"
	"fmt"
	"time"

	"cage/internal/proc"
	"cage/journal"
	"cage/report"
	"cage/rules"
	"cage/snapshot"
)

// journalling is the session's side of its journal.
type journalling struct {
	journal *journal.Journal
	// journalKept says that the journal is that of an earlier session, which
	// this one leaves as it is.
	journalKept bool
	// unpreserved counts the files that are not back and of whose content no copy
	// could be stored. holdsOriginals says that the session's own journal stays for
	// that, as if the session had not ended.
	unpreserved    int
	holdsOriginals bool
	// noted is the note of an unfinished session, where its journal was found.
	noted *unfinished
	// common is held while the session guards the files that work trees share;
	// elsewhere names their directory where another session does.
	common     *journal.CommonLock
	elsewhere  []rules.Anchor
	recovered  *report.Recovery
	journalist *journalist
	// announced says that the user's home knows of this session.
	announced bool
}

// journalise writes the journal: from here on a killed cage can be recovered.
func (s *session) journalise() error {
	if s.journalKept {
		return nil
	}
	publish, forget := s.note()
	defer forget()
	err := s.journal.Write(journal.Record{
		Session: s.id, Layout: s.layout, Started: s.started, Manifest: s.manifest, Store: s.store,
		Rules: journal.Rules{
			Git: s.inputs.Git, Config: s.inputs.Config, ManifestYAML: s.inputs.ManifestYAML, ManifestJSON: s.inputs.ManifestJSON,
			Elsewhere: s.elsewhere, Overrides: s.inputs.Overrides, Exempt: s.inputs.Exempt, Joined: s.joined,
		},
	})
	if err != nil {
		return journalRefusal(err)
	}
	s.announced = s.noteDown(publish)
	return nil
}

// noteDown reports whether the note could be published. A session without one is
// as safe; only the next start may have to be told where to look.
func (s *session) noteDown(publish func() error) bool {
	err := publish()
	if err != nil {
		s.log.WatchError(fmt.Errorf("note the session in the user's home: %w", err))
	}
	return err == nil
}

// errJournalGone is logged where somebody removed or changed the journal.
var errJournalGone = errors.New("the journal was removed or changed, and was written again")

// errNoteGone is the same of the note.
var errNoteGone = errors.New("the note of the session in the user's home was removed or changed, and was written again")

// codeJournal is the code of a journal that cannot be written.
const codeJournal = "GXT_CAGE_JOURNAL_UNWRITABLE"

// holdOriginals has the journal stay where it is the only place that still holds
// what files held at the start. It returns nil where there are none such; where
// the journal does not hold them either, somebody took it away and there is no
// room for another.
func (s *session) holdOriginals() *report.JournalKept {
	if s.unpreserved == 0 || s.journal == nil || s.journalKept {
		return nil
	}
	if err := s.journal.Ensure(); err != nil {
		s.tell("what files held at the start that are not back is lost: " + err.Error())
		return nil
	}
	if err := s.journal.End(); err != nil {
		s.log.WatchError(err) // what is changed in the next minutes passes for the session's doing
	}
	s.holdsOriginals = true
	s.refreshNote()
	return &report.JournalKept{Name: report.NameOf(s.journal.Folder()), Files: s.unpreserved}
}

// closeJournal removes the journal of a session that has ended, and lets go of
// the lock. Where it has to hold what is not back, it stays for the next start.
func (s *session) closeJournal() {
	if s.journal == nil {
		return
	}
	var err error
	if s.announced && !s.holdsOriginals {
		// First, so that a kill before the journal is gone leaves one that the
		// next start finds, and none that it misses.
		err = s.unnote()
	}
	end := s.journal.Remove
	if s.journalKept || s.holdsOriginals {
		end = s.journal.Close
	}
	err = errors.Join(err, end())
	for _, place := range s.journal.Found() {
		s.tell("somebody put something where only the session's journal belongs; it lies at " + report.Quote(place) + " now")
	}
	if s.common != nil {
		err = errors.Join(err, s.common.Release())
	}
	if err != nil {
		s.tell(err.Error())
	}
}

// refreshEvery is the least time between two refreshes of the process list.
const refreshEvery = 500 * time.Millisecond

// journalist keeps the journal up to date while the session runs. It is the
// only one to write it meanwhile.
type journalist struct {
	amended chan *snapshot.Entry
	quit    chan struct{}
	done    chan struct{}
}

// soon is when the command itself is noted: late enough that one which only
// prints a line costs no writing. Until then its parent-death signal stands for
// that.
const soon = 20 * time.Millisecond

// startJournalist refreshes the journal's process list on a timer of its own.
func (s *session) startJournalist() {
	if s.journalKept {
		return
	}
	j := &journalist{amended: make(chan *snapshot.Entry), quit: make(chan struct{}), done: make(chan struct{})}
	s.journalist = j
	go func() {
		defer close(j.done)
		ticker := time.NewTicker(s.refreshInterval())
		defer ticker.Stop()
		first := time.NewTimer(soon)
		defer first.Stop()
		var last census
		for {
			select {
			case <-j.quit:
				return
			case <-first.C:
				s.refreshJournal(s.firstJournalled(&last))
			case <-ticker.C:
				s.refreshJournal(s.journalled(&last))
				s.writeLedger(false)
			case e := <-j.amended:
				if err := s.journal.Amend(e); err != nil {
					s.log.WatchError(err)
				}
			}
		}
	}()
}

// census is a list of the run's processes, and what tells whether it still
// holds all of them.
type census struct {
	processes []proc.Process
	newest    int
	taken     time.Time
}

// censusEvery is how often processes are listed at the least: what a container
// shows of its machine can be a few seconds old.
const censusEvery = 10 * time.Second

// take lists the processes where one may have been born since the last time:
// to list them takes a look at every process of the machine. Those that ended
// since then do no harm.
func (c *census) take(list func() ([]proc.Process, error)) ([]proc.Process, error) {
	newest := proc.Newest()
	if newest != 0 && newest == c.newest && time.Since(c.taken) < censusEvery {
		return c.processes, nil
	}
	processes, err := list()
	if err == nil {
		*c = census{processes: processes, newest: newest, taken: time.Now()}
	}
	return processes, err
}

// refreshJournal writes which processes the run has now; an error says that the
// list is not whole.
func (s *session) refreshJournal(processes []proc.Process, err error) {
	if err != nil {
		s.log.WatchError(fmt.Errorf("list the processes of the run: %w", err))
	}
	ids := make([]proc.ID, len(processes))
	for i, p := range processes {
		ids[i] = p.ID
	}
	mended, err := s.journal.Refresh(ids)
	if mended {
		s.log.WatchError(errJournalGone)
	}
	s.refreshNote()
	if err != nil {
		s.log.WatchError(err)
	}
}

// refreshNote writes the note again where somebody removed or changed it.
func (s *session) refreshNote() {
	if !s.announced {
		return
	}
	if note, err := recall(s.layout.Root); err == nil && note != nil && note.Session == s.id {
		return
	}
	s.log.WatchError(errNoteGone)
	publish, forget := s.note()
	defer forget()
	s.noteDown(publish)
}

// amend notes in the journal that an entry's baseline changed.
func (s *session) amend(e *snapshot.Entry) {
	if s.journalist != nil {
		s.journalist.amended <- e
	}
}

// leaveJournal notes that what the run has left is not to be ended by anybody.
// Of what follows only a refresh would say otherwise, so those have ended.
func (s *session) leaveJournal() {
	s.stopJournalist()
	if s.journalKept {
		return
	}
	if err := s.journal.Leave(); err != nil {
		s.log.WatchError(err)
	}
}

func (s *session) stopJournalist() {
	if s.journalist != nil {
		close(s.journalist.quit)
		<-s.journalist.done
		s.journalist = nil
	}
}
