//go:build !linux

package snapshot_test

import "errors"

func setAttribute(string) error { return errors.ErrUnsupported }

func leases(string) bool { return false }
