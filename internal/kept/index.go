package kept

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cage/internal/record"
	"cage/internal/safefile"
	"cage/rules"
	"cage/snapshot"
)

// IndexName is the name of the document in a session's store that says what
// the displaced versions are.
const IndexName = "index.json"

// RecoveredSuffix ends the name of a store for what a recovery displaced.
const RecoveredSuffix = "-recovered"

// Index says what the displaced versions of one session are, or those that its
// recovery displaced.
type Index struct {
	Session   string
	Recovered bool
	Command   string
	// Watch says that the session was a watch, whose Command is the program it
	// lasted as long as, if any.
	Watch   bool
	Started time.Time
	Layout  rules.Layout
	// Records are in the order in which the versions were sealed.
	Records []Record
	// Untold counts versions past what an index holds.
	Untold int
	// Complete says that the session, or its recovery, came to its end.
	Complete bool
}

// Record is one displaced version.
type Record struct {
	// Path is where it stood; its Rel is empty where nobody knows.
	Path rules.Path
	// Info is what it was, and Attrs what extended attributes it had.
	Info  safefile.Info
	Attrs []safefile.Attr
	// Digest is zero where it was not read.
	Digest snapshot.Digest
	Spot   Spot
	// Before is what belonged there: kind, permissions, owner and digest. Its
	// kind is None where nothing did.
	Before snapshot.State
	// At is when it was displaced last, and Times how often the same was.
	At    time.Time
	Times int
}

// Room says in which kind of place a version lies.
type Room string

// The rooms.
const (
	Stored      Room = "store"
	Spared      Room = "spare"
	Quarantined Room = "quarantine"
	SetAside    Room = "beside"
)

// Spot is where a version lies: under a name in one of the session's folders,
// or beside its path.
type Spot struct {
	Room Room
	Name string
	Path rules.Path // of what was set aside
}

// mostRecords bounds an index: who fights without end displaces without end.
const mostRecords = 10_000

// indexBytes bounds what is read of an index: 64 MiB. A ledger stops long
// before that.
const (
	indexBytes  = 64 << 20
	ledgerBytes = 16 << 20
)

const indexSchema = "gantry.cage-displaced.v1"

// The records are what stands in the file. Names are bytes, which JSON carries
// as base64.

type indexRecord struct {
	Schema    string          `json:"schema"`
	Session   string          `json:"session"`
	Recovered bool            `json:"recovered"`
	Command   string          `json:"command"`
	Watch     bool            `json:"watch,omitempty"`
	Started   time.Time       `json:"started_at"`
	Root      []byte          `json:"root"`
	CommonDir []byte          `json:"common_dir"`
	GitDir    []byte          `json:"git_dir"`
	Versions  []versionRecord `json:"versions"`
	Untold    int             `json:"untold"`
	Complete  bool            `json:"complete"`
}

type versionRecord struct {
	Path   record.Path     `json:"path"`
	State  stateRecord     `json:"state"`
	Attrs  []safefile.Attr `json:"attrs"`
	Room   Room            `json:"room"`
	Name   string          `json:"name"`
	Aside  record.Path     `json:"aside"`
	Before stateRecord     `json:"before"`
	At     time.Time       `json:"at"`
	Times  int             `json:"times"`
}

type stateRecord struct {
	Kind   safefile.Kind `json:"kind"`
	Perm   uint32        `json:"perm"`
	UID    uint32        `json:"uid"`
	GID    uint32        `json:"gid"`
	Size   int64         `json:"size"`
	MTime  int64         `json:"mtime"`
	SHA256 string        `json:"sha256"`
}

// WriteIndex puts an index into a store, in one step. It is not forced to disk,
// as little as the versions are.
func WriteIndex(store string, x *Index) error {
	_, err := deliver(store,
		func(w io.Writer) error { return json.NewEncoder(w).Encode(x.record()) },
		func() string { return IndexName })
	if err != nil {
		return fmt.Errorf("write down what was displaced: %w", err)
	}
	return nil
}

func (x *Index) record() indexRecord {
	r := indexRecord{
		Schema: indexSchema, Session: x.Session, Recovered: x.Recovered, Command: x.Command, Watch: x.Watch, Started: x.Started,
		Root: []byte(x.Layout.Root), CommonDir: []byte(x.Layout.CommonDir), GitDir: []byte(x.Layout.GitDir),
		Untold: x.Untold, Complete: x.Complete,
	}
	for _, v := range x.Records {
		r.Versions = append(r.Versions, versionRecord{
			Path: record.PathOf(v.Path), State: newStateRecord(v.Info, v.Digest), Attrs: v.Attrs,
			Room: v.Spot.Room, Name: v.Spot.Name, Aside: record.PathOf(v.Spot.Path),
			Before: newStateRecord(v.Before.Info, v.Before.Digest), At: v.At, Times: v.Times,
		})
	}
	return r
}

