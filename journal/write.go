package journal

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cage/internal/proc"
	"cage/internal/safefile"
	"cage/internal/tempdir"
	"cage/snapshot"
)

// Write writes the whole journal of this session in the place of whatever the
// folder held. When it returns the journal survives a power cut.
func (j *Journal) Write(r Record) error {
	j.record = r
	var err error
	if j.anchors, err = anchorInodes(r.Layout); err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	if err := j.writeAll(time.Now()); err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	return nil
}

// writeAll writes every part; the session record, which makes them a journal,
// comes last.
func (j *Journal) writeAll(now time.Time) error {
	if err := j.clear(); err != nil {
		return err
	}
	j.generation = 1
	if err := j.commit(durable, func(b *batch) error {
		packed, err := addPack(b, j.record.Manifest, j.record.Store)
		if err != nil {
			return err
		}
		if err := b.addPair(baselineName, newBaselineRecord(j.record, packed)); err != nil {
			return err
		}
		if err := b.addPair(lifeName(j.generation), j.life(now)); err != nil {
			return err
		}
		b.then()
		return b.addPair(sessionName, sessionRecord{
			Version: version, Session: j.record.Session, Started: j.record.Started,
			Cage: newProcessRecord(j.host.self), Host: j.host.record(), Folder: j.inode.Ino, Anchors: j.anchors,
		})
	}); err != nil {
		return err
	}
	var err error
	if j.written, err = j.look(parts()...); err != nil {
		return err
	}
	return j.signedAt(now)
}

// signedAt notes that the present generation holds a sign of life.
func (j *Journal) signedAt(now time.Time) (err error) {
	j.signed = now
	j.newest, err = j.look(lifeName(j.generation), sidecar(lifeName(j.generation)))
	return err
}

// commit writes a batch of files, all or none.
func (j *Journal) commit(how durability, fill func(*batch) error) error {
	b := &batch{dir: j.dir}
	defer b.discard()
	if err := fill(b); err != nil {
		return err
	}
	return b.commit(how)
}

