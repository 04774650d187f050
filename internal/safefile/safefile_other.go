//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd

package safefile

import (
	"errors"
	"runtime"
	"syscall"
	"time"
)

// errSystem is what everything here fails with.
var errSystem = errors.New("cage cannot work with files safely on " + runtime.GOOS)

// Root stands for an open directory; on this system none can be opened.
type Root struct{}

// Dir stands for a directory beneath a Root.
type Dir struct{}

// File stands for an open regular file.
type File struct{}

// DirEntry is one name in a directory.
type DirEntry struct {
	Name string
	Kind Kind
	Err  error
}

// Staged stands for a new entry.
type Staged struct{ Unset []UnsetAttr }

// Spare stands for a file made ahead of its use.
type Spare struct{}

// UnsetAttr is an attribute that the system refused to set.
type UnsetAttr struct {
	Name string
	Err  error
}

// ErrStaging is returned on systems where entries can be prepared.
var ErrStaging = errors.New("the new entry could not be prepared")

// ErrLeft is returned on systems where directories can be made.
var ErrLeft = errors.New("what was made is left there")

// OpenRoot fails.
func OpenRoot(string) (*Root, error) { return nil, errSystem }

// OpenSystem fails.
func OpenSystem() (*Root, error) { return nil, errSystem }

func (*Root) Close() error                              { return errSystem }
func (*Root) Path() string                              { return "" }
func (*Root) Inode() Inode                              { return Inode{} }
func (*Root) Moved() (bool, error)                      { return false, errSystem }
func (*Root) Dir(string) (*Dir, error)                  { return nil, errSystem }
func (*Root) DirToRead(string) (*Dir, error)            { return nil, errSystem }
func (*Root) Reopen(string) (*File, Info, error)        { return nil, Info{}, errSystem }
func (*Root) MountedOver(string) bool                   { return false }
func (*Root) Mounts() []string                          { return nil }
func (*Root) Detach(string) error                       { return errSystem }
func (*Dir) Close() error                               { return errSystem }
func (*Dir) Rel() string                                { return "" }
func (*Dir) Info() (Info, error)                        { return Info{}, errSystem }
func (*Dir) Stat(string) (Info, error)                  { return Info{}, errSystem }
func (*Dir) Dir(string) (*Dir, error)                   { return nil, errSystem }
func (*Dir) DirToRead(string) (*Dir, error)             { return nil, errSystem }
func (*Dir) Readlink(string) (string, error)            { return "", errSystem }
func (*Dir) ReadDir() ([]DirEntry, error)               { return nil, errSystem }
func (*Dir) Open(string) (*File, Info, error)           { return nil, Info{}, errSystem }
func (*Dir) Reopen(string) (*File, Info, error)         { return nil, Info{}, errSystem }
func (*Dir) OpenWrite(string) (*File, Info, error)      { return nil, Info{}, errSystem }
func (*Dir) Mkdir(string, uint32, uint32, uint32) error { return errSystem }
func (*Dir) Chmod(uint32) error                         { return errSystem }
func (*Dir) Own(uint32, uint32, uint32) (_, err error)  { return nil, errSystem }
func (*Dir) Remove(string) error                        { return errSystem }
func (*Dir) RemoveDir(string) error                     { return errSystem }
func (*Dir) SameDir() bool                              { return false }
func (*Dir) Abs(string) string                          { return "" }
func (*File) Close() error                              { return errSystem }
func (*File) Info() (Info, error)                       { return Info{}, errSystem }
func (*File) ReadAt([]byte, int64) (int, error)         { return 0, errSystem }
func (*File) ReadSome([]byte, int64) (int, error)       { return 0, errSystem }
func (*File) Attrs() ([]Attr, error)                    { return nil, errSystem }
func (*File) BeingWritten() bool                        { return false }
func (*File) Dress(Node) ([]UnsetAttr, error)           { return nil, errSystem }
func (*Staged) Place(*Dir, string) error                { return errSystem }
func (*Staged) Exchange(*Dir, string) (string, error)   { return "", errSystem }
func (*Staged) Discard() string                         { return "" }
func (*Dir) Again() (*Dir, error)                       { return nil, errSystem }
func (*Dir) Born(string) time.Time                      { return time.Time{} }
func (*File) Born() time.Time                           { return time.Time{} }

// MakeDir fails.
func (*Dir) MakeDir(string, uint32, uint32, uint32) (*Dir, error) { return nil, errSystem }

// Move fails.
func Move(*Dir, string, *Dir, string) error { return errSystem }

// NewSpare makes none.
func NewSpare(*Dir, Node) *Spare { return nil }

func (*Spare) Used() bool                        { return true }
func (*Spare) Close()                            {}
func (*Spare) Stage(*Dir, Node) (*Staged, error) { return nil, errSystem }

// Stage fails.
func Stage(*Dir, Node) (*Staged, error) { return nil, errSystem }

// Overwrite fails.
func Overwrite(*Dir, string, Node, Inode, uint64) ([]byte, []UnsetAttr, error) {
	return nil, nil, errSystem
}

// Unname fails.
func Unname(*Dir, string) (*File, Info, error) { return nil, Info{}, errSystem }

func errnoName(syscall.Errno) string { return "ERROR" }
