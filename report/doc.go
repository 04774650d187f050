// Package report holds the versioned documents of the program and everything
// that a person reads from it: the report of a session as JSON and as a human
// summary, the document of a run that failed closed, and the wording of the
// lines before and after the command.
//
// The documents are plain structs: the order of their fields is the order of
// the JSON, every array is an array and never null, and names are bytes that
// [Name] carries without loss. Whoever runs a session maps into them; nothing
// here looks at a file, a process or a terminal. No document can hold a file's
// content or a command's arguments, because no field takes them.
package report