// clear removes an earlier journal from the folder, but not the lock. What does
// not belong there is moved out of it, whole.
func (j *Journal) clear() error {
	if info, err := j.dir.Lstat(sessionName); err == nil && !info.IsDir() {
		if err := j.dir.Remove(sessionName); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	others, err := j.held.Empty(func(name string) bool { return name != lockName && ours(name) })
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range others {
		if name != lockName {
			errs = append(errs, j.noteFound(j.held.SetAside(name)))
		}
	}
	return errors.Join(errs...)
}

// noteFound notes where something was moved that somebody had put there.
func (j *Journal) noteFound(place string, err error) error {
	if place != "" {
		j.found = append(j.found, place)
	}
	return err
}

// parts are the parts that never change.
func parts() []string {
	return []string{packName, baselineName, sidecar(baselineName), sessionName, sidecar(sessionName), lockName}
}

// look returns what files look like on disk.
func (j *Journal) look(names ...string) (map[string]trace, error) {
	seen := make(map[string]trace)
	for _, name := range names {
		info, err := j.dir.Lstat(name)
		if err != nil {
			return nil, err
		}
		seen[name] = traceOf(info)
	}
	return seen, nil
}

// stand reports whether files look on disk as they did.
func (j *Journal) stand(was map[string]trace) bool {
	now, err := j.look(slices.Collect(maps.Keys(was))...)
	return err == nil && maps.Equal(was, now)
}

// signEvery is how often a session in which nothing happens gives a sign of
// life. To write one every second would never let the disk rest, and whoever
// reads it thinks in minutes.
const signEvery = 10 * time.Second

// Refresh writes which processes the session has now, which is a sign of life
// too; where they are the same, only from time to time. It reports whether the
// journal was written anew because somebody removed or changed it. Where it is
// only out of date, because the disk is full, it stays as it is.
func (j *Journal) Refresh(processes []proc.ID) (mended bool, err error) {
	news := !slices.Equal(j.processes, processes)
	j.processes = processes
	if j.intact() {
		if !news && time.Since(j.signed) < signEvery && j.stand(j.newest) {
			return false, nil
		}
		err := j.writeGeneration(time.Now(), cached)
		if err == nil {
			return false, nil
		}
		if j.intact() {
			return false, fmt.Errorf("write the journal: %w", err)
		}
	}
	if err := j.mend(); err != nil {
		return false, fmt.Errorf("write the journal again: %w", err)
	}
	return true, nil
}

// Folder is where the journal lies.
func (j *Journal) Folder() string { return j.folder }

// Ensure returns nil where the whole journal is on disk, and writes it again
// where somebody removed or changed it. One that cannot be written again may lie
// whole where its folder was moved to.
func (j *Journal) Ensure() error {
	if j.intact() {
		return nil
	}
	if err := j.mend(); err != nil && !(j.stand(j.written) && !j.crowded()) {
		return fmt.Errorf("write the journal again: %w", err)
	}
	return nil
}

// Leave notes that nobody is to end what the session has left.
func (j *Journal) Leave() error {
	j.leaves = true
	if err := j.writeGeneration(time.Now(), cached); err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	return nil
}

// End notes that the session has ended and leaves its journal. The life record
// before the newest makes room for that on a full disk.
func (j *Journal) End() error {
	j.ended = true
	err := removePair(j.dir, lifeName(j.generation-1))
	if err == nil {
		err = j.writeGeneration(time.Now(), cached)
	}
	if err != nil {
		return fmt.Errorf("note the end in the journal: %w", err)
	}
	return nil
}

// Amend notes an entry whose baseline changed while the session runs.
func (j *Journal) Amend(e *snapshot.Entry) error {
	j.amendments[e.Path] = e
	if err := j.writeGeneration(time.Now(), durable); err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	return nil
}

// intact reports whether the folder and the parts that never change are those
// that were written, and nothing lies beside them: whoever reads the journal
// would trust none of it otherwise.
func (j *Journal) intact() bool {
	info, err := os.Lstat(j.folder)
	if err != nil || !sameInode(info, j.inode) || private(j.folder) != nil {
		return false
	}
	return j.stand(j.written) && !j.crowded()
}

// crowded reports whether the folder holds something that this session did not
// write. Where it cannot be listed nothing is known of that.
func (j *Journal) crowded() bool {
	names, err := j.names()
	if err != nil {
		var stranger *strangerError
		return errors.As(err, &stranger)
	}
	for _, name := range names {
		if n, ok := generationOf(strings.TrimSuffix(name, sideSuffix)); ok && n != j.generation && n != j.generation-1 {
			return true
		}
	}
	return false
}

// mend writes everything anew, in the folder that has its name.
func (j *Journal) mend() error {
	if err := j.retake(); err != nil {
		return err
	}
	return j.writeAll(time.Now())
}

// retake makes the folder again where it is gone or another one, and takes its
// lock. What is left of the journal in one that was moved away is removed.
func (j *Journal) retake() error {
	stands := j.held.Stands()
	if stands {
		if err := j.makeFit(); err != nil {
			return err
		}
		if isAt(j.lock, filepath.Join(j.folder, lockName)) {
			return nil
		}
	} else if err := j.makeWay(); err != nil {
		return err
	}
	old := *j
	if err := j.open(); err != nil {
		return err
	}
	var err error
	if !stands && old.holdsLock() {
		err = old.vanish()
		j.found = old.found
	}
	return errors.Join(err, old.Close())
}

// makeFit takes from the folder what would have it refused as nobody's.
func (j *Journal) makeFit() error {
	if err := j.held.MakePrivate(); err != nil {
		return err
	}
	info, err := j.dir.Lstat(lockName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil || privateFile(info) == nil:
		return err
	case info.IsDir():
		return j.noteFound(j.held.SetAside(lockName))
	}
	return j.dir.Remove(lockName)
}

// makeWay makes room for the folder where something else stands in its place. A
// folder that can only be a journal may stay, and be taken: makeFit's work is
// done on it then. Another session's stays, and so does everything where not even
// the directory above is the one of the start: that is somebody else's ground.
func (j *Journal) makeWay() error {
	info, err := os.Lstat(j.folder)
	missing := errors.Is(err, fs.ErrNotExist)
	if inTemp := filepath.Base(j.folder) != folderName; j.held.Moved() && !(missing && inTemp) {
		return fmt.Errorf("%s: %w", filepath.Dir(j.folder), errMoved)
	}
	if missing {
		return nil
	}
	if err != nil {
		return err
	}
	if info.IsDir() {
		is, err := j.judge()
		switch {
		case err != nil:
			return err
		case is == anothers:
			return fmt.Errorf("%s: %w", j.folder, errAnothers)
		case is == takeable:
			return nil
		}
	}
	return j.noteFound(j.held.SetPlaceAside())
}

// removeReplacement removes what stands in the place of the folder, where it can
// only be a journal or holds nothing.
func (j *Journal) removeReplacement() error {
	info, err := os.Lstat(j.folder)
	if err != nil {
		return nil // nothing that can be reached stands there
	}
	moved := j.held.Moved()
	switch {
	case moved:
		return fmt.Errorf("%s stays: %w", j.folder, errMoved)
	case !info.IsDir() && tempdir.HoldsNothing(info):
		return os.Remove(j.folder)
	case !info.IsDir():
		return fmt.Errorf("%s stays: %w", j.folder, errForeign)
	}
	is, err := j.judge()
	switch {
	case err != nil:
		return err
	case is == anothers:
		return fmt.Errorf("%s stays: %w", j.folder, errAnothers)
	case is == foreign:
		return fmt.Errorf("%s stays: %w", j.folder, errForeign)
	}
	there := &Journal{folder: j.folder, host: j.host}
	if err := there.open(); err != nil {
		return err
	}
	return errors.Join(there.vanish(), there.Close())
}

var (
	errMoved    = errors.New("another directory stands in the place of the one that the journal was written in")
	errAnothers = errors.New("another session's journal stands in its place")
	errForeign  = errors.New("something else stands in its place")
)

// standing says what a folder is that stands in the place of the journal's.
type standing int

const (
	// takeable holds nothing but plain files with the names of a journal's, and
	// no session's record but this one's.
	takeable standing = iota
	anothers
	foreign
)

// judge says what the folder is that stands in the place of this one. One that
// can be taken is made fit for that.
func (j *Journal) judge() (standing, error) {
	held, err := tempdir.Hold(j.folder)
	if err != nil {
		return foreign, err
	}
	defer held.Close()
	dir := held.Dir()
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return foreign, err
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !ours(entry.Name()) {
			return foreign, nil
		}
	}
	if _, err := dir.Lstat(sessionName); err == nil {
		var record sessionRecord
		if err := readPair(dir, sessionName, &record); err != nil {
			return foreign, nil
		}
		if record.Session != j.record.Session {
			return anothers, nil
		}
	}
	there := &Journal{folder: j.folder, held: held, dir: dir}
	return takeable, there.makeFit()
}

