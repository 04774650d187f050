package anchors

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"cage/rules"
)

// Sources reads the files that rules are read from as they stand in a root. An
// error is a *rules.Error.
func Sources(root string) (rules.Sources, error) {
	var sources rules.Sources
	for _, source := range []struct {
		name string
		file *rules.File
	}{
		{rules.ConfigFile, &sources.Config},
		{rules.ManifestYAML, &sources.ManifestYAML},
		{rules.ManifestJSON, &sources.ManifestJSON},
	} {
		var err error
		if *source.file, err = read(filepath.Join(root, source.name)); err != nil {
			return rules.Sources{}, rules.Unreadable(source.name, err)
		}
	}
	return sources, nil
}

// read reads a rule source without waiting for anybody, and no more than whoever
// parses it would take.
func read(name string) (rules.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(name); err == nil {
			return rules.File{}, errors.New("it is a link that leads nowhere")
		}
		return rules.File{}, nil
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return rules.File{}, nil // a file stands where its directory would
	}
	if err != nil {
		return rules.File{}, reason(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return rules.File{}, reason(err)
	}
	if !info.Mode().IsRegular() {
		return rules.File{}, errors.New("it is no regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, rules.MaxFile+1))
	return rules.File{Present: true, Data: data}, reason(err)
}

// reason drops operation and path of an error whose reader knows both.
func reason(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
