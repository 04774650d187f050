//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly

package journal

import "errors"

func thisHost() (host, error) {
	return host{}, errors.New("this system has no way to tell its boots and processes apart")
}
