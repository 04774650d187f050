package pushguard

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// at calls do with a name of the socket in a folder that the system takes: it
// refuses one of more than about a hundred bytes, which a temporary directory
// can have by itself.
func at[T any](folder string, do func(address string) (T, error)) (T, error) {
	const most = len(unix.RawSockaddrUnix{}.Path) - 1 // a NUL ends it
	address := filepath.Join(folder, socketName)
	if len(address) <= most {
		return do(address)
	}
	dir, err := os.Open(folder)
	if err != nil {
		var none T
		return none, err
	}
	defer dir.Close()
	return do(short(dir))
}

func listen(folder string) (*net.UnixListener, error) {
	listener, err := at(folder, func(address string) (*net.UnixListener, error) {
		return net.ListenUnix("unix", &net.UnixAddr{Name: address, Net: "unix"})
	})
	if err != nil {
		return nil, fmt.Errorf("listen in %q: %w", folder, err)
	}
	listener.SetUnlinkOnClose(false) // it goes with the folder, and its name may have gone before
	return listener, nil
}

func dial(folder string) (net.Conn, error) {
	return at(folder, func(address string) (net.Conn, error) { return net.Dial("unix", address) })
}