// writeGeneration writes what changes under the next number and removes what
// came before the last one: a power cut may tear the newest, which was not
// forced to disk, and then the one before it counts.
func (j *Journal) writeGeneration(now time.Time, how durability) error {
	next := j.generation + 1
	if err := j.commit(how, func(b *batch) error { return b.addPair(lifeName(next), j.life(now)) }); err != nil {
		return err
	}
	j.generation = next
	if err := j.signedAt(now); err != nil || next <= 2 {
		return err
	}
	return removePair(j.dir, lifeName(next-2))
}

// BeginRecovery notes in what an earlier session left that its files are put
// back from now on: if that is interrupted, its own doing must not pass for
// somebody's later work.
func (j *Journal) BeginRecovery(left *Interrupted) error {
	life := left.life
	life.Recovering = time.Now()
	err := j.commit(cached, func(b *batch) error { return b.addPair(lifeName(left.generation+1), life) })
	if err == nil && left.generation > 1 {
		err = removePair(j.dir, lifeName(left.generation-1))
	}
	if err != nil {
		return fmt.Errorf("note the recovery in the journal: %w", err)
	}
	return nil
}

// life is what changes while the session runs, as of now.
func (j *Journal) life(now time.Time) lifeRecord {
	record := lifeRecord{LastSign: now, Processes: make([]processRecord, 0, len(j.processes)), Leaves: j.leaves, Ended: j.ended}
	for _, id := range j.processes {
		record.Processes = append(record.Processes, newProcessRecord(id))
	}
	for _, e := range j.amendments {
		content, _ := j.record.Store.Get(e.State.Content)
		record.Amended = append(record.Amended, amendment{Entry: newEntryRecord(e), Content: content})
	}
	return record
}

// addPack writes the content of every kept entry, each once, and returns what
// lies in it, in order.
func addPack(b *batch, m *snapshot.Manifest, store *snapshot.Store) ([]packedRecord, error) {
	var packed []packedRecord
	err := b.add(packName, func(f *os.File) error {
		w := bufio.NewWriterSize(f, 1<<20)
		seen := make(map[snapshot.ID]bool)
		for _, p := range m.Paths() {
			e, _ := m.Entry(p)
			if !e.Kept || seen[e.State.Content] {
				continue
			}
			seen[e.State.Content] = true
			content, ok := store.Get(e.State.Content)
			if !ok {
				return fmt.Errorf("the content of %q is not in the store", p.Rel)
			}
			if _, err := w.Write(content); err != nil {
				return err
			}
			packed = append(packed, packedRecord{ID: e.State.Content, Size: int64(len(content))})
		}
		return w.Flush()
	})
	return packed, err
}

func sameInode(info os.FileInfo, inode safefile.Inode) bool {
	is, ok := inodeOfInfo(info)
	return ok && is == inode
}