func newStateRecord(info safefile.Info, digest snapshot.Digest) stateRecord {
	r := stateRecord{Kind: info.Kind, Perm: info.Perm, UID: info.UID, GID: info.GID, Size: info.Size, MTime: info.MTime}
	if digest != (snapshot.Digest{}) {
		r.SHA256 = digest.String()
	}
	return r
}

// ReadIndex reads the index of a store. Whoever runs as this user can have
// written it: all of it is checked, and it names nothing but names in the
// session's own folders and paths below the anchors. Where there is none the
// error is fs.ErrNotExist.
func ReadIndex(store string) (*Index, error) {
	data, err := readPrivate(store, IndexName, indexBytes)
	if err != nil {
		return nil, err
	}
	return decodeIndex(data, filepath.Base(store))
}

// decodeIndex reads the index of the store that is called folder.
func decodeIndex(data []byte, folder string) (*Index, error) {
	var r indexRecord
	if err := record.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("%s makes no sense: %w", IndexName, err)
	}
	x, err := r.index(folder)
	if err != nil {
		return nil, fmt.Errorf("%s makes no sense: %w", IndexName, err)
	}
	return x, nil
}

// readPrivate reads a file of a store if both are this user's alone.
func readPrivate(store, name string, limit int64) ([]byte, error) {
	folder, err := os.Lstat(store)
	if err != nil {
		return nil, err
	}
	if !folder.IsDir() || !mine(folder) {
		return nil, errors.New("the folder is not this user's alone")
	}
	root, err := os.OpenRoot(store)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return readIn(root, name, limit)
}

