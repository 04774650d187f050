package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cage/report"
	"cage/rules"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"
)

// reportFile is where the caller wants the report. The directory is held from
// the start: by the end its path may lead elsewhere, onto a protected file for
// one.
type reportFile struct {
	named string // as the caller spelled it
	place string // physical path of the directory
	base  string
	dir   *os.Root
}

// reportFileError is what is wrong with a report file.
type reportFileError struct {
	file, problem string
	err           error
}

func (e *reportFileError) Error() string {
	text := "the report file " + report.Quote(e.file) + " " + e.problem
	if e.err != nil {
		text += ": " + e.err.Error()
	}
	return text
}

func (e *reportFileError) Unwrap() error { return e.err }

func reportFileRefusal(file, problem, hint string, err error) error {
	return refusal(codeReportFile, hint, &reportFileError{file, problem, reason(err)})
}

// openReportFile opens the directory of a report file that is absent or
// regular and can be replaced. It returns nil where no file is named.
func openReportFile(named string) (*reportFile, error) {
	if named == "" {
		return nil, nil
	}
	dir, base := filepath.Split(named)
	if base == "" || base == "." || base == ".." {
		return nil, reportFileRefusal(named, "is a directory", "name a file in it", nil)
	}
	place, root, err := openDir(dir)
	if err != nil {
		return nil, reportFileRefusal(named, "lies in a directory that cannot be opened", "make the directory first, or name another", err)
	}
	f := &reportFile{named: named, place: place, base: base, dir: root}
	if err := f.replaceable(); err != nil {
		root.Close()
		return nil, err
	}
	return f, nil
}

// openDir opens a directory and returns its absolute path without symlinks.
func openDir(name string) (place string, root *os.Root, err error) {
	if place, err = filepath.Abs(name); err != nil {
		return "", nil, err
	}
	if place, err = filepath.EvalSymlinks(place); err != nil {
		return "", nil, err
	}
	root, err = os.OpenRoot(place)
	return place, root, err
}

// replaceable refuses what stands there if it is no file, and a directory in
// which nothing can be replaced.
func (f *reportFile) replaceable() error {
	info, err := f.dir.Lstat(f.base)
	if err == nil && !info.Mode().IsRegular() {
		return reportFileRefusal(f.named, "is no regular file", "name a regular file, or one that does not exist", nil)
	}
	if err := unix.Faccessat(unix.AT_FDCWD, f.place, unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
		return reportFileRefusal(f.named, "lies in a directory that cannot be written", "name a file in a directory that you can write", err)
	}
	return nil
}

// fits refuses a report file on a path that a rule protects or in a git
// directory.
func (f *reportFile) fits(layout rules.Layout, plan *rules.Plan) error {
	at := layout.Locate(filepath.Join(f.place, f.base))
	_, protected := plan.Classify(at)
	inGit := at.Anchor == rules.CommonDir || at.Anchor == rules.GitDir ||
		at.Anchor == rules.Root && slices.Contains(strings.Split(at.Rel, "/"), ".git")
	if protected || inGit {
		return reportFileRefusal(f.named, "lies on a protected path", "name a file that no rule protects", nil)
	}
	return nil
}

// write puts a document into the file, in one step.
func (f *reportFile) write(document []byte) error {
	if err := f.stillThere(); err != nil {
		return &reportFileError{f.named, "is not written", err}
	}
	const readable = 0o644
	err := renameio.WriteFile(f.base, document, readable, renameio.WithRoot(f.dir))
	if err != nil {
		return &reportFileError{f.named, "is not written", reason(err)}
	}
	return nil
}

// stillThere reports whether the path of the directory leads to the one that
// is held, without links.
func (f *reportFile) stillThere() error {
	moved := errors.New("its directory is not where it was at the start")
	held, err := f.dir.Stat(".")
	if err != nil {
		return reason(err)
	}
	place, err := filepath.EvalSymlinks(f.place)
	if err != nil || place != f.place {
		return moved
	}
	now, err := os.Lstat(place)
	if err != nil || !os.SameFile(held, now) {
		return moved
	}
	return nil
}

func (f *reportFile) close() {
	if f != nil {
		f.dir.Close()
	}
}

// writeReport puts the report of a run into the report file, if there is one.
func (s *session) writeReport(doc *report.Document) error {
	if s.reportFile == nil {
		return nil
	}
	data, err := doc.JSON()
	if err != nil {
		return fmt.Errorf("make the report: %w", err)
	}
	return s.reportFile.write(data)
}

// writeFailure puts a refusal into the report file, unless that lies on a path
// that the rules protect, as far as they are known.
func (s *session) writeFailure(r *Refusal) {
	if s.reportFile == nil {
		return
	}
	plan := s.plan
	if plan == nil {
		// The built-in rules alone cannot be refused.
		plan, _ = rules.New(rules.Inputs{Layout: s.layout, Git: s.git})
	}
	if s.reportFile.fits(s.layout, plan) != nil {
		return
	}
	data, err := r.JSON()
	if err == nil {
		err = s.reportFile.write(data)
	}
	if err != nil {
		s.tell(err.Error())
	}
}
