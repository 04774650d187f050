package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"

	"cage/internal/record"
)

// The files of a journal. Each JSON file has a sidecar with its SHA-256.
const (
	lockName     = "lock"
	packName     = "content.pack"
	baselineName = "baseline.json"
	sessionName  = "session.json"
	lifePrefix   = "life-"
	jsonSuffix   = ".json"
	sideSuffix   = ".sha256"
	tempSuffix   = ".new"
)

func lifeName(generation int) string {
	return lifePrefix + strconv.Itoa(generation) + jsonSuffix
}

// generationOf returns the number in the name of a life record.
func generationOf(name string) (int, bool) {
	text, ok := strings.CutPrefix(strings.TrimSuffix(name, jsonSuffix), lifePrefix)
	if !ok || !strings.HasSuffix(name, jsonSuffix) {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n > 0 && strconv.Itoa(n) == text
}

func sidecar(name string) string { return name + sideSuffix }

// ours reports whether a name is one that a journal gives.
func ours(name string) bool {
	name = strings.TrimSuffix(strings.TrimSuffix(name, tempSuffix), sideSuffix)
	if _, ok := generationOf(name); ok {
		return true
	}
	return name == lockName || name == packName || name == baselineName || name == sessionName
}

// durability says whether files must survive a power cut.
type durability bool

const (
	durable durability = true
	cached  durability = false
)

// batch writes files under temporary names and renames them in together, in
// the order they were added, so that no name ever names half a file. Forcing
// them to disk side by side costs little more than one of them: the file
// system commits them together.
type batch struct {
	dir   *os.Root
	names []string
	files []*os.File
	// early is how many of the files must have their names on disk before the
	// others get theirs.
	early int
}

// then makes the files that are added from here on wait for the names of those
// before.
func (b *batch) then() { b.early = len(b.names) }

// add writes a file. After an error the batch is to be discarded.
func (b *batch) add(name string, write func(*os.File) error) error {
	f, err := b.create(name + tempSuffix)
	if err != nil {
		return err
	}
	b.names, b.files = append(b.names, name), append(b.files, f)
	return write(f)
}

// create makes a file anew, in the place of whatever has its name.
func (b *batch) create(name string) (*os.File, error) {
	const ownerReadWrite = 0o600
	f, err := b.dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, ownerReadWrite)
	if !errors.Is(err, fs.ErrExist) {
		return f, err
	}
	if err := b.dir.Remove(name); err != nil {
		return nil, err
	}
	return b.dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, ownerReadWrite)
}

// addPair writes a JSON file and before it its sidecar: whoever finds the file
// finds the sidecar too.
func (b *batch) addPair(name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	if err := b.addBytes(sidecar(name), []byte(hex.EncodeToString(sum[:])+"\n")); err != nil {
		return err
	}
	return b.addBytes(name, data)
}

func (b *batch) addBytes(name string, data []byte) error {
	return b.add(name, func(f *os.File) error {
		_, err := f.Write(data)
		return err
	})
}

// commit gives the files their names.
func (b *batch) commit(how durability) error {
	if err := errors.Join(b.force(how), b.close()); err != nil {
		return err
	}
	if b.early > 0 {
		if err := b.rename(b.early, how); err != nil {
			return err
		}
	}
	return b.rename(len(b.names), how)
}

// rename gives the next files their names.
func (b *batch) rename(count int, how durability) error {
	for _, name := range b.names[:count] {
		if err := b.dir.Rename(name+tempSuffix, name); err != nil {
			return err
		}
	}
	b.names = b.names[count:]
	if how == cached {
		return nil
	}
	return syncDir(b.dir)
}

func (b *batch) force(how durability) error {
	if how == cached {
		return nil
	}
	errs := make([]error, len(b.files))
	var all sync.WaitGroup
	for i, f := range b.files {
		all.Go(func() { errs[i] = f.Sync() })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (b *batch) close() error {
	var errs []error
	for _, f := range b.files {
		errs = append(errs, f.Close())
	}
	b.files = nil
	return errors.Join(errs...)
}

// discard removes what was not committed.
func (b *batch) discard() {
	b.close()
	for _, name := range b.names {
		b.dir.Remove(name + tempSuffix) // a later write removes it otherwise
	}
}

func syncDir(dir *os.Root) error {
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// removePair removes a JSON file, then its sidecar.
func removePair(dir *os.Root, name string) error {
	for _, name := range []string{name, sidecar(name)} {
		if err := dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// jsonBytes bounds what is read of one JSON file: 64 MiB.
const jsonBytes = 64 << 20

// readPair reads a JSON file and checks it against its sidecar.
func readPair(dir *os.Root, name string, value any) error {
	data, err := readFile(dir, name, jsonBytes)
	if err != nil {
		return err
	}
	side, err := readFile(dir, sidecar(name), 2*sha256.Size+1)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	if string(side) != hex.EncodeToString(sum[:])+"\n" {
		return fmt.Errorf("%s does not have the digest that %s gives", name, sidecar(name))
	}
	if err := record.Unmarshal(data, value); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// readFile reads a file of at most limit bytes, which must be a regular one of
// this user's that others cannot write.
func readFile(dir *os.Root, name string, limit int64) ([]byte, error) {
	f, err := openFile(dir, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s is too large", name)
	}
	return data, nil
}