// readIn reads a regular file of this user's alone.
func readIn(root *os.Root, name string, limit int64) ([]byte, error) {
	// Opening something else than a file may wait, or have effects.
	info, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || !mine(info) {
		return nil, fmt.Errorf("%s is not a file of this user's alone", name)
	}
	f, err := root.OpenFile(name, os.O_RDONLY|noWaiting, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if opened, err := f.Stat(); err != nil || !os.SameFile(info, opened) {
		return nil, fmt.Errorf("%s was replaced meanwhile", name)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s is larger than %d bytes", name, limit)
	}
	return data, err
}

// index checks what was read from the store called folder.
func (r *indexRecord) index(folder string) (*Index, error) {
	want := r.Session
	if r.Recovered {
		want += RecoveredSuffix
	}
	layout := rules.Layout{Root: string(r.Root), CommonDir: string(r.CommonDir), GitDir: string(r.GitDir)}
	switch {
	case r.Schema != indexSchema:
		return nil, errors.New("it has another format")
	case !sessionName(r.Session) || folder != want:
		return nil, errors.New("it is about another session")
	case len(r.Versions) > mostRecords || r.Untold < 0:
		return nil, errors.New("it has more than an index holds")
	case !absolute(layout.Root) || layout.CommonDir != "" && !absolute(layout.CommonDir) || layout.GitDir != "" && !absolute(layout.GitDir):
		return nil, errors.New("its directories are not absolute")
	}
	x := &Index{
		Session: r.Session, Recovered: r.Recovered, Command: r.Command, Watch: r.Watch, Started: r.Started, Layout: layout,
		Untold: r.Untold, Complete: r.Complete,
	}
	for i := range r.Versions {
		record, err := r.Versions[i].version()
		if err != nil {
			return nil, fmt.Errorf("version %d: %w", i+1, err)
		}
		x.Records = append(x.Records, record)
	}
	return x, nil
}

func absolute(path string) bool { return filepath.IsAbs(path) && filepath.Clean(path) == path }

func (v *versionRecord) version() (Record, error) {
	path, err := v.Path.Read()
	if err != nil {
		return Record{}, err
	}
	aside, err := v.Aside.Read()
	if err != nil {
		return Record{}, err
	}
	info, digest, err := v.State.state()
	if err != nil {
		return Record{}, err
	}
	before, beforeDigest, err := v.Before.state()
	if err != nil {
		return Record{}, err
	}
	if !v.plausible(aside) || v.Times < 1 || info.Kind == safefile.None {
		return Record{}, errors.New("it lies nowhere")
	}
	if slices.ContainsFunc(v.Attrs, func(a safefile.Attr) bool { return !safefile.KeepsAttr(a.Name) }) {
		return Record{}, errors.New("an attribute belongs to the system")
	}
	return Record{
		Path: path, Info: info, Attrs: v.Attrs, Digest: digest,
		Spot:   Spot{Room: v.Room, Name: v.Name, Path: aside},
		Before: snapshot.State{Info: before, Digest: beforeDigest}, At: v.At, Times: v.Times,
	}, nil
}

// plausible reports whether the version's place is one that a Keeper gives.
func (v *versionRecord) plausible(aside rules.Path) bool {
	const address, token = 64, 32
	switch v.Room {
	case Stored, Spared:
		return len(v.Name) == address && isHex(v.Name)
	case Quarantined:
		return len(v.Name) == token && isHex(v.Name)
	case SetAside:
		return v.Name == "" && aside.Rel != ""
	}
	return false
}

func (r stateRecord) state() (safefile.Info, snapshot.Digest, error) {
	const permissions = 0o7777
	var digest snapshot.Digest
	if r.SHA256 != "" {
		if len(r.SHA256) != 2*len(digest) {
			return safefile.Info{}, digest, errors.New("a digest has not its length")
		}
		if _, err := hex.Decode(digest[:], []byte(r.SHA256)); err != nil {
			return safefile.Info{}, digest, err
		}
	}
	if r.Kind > safefile.Device || r.Perm&^permissions != 0 || r.Size < 0 {
		return safefile.Info{}, digest, errors.New("no file is like that")
	}
	return safefile.Info{Kind: r.Kind, Perm: r.Perm, UID: r.UID, GID: r.GID, Size: r.Size, MTime: r.MTime}, digest, nil
}

// Unusable is a store whose index cannot be used, and why.
type Unusable struct {
	Store string
	Err   error
}

// Indexes reads the index of every store in the folder that holds them, the
// oldest session first. Stores without one are left out.
func Indexes(sessions string) ([]*Index, []Unusable, error) {
	entries, err := os.ReadDir(sessions)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	var found []*Index
	var unusable []Unusable
	for _, entry := range entries {
		if !sessionName(strings.TrimSuffix(entry.Name(), RecoveredSuffix)) {
			continue
		}
		store := filepath.Join(sessions, entry.Name())
		x, err := ReadIndex(store)
		switch {
		case err == nil:
			found = append(found, x)
		case !errors.Is(err, fs.ErrNotExist):
			unusable = append(unusable, Unusable{Store: store, Err: err})
		}
	}
	slices.SortStableFunc(found, func(a, b *Index) int { return a.Started.Compare(b.Started) })
	return found, unusable, nil
}

// ListCopies adds the copies in a folder that the index does not name: whoever
// made them was killed before it was written. Nobody knows where they stood, nor
// whose they were. What cannot be read is no copy.
func (x *Index) ListCopies(folder string, room Room) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return // there is none
	}
	named := make(map[string]bool)
	for _, record := range x.Records {
		if record.Spot.Room == room {
			named[record.Spot.Name] = true
		}
	}
	for _, entry := range entries {
		if entry.Name() == IndexName || strings.HasPrefix(entry.Name(), incoming) || named[entry.Name()] {
			continue
		}
		record, err := copyRecord(folder, entry.Name(), room)
		switch {
		case err != nil:
		case len(x.Records) >= mostRecords:
			x.Untold++
		default:
			x.Records = append(x.Records, record)
		}
	}
}

// copyRecord is the record of a copy by what it is alone.
func copyRecord(folder, name string, room Room) (Record, error) {
	place := filepath.Join(folder, name)
	info, err := os.Lstat(place)
	if err != nil {
		return Record{}, err
	}
	data, err := ReadCopy(place, copyBudget)
	if err != nil {
		return Record{}, err
	}
	return Record{
		Info: safefile.Info{
			Kind: safefile.Regular, Perm: uint32(info.Mode().Perm()), UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()),
			Size: int64(len(data)), MTime: info.ModTime().UnixNano(),
		},
		Digest: snapshot.DigestOf(data), Spot: Spot{Room: room, Name: name}, At: info.ModTime(), Times: 1,
	}, nil
}

// ReadCopy reads a copy of at most limit bytes from a store, where its name is
// the address of its content.
func ReadCopy(place string, limit int64) ([]byte, error) {
	folder, name := filepath.Split(place)
	data, err := readPrivate(filepath.Clean(folder), name, limit)
	if err == nil && snapshot.IDOf(data).String() != name {
		err = errors.New("it does not have the content that its name stands for")
	}
	return data, err
}
