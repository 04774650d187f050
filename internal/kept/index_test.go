//go:build linux || darwin || freebsd || netbsd || openbsd

package kept

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"cage/internal/safefile"
	"cage/rules"
	"cage/snapshot"
)

// sample is an index with a version in every room.
func sample() *Index {
	address, token := strings.Repeat("ab", 32), strings.Repeat("cd", 16)
	state := func(kind safefile.Kind, content string) snapshot.State {
		return snapshot.State{
			Info:   safefile.Info{Kind: kind, Perm: 0o4755, UID: 1, GID: 2, Size: 3, MTime: 4},
			Digest: snapshot.DigestOf([]byte(content)),
		}
	}
	record := func(path rules.Path, spot Spot, before snapshot.State) Record {
		s := state(safefile.Regular, "evil")
		return Record{Path: path, Info: s.Info, Digest: s.Digest, Spot: spot, Before: before, At: time.Unix(1, 2).UTC(), Times: 1}
	}
	x := &Index{
		Session: session, Command: "sh", Watch: true, Started: time.Unix(3, 4).UTC(), Complete: true, Untold: 5,
		Layout: rules.Layout{Root: "/r\xff", CommonDir: "/r\xff/.git", GitDir: "/g"},
		Records: []Record{
			record(rules.Path{Rel: "a\n\xff/.env"}, Spot{Room: Stored, Name: address}, state(safefile.Regular, "A")),
			record(rules.Path{Anchor: rules.CommonDir, Rel: "config"}, Spot{Room: Spared, Name: address}, snapshot.State{}),
			record(rules.Path{Anchor: rules.GitDir, Rel: "hooks/x"}, Spot{Room: Quarantined, Name: token}, state(safefile.Symlink, "B")),
			record(rules.Path{Anchor: rules.HooksDir, Rel: "x"}, Spot{Room: SetAside, Path: rules.Path{Rel: token + "/.git/" + token}}, state(safefile.Directory, "")),
			record(rules.Path{}, Spot{Room: Quarantined, Name: token}, snapshot.State{}),
		},
	}
	x.Records[0].Attrs = []safefile.Attr{{Name: "user.note", Value: []byte("\xffhello")}}
	x.Records[2].Digest = snapshot.Digest{}
	return x
}

func storeOf(t testing.TB) string { return filepath.Join(t.TempDir(), session) }

// Promise: what is written is what is read, bytes of names and all.
func TestIndexRoundTrip(t *testing.T) {
	store := storeOf(t)
	if _, err := ReadIndex(store); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without one: %v", err)
	}
	want := sample()
	if err := WriteIndex(store, want); err != nil {
		t.Fatal(err)
	}
	got, err := ReadIndex(store)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, want %+v", got, want)
	}
	if info, err := os.Stat(filepath.Join(store, IndexName)); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v (%v)", info.Mode(), err)
	}
	found, unusable, err := Indexes(filepath.Dir(store))
	if err != nil || len(unusable) > 0 || len(found) != 1 {
		t.Errorf("%v %v (%v)", found, unusable, err)
	}
}

