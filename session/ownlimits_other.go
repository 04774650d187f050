//go:build !linux

package session

import "cage/watch"

// ownLimits are nothing here: prlimit(2), by which a program lowers the limits
// of another, is Linux's, and what else there is of the kind is not answered.
type ownLimits struct{}

func noteOwnLimits() *ownLimits { return &ownLimits{} }

func (*ownLimits) putBack() []watch.Lack { return nil }
