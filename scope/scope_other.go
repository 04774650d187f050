//go:build !linux

package scope

import "context"

// Plan is a place for a group. This system has none.
type Plan struct{}

// Group is the control group of a run. This system has none.
type Group struct{}

// Prepare refuses: control groups are Linux's.
func Prepare(context.Context, Request) (*Plan, error) {
	return nil, unavailable("this system has no control groups")
}

// CanRenice reports that nobody lowers the priority of a command here: there is
// no stage to do it in.
func CanRenice() bool { return false }

// Sweep finds nothing.
func Sweep(context.Context, Host) ([]string, error) { return nil, nil }

// List finds nothing.
func List(context.Context, Host) ([]Session, error) { return nil, nil }

func (*Plan) Close() {}

func (*Plan) Together(context.Context) *uint64 { return nil }

func (*Plan) Sweep(context.Context) ([]string, error) { return nil, nil }

func (*Plan) Place(context.Context, Held) (*Group, error) {
	return nil, unavailable("this system has no control groups")
}

func (*Group) Mode() Mode                         { return "" }
func (*Group) Name() string                       { return "" }
func (*Group) Path() string                       { return "" }
func (*Group) Bounds() Bounds                     { return Bounds{} }
func (*Group) Gaps() []string                     { return nil }
func (*Group) Controls() map[string]string        { return nil }
func (*Group) Reason() string                     { return "" }
func (*Group) Look()                              {}
func (*Group) Kill() error                        { return nil }
func (*Group) End(context.Context) (Usage, error) { return Usage{}, nil }
