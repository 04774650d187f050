//go:build !linux

package main

import (
	"errors"
	"os"
)

func takeWriteLease(*os.File) error { return errors.ErrUnsupported }
