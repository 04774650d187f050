package journal

import (
	"os"
	"slices"
	"time"

	"cage/internal/proc"
	"cage/internal/record"
	"cage/internal/safefile"
	"cage/rules"
	"cage/snapshot"
)

// version is the format that this program writes and reads.
const version = 1

// The records are what stands in the JSON files. No path in them is absolute.

type sessionRecord struct {
	Version int           `json:"version"`
	Session string        `json:"session"`
	Started time.Time     `json:"started"`
	Cage    processRecord `json:"cage"`
	Host    hostRecord    `json:"host"`
	// Folder is the inode number of the folder that the journal was written
	// into: a copy has another.
	Folder uint64 `json:"folder"`
	// Anchors are the inode numbers of the directories that paths are relative
	// to. What git says of them can have been the session's doing.
	Anchors map[string]uint64 `json:"anchors"`
}

type hostRecord struct {
	Machine string `json:"machine"`
	Boot    string `json:"boot"`
	PIDs    uint64 `json:"pid_namespace"`
}

type processRecord struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
}

func newProcessRecord(id proc.ID) processRecord { return processRecord{PID: id.PID, Start: id.Start} }

func (p processRecord) id() proc.ID { return proc.ID{PID: p.PID, Start: p.Start} }

// lifeRecord is what changes while the session runs.
type lifeRecord struct {
	LastSign  time.Time       `json:"last_sign"`
	Processes []processRecord `json:"processes"`
	// Leaves says that they are not to be ended.
	Leaves bool `json:"leaves"`
	// Ended says that the session is over, at the last sign.
	Ended   bool        `json:"ended"`
	Amended []amendment `json:"amended"`
	// Recovering is when a recovery last began to put files back.
	Recovering time.Time `json:"recovering"`
}

// amendment is an entry whose baseline changed, with its content.
type amendment struct {
	Entry   entryRecord `json:"entry"`
	Content []byte      `json:"content"`
}

type baselineRecord struct {
	Rules       rulesRecord       `json:"rules"`
	Entries     []entryRecord     `json:"entries"`
	Directories []directoryRecord `json:"directories"`
	Packed      []packedRecord    `json:"packed"`
}

// packedRecord is one content in the pack; they follow each other there.
type packedRecord struct {
	ID   snapshot.ID `json:"id"`
	Size int64       `json:"size"`
}

type rulesRecord struct {
	DotGitFile   bool          `json:"dot_git_file"`
	Hooks        *record.Path  `json:"hooks"`
	Includes     []record.Path `json:"includes"`
	Config       fileRecord    `json:"config"`
	ManifestYAML fileRecord    `json:"manifest_yaml"`
	ManifestJSON fileRecord    `json:"manifest_json"`
	Overrides    [][]byte      `json:"overrides"`
	Exempt       []record.Path `json:"exempt"`
	Elsewhere    bool          `json:"common_guarded_elsewhere"`
	Joined       []record.Path `json:"joined"`
}

type fileRecord struct {
	Present bool   `json:"present"`
	Data    []byte `json:"data"`
}

type infoRecord struct {
	Kind  safefile.Kind `json:"kind"`
	Perm  uint32        `json:"perm"`
	UID   uint32        `json:"uid"`
	GID   uint32        `json:"gid"`
	Size  int64         `json:"size"`
	MTime int64         `json:"mtime"`
	Nlink uint64        `json:"nlink"`
	Dev   uint64        `json:"dev"`
	Ino   uint64        `json:"ino"`
}

type directoryRecord struct {
	Path record.Path `json:"path"`
	Info infoRecord  `json:"info"`
}

type entryRecord struct {
	Path         record.Path     `json:"path"`
	Info         infoRecord      `json:"info"`
	Attrs        []safefile.Attr `json:"attrs"`
	Link         []byte          `json:"link"`
	Content      snapshot.ID     `json:"content"`
	Digest       []byte          `json:"digest"`
	Kept         bool            `json:"kept"`
	MetadataOnly bool            `json:"metadata_only"`
}

// anchorInodes looks up the directories of a layout.
func anchorInodes(layout rules.Layout) (map[string]uint64, error) {
	inodes := make(map[string]uint64)
	for _, anchor := range rules.Anchors() {
		dir := layout.Dir(anchor)
		if dir == "" {
			continue
		}
		info, err := os.Stat(dir)
		if err != nil {
			return nil, err
		}
		inode, _ := inodeOfInfo(info)
		inodes[record.AnchorName(anchor)] = inode.Ino
	}
	return inodes, nil
}

func pathsOf(paths []rules.Path) []record.Path {
	records := make([]record.Path, 0, len(paths))
	for _, p := range paths {
		if p.Anchor != rules.Outside { // link targets outside are only reported
			records = append(records, record.PathOf(p))
		}
	}
	return records
}

func newInfoRecord(i safefile.Info) infoRecord {
	return infoRecord{
		Kind: i.Kind, Perm: i.Perm, UID: i.UID, GID: i.GID, Size: i.Size, MTime: i.MTime,
		Nlink: i.Nlink, Dev: i.Inode.Dev, Ino: i.Inode.Ino,
	}
}

func (r infoRecord) info() safefile.Info {
	return safefile.Info{
		Kind: r.Kind, Perm: r.Perm, UID: r.UID, GID: r.GID, Size: r.Size, MTime: r.MTime,
		Nlink: r.Nlink, Inode: safefile.Inode{Dev: r.Dev, Ino: r.Ino},
	}
}

func newEntryRecord(e *snapshot.Entry) entryRecord {
	return entryRecord{
		Path: record.PathOf(e.Path), Info: newInfoRecord(e.State.Info), Attrs: e.State.Attrs,
		Link: []byte(e.State.Link), Content: e.State.Content, Digest: e.State.Digest[:],
		Kept: e.Kept, MetadataOnly: e.MetadataOnly,
	}
}

func newFileRecord(f rules.File) fileRecord { return fileRecord{Present: f.Present, Data: f.Data} }

func (f fileRecord) file() rules.File { return rules.File{Present: f.Present, Data: f.Data} }

func newRulesRecord(r Rules) rulesRecord {
	out := rulesRecord{
		DotGitFile: r.Git.DotGitFile, Includes: pathsOf(r.Git.Includes),
		Config: newFileRecord(r.Config), ManifestYAML: newFileRecord(r.ManifestYAML), ManifestJSON: newFileRecord(r.ManifestJSON),
		Exempt: pathsOf(r.Exempt), Joined: pathsOf(r.Joined),
		Elsewhere: slices.Contains(r.Elsewhere, rules.CommonDir),
	}
	if r.Git.Hooks != nil {
		hooks := record.PathOf(*r.Git.Hooks)
		out.Hooks = &hooks
	}
	for _, override := range r.Overrides {
		out.Overrides = append(out.Overrides, []byte(override))
	}
	return out
}

func newBaselineRecord(r Record, packed []packedRecord) baselineRecord {
	out := baselineRecord{Rules: newRulesRecord(r.Rules), Packed: packed}
	for _, p := range r.Manifest.Paths() {
		if e, _ := r.Manifest.Entry(p); p.Anchor != rules.Outside {
			out.Entries = append(out.Entries, newEntryRecord(e))
		}
	}
	for _, p := range r.Manifest.Directories() {
		info, _ := r.Manifest.Directory(p)
		out.Directories = append(out.Directories, directoryRecord{Path: record.PathOf(p), Info: newInfoRecord(info)})
	}
	return out
}