// Promise: an index that names anything but what a keeper and a ledger give is
// refused as a whole.
func TestForgedIndex(t *testing.T) {
	for name, forge := range map[string]func(*indexRecord){
		"format":               func(r *indexRecord) { r.Schema += "x" },
		"another session":      func(r *indexRecord) { r.Session = "fedcba9876543210" },
		"a name for a session": func(r *indexRecord) { r.Session = "../" + session },
		"a recovery's":         func(r *indexRecord) { r.Recovered = true },
		"relative root":        func(r *indexRecord) { r.Root = []byte("r") },
		"no root":              func(r *indexRecord) { r.Root = nil },
		"root with dots":       func(r *indexRecord) { r.Root = []byte("/r/../etc") },
		"relative git dir":     func(r *indexRecord) { r.CommonDir = []byte("r") },
		"negative count":       func(r *indexRecord) { r.Untold = -1 },
		"path that leaves":     func(r *indexRecord) { r.Versions[0].Path.Rel = []byte("../etc/passwd") },
		"path that comes back": func(r *indexRecord) { r.Versions[0].Path.Rel = []byte("a/../b") },
		"absolute path":        func(r *indexRecord) { r.Versions[0].Path.Rel = []byte("/etc/passwd") },
		"path with a NUL":      func(r *indexRecord) { r.Versions[0].Path.Rel = []byte("a\x00b") },
		"path spelled twice":   func(r *indexRecord) { r.Versions[0].Path.Rel = []byte("a//b") },
		"anywhere":             func(r *indexRecord) { r.Versions[0].Path.Anchor = "outside" },
		"no anchor":            func(r *indexRecord) { r.Versions[0].Path.Anchor = "" },
		"room":                 func(r *indexRecord) { r.Versions[0].Room = "elsewhere" },
		"name in the store":    func(r *indexRecord) { r.Versions[0].Name = "../../../etc/passwd" },
		"short name":           func(r *indexRecord) { r.Versions[0].Name = "ab" },
		"name in quarantine":   func(r *indexRecord) { r.Versions[2].Name = "../config" },
		"beside the root":      func(r *indexRecord) { r.Versions[3].Aside.Rel = []byte("../x") },
		"beside nothing":       func(r *indexRecord) { r.Versions[3].Aside.Rel = nil },
		"nothing":              func(r *indexRecord) { r.Versions[0].State.Kind = safefile.None },
		"no kind":              func(r *indexRecord) { r.Versions[0].State.Kind = 77 },
		"mode":                 func(r *indexRecord) { r.Versions[0].State.Perm = 0o100644 },
		"size":                 func(r *indexRecord) { r.Versions[0].State.Size = -1 },
		"digest":               func(r *indexRecord) { r.Versions[0].State.SHA256 = "ab" },
		"digest of no hex":     func(r *indexRecord) { r.Versions[0].Before.SHA256 = strings.Repeat("z", 64) },
		"attribute": func(r *indexRecord) {
			r.Versions[0].Attrs = []safefile.Attr{{Name: "security.capability", Value: []byte("x")}}
		},
		"never": func(r *indexRecord) { r.Versions[0].Times = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			record := sample().record()
			forge(&record)
			data, err := json.Marshal(record)
			if err != nil {
				t.Fatal(err)
			}
			unfit(t, data)
		})
	}
	good, err := json.Marshal(sample().record())
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{
		"nothing": "", "half": string(good[:len(good)/2]), "two": string(good) + "{}", "list": "[]",
		"new field": `{"more": 1, ` + string(good[1:]),
		"too many":  strings.Replace(string(good), `"versions":[`, `"versions":[`+strings.Repeat("{},", mostRecords), 1),
	} {
		t.Run(name, func(t *testing.T) { unfit(t, []byte(data)) })
	}
}

func unfit(t *testing.T, data []byte) {
	t.Helper()
	store := storeOf(t)
	put(t, store, data)
	if x, err := ReadIndex(store); err == nil {
		t.Errorf("taken as %+v", x)
	}
	found, unusable, err := Indexes(filepath.Dir(store))
	if err != nil || len(found) > 0 || len(unusable) != 1 || unusable[0].Store != store {
		t.Errorf("%v %v (%v)", found, unusable, err)
	}
}

