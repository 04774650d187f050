package rules

import (
	"fmt"
	"strconv"
)

// Code is an error's identifier as reports and scripts read it.
type Code string

// The codes of this package's errors.
const (
	CodeConfig   Code = "GXT_CAGE_CONFIG_INVALID"
	CodeManifest Code = "GXT_CAGE_MANIFEST_INVALID"
	CodeOverride Code = "GXT_CAGE_OVERRIDE_INVALID"
)

// Error refuses a rule source. Every error that New and Settle return is one.
type Error struct {
	Code Code
	// File is the root-relative name of the refused file, empty for an override.
	File string
	// Line counts from 1; 0 where the fault is the file as a whole.
	Line int
	// Message says what is wrong, Hint how to put it right (it may be empty).
	Message string
	Hint    string
	// Cause is what the operating system said, where it said something.
	Cause error
}

func (e *Error) Error() string {
	text := e.Message
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	switch {
	case e.File == "":
		return text
	case e.Line == 0:
		return e.File + ": " + text
	default:
		return e.File + ":" + strconv.Itoa(e.Line) + ": " + text
	}
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Unreadable is the error for a rule file that stands there and could not be
// read: ConfigFile or one of the manifest's names.
func Unreadable(file string, cause error) *Error {
	code := CodeManifest
	if file == ConfigFile {
		code = CodeConfig
	}
	return &Error{Code: code, File: file, Message: "the file cannot be read", Cause: cause,
		Hint: "make " + file + " a readable regular file, or remove it"}
}

// source is the file that a refusal is about.
type source struct {
	code Code
	file string
}

func (s source) refuse(line int, hint, format string, args ...any) error {
	return &Error{Code: s.code, File: s.file, Line: line, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// quote spells a user's word for a message: control bytes escaped, and not
// longer than a line can bear.
func quote(word string) string {
	const most = 80
	if len(word) > most {
		return strconv.Quote(word[:most]) + "…"
	}
	return strconv.Quote(word)
}
