//go:build linux || darwin || freebsd || netbsd || openbsd

package kept

import (
	"os"
	"path/filepath"
	"testing"

	"cage/internal/safefile"

	"golang.org/x/sys/unix"
)

// Promise: a version is called lost only where it is known not to lie in the
// quarantine. A look that failed proves nothing.
func TestUnseenIsNotLost(t *testing.T) {
	git, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root, err := safefile.OpenRoot(git)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	k := &Keeper{Options: Options{GitDir: root, Session: "0123456789abcdef", Store: filepath.Join(git, "store"), DigestLimit: 1 << 20}}
	dir, err := k.Dir()
	if err != nil {
		t.Fatal(err)
	}
	dir.Close()
	v := Version{Quarantined: "name"} // it could not be seen when it came
	place := k.placeOf(&v)
	if err := os.WriteFile(place, []byte("work\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &own); err != nil {
		t.Fatal(err)
	}
	feed := func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &own) }
	t.Cleanup(feed)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: own.Max}); err != nil {
		t.Fatal(err)
	}
	_, early := k.seal(&v, false)
	sealed, late := k.seal(&v, true)
	feed()
	if early {
		t.Error("it is sealed though another look may tell")
	}
	if !late || sealed.Place != place || sealed.Err == nil {
		t.Errorf("at the end it is %+v, %v", sealed, late)
	}
	if sealed, ok := k.seal(&v, true); !ok || sealed.Err != nil || sealed.Place == "" || sealed.Place == place {
		t.Errorf("once it can be seen it is %+v, %v", sealed, ok)
	}
	if sealed, _ := k.seal(&Version{Quarantined: "gone"}, true); sealed.Place != "" || sealed.Err == nil {
		t.Errorf("what is gone is %+v", sealed)
	}
}
