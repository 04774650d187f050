//go:build darwin || freebsd || netbsd || openbsd

package safefile

// testAttrs are attributes of a user's file.
func testAttrs() []Attr { return []Attr{{Name: "user.note", Value: []byte("value")}} }
