package kept

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"cage/snapshot"

	"github.com/zeebo/blake3"
)

// incoming starts the name of a copy that is being written.
const incoming = "incoming-"

// Preserve stores content that has no other place to be any more, as a copy of
// a displaced version is stored, and returns its absolute path.
func (k *Keeper) Preserve(content []byte) (place string, err error) {
	return k.storeHomeless(func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// storeHomeless stores what has no other place to be, in the spare folder if
// need be.
func (k *Keeper) storeHomeless(write func(io.Writer) error) (place string, err error) {
	place, err = store(k.Store, write)
	if err == nil {
		return place, nil
	}
	if spare, spareErr := store(k.Spare, write); spareErr == nil {
		return spare, nil
	}
	return "", err
}

// store writes a file into a folder, which is made if it is not there, under
// the address of its content, and returns its path.
func store(folder string, write func(io.Writer) error) (place string, err error) {
	address := blake3.New()
	hashed := func(w io.Writer) error { return write(io.MultiWriter(w, address)) }
	place, err = deliver(folder, hashed, func() string {
		var id snapshot.ID
		address.Sum(id[:0])
		return id.String()
	})
	if err != nil {
		return "", fmt.Errorf("keep a displaced version: %w", err)
	}
	return place, nil
}

// deliver writes a file into a folder, which is made if it is not there, and
// gives it its name once it is whole. It returns its path.
func deliver(folder string, write func(io.Writer) error, name func() string) (place string, err error) {
	if err := os.MkdirAll(folder, ownerOnly); err != nil {
		return "", err
	}
	temp, err := os.CreateTemp(folder, incoming+"*") // mode 0600
	if err != nil {
		return "", err
	}
	defer func() {
		temp.Close()
		if err != nil {
			os.Remove(temp.Name())
		}
	}()
	if err := write(temp); err != nil {
		return "", err
	}
	if err := temp.Close(); err != nil {
		return "", err
	}
	place = filepath.Join(folder, name())
	return place, os.Rename(temp.Name(), place)
}