func put(t testing.TB, store string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(store, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(store, IndexName), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Promise: an index, or a copy, that others can write, or that is no file, is
// not read, nor waited for.
func TestIndexOfOthers(t *testing.T) {
	content := []byte("evil")
	name := snapshot.IDOf(content).String()
	for what, spoil := range map[string]func(store, file string) error{
		"folder open to others": func(store, _ string) error { return os.Chmod(store, 0o750) },
		"file open to others":   func(_, file string) error { return os.Chmod(file, 0o644) },
		"link": func(_, file string) error {
			return errors.Join(os.Rename(file, file+".real"), os.Symlink(file+".real", file))
		},
		"link for the folder": func(store, _ string) error {
			return errors.Join(os.Rename(store, store+".real"), os.Symlink(store+".real", store))
		},
		"directory": func(_, file string) error { return errors.Join(os.Remove(file), os.Mkdir(file, 0o700)) },
		"fifo":      func(_, file string) error { return errors.Join(os.Remove(file), mkfifo(file)) },
	} {
		t.Run(what, func(t *testing.T) {
			store := storeOf(t)
			if err := WriteIndex(store, sample()); err != nil {
				t.Fatal(err)
			}
			if err := spoil(store, filepath.Join(store, IndexName)); err != nil {
				t.Fatal(err)
			}
			if _, err := ReadIndex(store); err == nil || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the index: %v", err)
			}
			store = storeOf(t)
			place := filepath.Join(store, name)
			if err := errors.Join(os.Mkdir(store, 0o700), os.WriteFile(place, content, 0o600)); err != nil {
				t.Fatal(err)
			}
			if data, err := ReadCopy(place, 4); err != nil || string(data) != "evil" {
				t.Fatalf("%q (%v)", data, err)
			}
			if err := spoil(store, place); err != nil {
				t.Fatal(err)
			}
			if data, err := ReadCopy(place, 4); err == nil {
				t.Errorf("the copy: %q", data)
			}
		})
	}
	store := storeOf(t)
	place := filepath.Join(store, name)
	if err := errors.Join(os.Mkdir(store, 0o700), os.WriteFile(place, []byte("eviL"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int64{3, 4} {
		if data, err := ReadCopy(place, limit); err == nil {
			t.Errorf("with another content: %q", data)
		}
	}
}

// Promise: a ledger notes every version that lies somewhere, the same once, and
// stops growing.
func TestLedger(t *testing.T) {
	s := newScene(t)
	about := Index{Session: session, Layout: rules.Layout{Root: "/r", CommonDir: s.options.GitDir.Path()}}
	l := NewLedger(s.options, about)
	s.must(l.Write(true))
	if _, err := os.Lstat(s.options.Store); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a store was made for nothing: %v", err)
	}
	address, token := strings.Repeat("ab", 32), strings.Repeat("cd", 16)
	file := safefile.Info{Kind: safefile.Regular, Perm: 0o644}
	note := func(path, place string) {
		l.Note(Sealed{Path: rules.Path{Rel: path}, Info: file, Place: place, Digest: snapshot.DigestOf([]byte(place))}, snapshot.State{}, time.Unix(9, 0))
	}
	note("dropped", "")
	note("outside", "/elsewhere/x")
	note("a", filepath.Join(s.options.Store, address))
	note("a", filepath.Join(s.options.Store, address))
	note("b", filepath.Join(s.options.Spare, address))
	note("c", filepath.Join(s.quarantine(), token))
	note("d", "/r/"+token+"/.git/"+token)
	s.must(l.Write(false))
	x, err := ReadIndex(s.options.Store)
	s.must(err)
	var rooms []string
	for _, r := range x.Records {
		rooms = append(rooms, r.Path.Rel+" "+string(r.Spot.Room))
	}
	if want := "a store, b spare, c quarantine, d beside"; strings.Join(rooms, ", ") != want || x.Complete {
		t.Errorf("%s, complete: %v; want %s", strings.Join(rooms, ", "), x.Complete, want)
	}
	if x.Records[0].Times != 2 {
		t.Errorf("%d times", x.Records[0].Times)
	}

	l = NewLedger(s.options, about) // goes on
	s.must(l.Write(true))
	if x, err = ReadIndex(s.options.Store); err != nil || len(x.Records) != 4 || !x.Complete {
		t.Errorf("%+v (%v)", x, err)
	}
	for i := range mostRecords {
		l.Note(Sealed{Info: file, Place: filepath.Join(s.options.Store, address), Path: rules.Path{Rel: "a" + strings.Repeat("x", i%100) + "/" + string(rune('a'+i%26)) + time.Duration(i).String()}}, snapshot.State{}, time.Unix(9, 0))
	}
	if told := len(l.index.Records); told != mostRecords || l.index.Untold != 4 {
		t.Errorf("%d records, %d untold", told, l.index.Untold)
	}
	l = NewLedger(Options{Store: storeOf(t)}, about)
	const few = 20
	for i := range few {
		large := safefile.Attr{Name: "user.large", Value: make([]byte, ledgerBytes/(few/2))}
		l.Note(Sealed{Info: file, Attrs: []safefile.Attr{large}, Place: "/r/" + address, Path: rules.Path{Rel: string(rune('a' + i))}}, snapshot.State{}, time.Unix(9, 0))
	}
	if told := len(l.index.Records); told == 0 || told > few/2 || told+l.index.Untold != few {
		t.Errorf("%d records, %d untold", told, l.index.Untold)
	}
	s.must(Prune(filepath.Dir(s.options.Store), time.Now().Add(2*keepFor)))
	if _, err := os.Lstat(s.options.Store); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is not pruned: %v", err)
	}
}

// What could not be written down is written when it can be.
func TestLedgerTriesAgain(t *testing.T) {
	s := newScene(t)
	block(s, s.options.Store)
	l := NewLedger(s.options, Index{Session: session, Layout: rules.Layout{Root: "/r"}})
	file := safefile.Info{Kind: safefile.Regular, Perm: 0o644}
	l.Note(Sealed{Path: rules.Path{Rel: "a"}, Info: file, Place: filepath.Join(s.options.Store, strings.Repeat("ab", 32))}, snapshot.State{}, time.Unix(9, 0))
	if err := l.Write(false); err == nil {
		t.Fatal("nothing is said")
	}
	if err := l.Write(false); err != nil {
		t.Errorf("it is said again: %v", err)
	}
	if err := l.Write(true); err == nil {
		t.Error("nothing is said in the end")
	}
	s.must(os.Remove(filepath.Dir(s.options.Store)))
	s.must(l.Write(false))
	if x, err := ReadIndex(s.options.Store); err != nil || len(x.Records) != 1 {
		t.Errorf("%+v (%v)", x, err)
	}
}

// An index that cannot be written is not taken for a version that is lost.
func TestIndexUnwritable(t *testing.T) {
	s := newScene(t)
	block(s, s.options.Store)
	if err := WriteIndex(s.options.Store, sample()); err == nil || strings.Contains(err.Error(), "keep a displaced version") {
		t.Errorf("the error is %v", err)
	}
}

func FuzzReadIndex(f *testing.F) {
	for i := range sample().Records {
		x := sample()
		x.Records = x.Records[i : i+1]
		data, err := json.Marshal(x.record())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := decodeIndex(data, session)
		if err != nil {
			return
		}
		for _, r := range x.Records {
			for _, p := range []rules.Path{r.Path, r.Spot.Path} {
				if clean, err := rules.Clean(p.Anchor, p.Rel); err != nil || clean != p || p.Anchor == rules.Outside {
					t.Errorf("a path %+v", p)
				}
			}
			if strings.ContainsAny(r.Spot.Name, "/.") {
				t.Errorf("a name %q", r.Spot.Name)
			}
		}
		once, err := json.Marshal(x.record())
		if err != nil {
			t.Fatal(err)
		}
		again, err := decodeIndex(once, session)
		if err != nil {
			t.Fatalf("%v of what was written again:\n%s", err, once)
		}
		if twice, err := json.Marshal(again.record()); err != nil || !bytes.Equal(once, twice) {
			t.Errorf("written again:\n%s\nand again:\n%s (%v)", once, twice, err)
		}
	})
}
