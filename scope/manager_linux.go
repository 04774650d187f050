package scope

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	systemd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"

	"cage/internal/proc"
)

// managerPatience is how long the service manager may take over one answer. On
// a loaded machine a scope has taken three seconds.
const managerPatience = 20 * time.Second

// manager is the user's service manager.
type manager struct {
	conn *systemd.Conn
	// group is the one that it keeps all its units in.
	group string
}

// runtimeFolder is where the user's sockets are.
func runtimeFolder(env map[string]string) string {
	if dir := env["XDG_RUNTIME_DIR"]; dir != "" {
		return dir
	}
	// A system service has no such variable; the manager of its user may run.
	return filepath.Join("/run/user", strconv.Itoa(os.Getuid()))
}

// address is one way to the service manager.
type address struct {
	// socket is a path, or a name after an @.
	socket string
	// direct is a socket of the manager itself, without a bus between.
	direct bool
}

// addresses are the ways to the user's service manager, as systemd-run(1) goes
// them. Of the kinds of addresses that a bus can have only sockets are dialled:
// others start programs, or lead to other machines.
func addresses(env map[string]string) []address {
	all := []address{{socket: filepath.Join(runtimeFolder(env), "systemd/private"), direct: true}}
	if socket := busSocket(env["DBUS_SESSION_BUS_ADDRESS"]); socket != "" {
		all = append(all, address{socket: socket})
	}
	return append(all, address{socket: filepath.Join(runtimeFolder(env), "bus")})
}

// busSocket returns the socket that the address of a bus begins with; empty
// where that is none (D-Bus specification, server addresses).
func busSocket(text string) string {
	first, _, _ := strings.Cut(text, ";")
	parameters, isSocket := strings.CutPrefix(first, "unix:")
	for parameter := range strings.SplitSeq(parameters, ",") {
		key, value, _ := strings.Cut(parameter, "=")
		name, err := dbus.UnescapeBusAddressValue(value)
		switch {
		case !isSocket || err != nil || name == "":
		case key == "path":
			return name
		case key == "abstract":
			return "@" + name
		}
	}
	return ""
}

// connect finds the user's service manager.
func connect(ctx context.Context, env map[string]string) (*manager, error) {
	var failed error
	for _, a := range addresses(env) {
		conn, err := systemd.NewConnection(func() (*dbus.Conn, error) { return dial(ctx, a) })
		if err != nil {
			failed = err
			continue
		}
		m := &manager{conn: conn}
		if failed = m.greet(a); failed == nil {
			return m, nil
		}
		conn.Close()
	}
	return nil, unavailable("the service manager of this user does not answer in %s: %v", runtimeFolder(env), errno(failed))
}

// dial connects to one address. What answers nothing is given up, and so is it
// when ctx ends; the connection outlives that.
func dial(ctx context.Context, a address) (*dbus.Conn, error) {
	alive, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ctx, done := context.WithTimeout(ctx, managerPatience)
	defer done()
	pending := context.AfterFunc(ctx, cancel)
	conn, err := converse(ctx, alive, a)
	if !pending() {
		err = context.Cause(ctx)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return conn, nil
}

// converse opens a socket and says who asks; the conversation ends with alive.
func converse(ctx, alive context.Context, a address) (*dbus.Conn, error) {
	var dialer net.Dialer
	socket, err := dialer.DialContext(ctx, "unix", a.socket)
	if err != nil {
		return nil, err
	}
	if err := samePIDs(socket.(*net.UnixConn)); err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	conn, err := dbus.NewConn(socket, dbus.WithContext(alive))
	if err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	err = conn.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(os.Getuid()))})
	if err == nil && !a.direct {
		err = conn.Hello()
	}
	return conn, err
}

// samePIDs refuses a socket whose owner has other process numbers: to have it
// move a process would move somebody else's. The kernel gives an owner that this
// pid namespace does not have the number 0, and one of a namespace below several
// (unix(7), proc_pid_status(5)).
func samePIDs(socket *net.UnixConn) error {
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil || failed != nil {
		return errors.Join(err, failed)
	}
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(int(peer.Pid)), "status"))
	if err != nil {
		return errOtherPIDs
	}
	for line := range strings.Lines(string(status)) {
		if numbers, found := strings.CutPrefix(line, "NSpid:"); found && len(strings.Fields(numbers)) != 1 {
			return errOtherPIDs
		}
	}
	return nil
}

var errOtherPIDs = errors.New("it runs in another pid namespace")

// greet asks to be told of jobs, and where the manager keeps its units.
func (m *manager) greet(a address) error {
	if !a.direct {
		// The manager's own socket tells everybody everything.
		if err := m.conn.Subscribe(); err != nil {
			return err
		}
	}
	text, err := m.conn.GetManagerProperty("ControlGroup")
	if err != nil {
		return err
	}
	m.group, err = strconv.Unquote(text)
	return err
}

// sessionsGroup is the group of the slice of all sessions.
func (m *manager) sessionsGroup() string { return path.Join(m.group, outerSlice, sessionsSlice) }

func (m *manager) close() { m.conn.Close() }

// ceiling returns what the slice of all sessions may take at most: the kernel
// says it of the groups that exist, the manager of those that do not yet.
func (m *manager) ceiling(ctx context.Context, h hierarchy) *uint64 {
	return lesser(h.ceiling(m.sessionsGroup()), m.ownCeiling(ctx))
}

// ownCeiling is what somebody has set for the slice of all sessions.
func (m *manager) ownCeiling(ctx context.Context) *uint64 {
	var least *uint64
	for _, unit := range []string{outerSlice, sessionsSlice} {
		property, err := m.conn.GetUnitTypePropertyContext(ctx, unit, "Slice", "MemoryMax")
		if err != nil {
			continue // not known to have one
		}
		if n, ok := property.Value.Value().(uint64); ok {
			least = lesser(least, finite(n))
		}
	}
	return least
}

// check refuses a manager that was not given the controllers that limits need.
func (m *manager) check(h hierarchy, need []string) error {
	have, err := h.controllers(m.group, "cgroup.controllers")
	if err != nil {
		return nil // not ours to look at; what was set is read back
	}
	if lacks := lacking(have, need); len(lacks) > 0 {
		return unavailable("the service manager of this user was not given the controller %s (it has: %s)", lacks[0], listed(have))
	}
	return nil
}

// listed puts words into a sentence.
func listed(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, " ")
}

// The errors of the manager that are answers (org.freedesktop.systemd1(5)
// does not name them; they are in its sources).
const (
	unitExists      = "org.freedesktop.systemd1.UnitExists"
	noSuchUnit      = "org.freedesktop.systemd1.NoSuchUnit"
	unknownProperty = "org.freedesktop.DBus.Error.PropertyReadOnly"
)

// start puts a process into a new scope. The name of one that has failed is
// taken until somebody resets it, so the next name is tried. Before systemd 252
// scopes have no policy for what follows when memory runs out, and follow the
// one that is asked for anyhow.
func (m *manager) start(ctx context.Context, n name, pid int, b Bounds) (name, error) {
	with := append(properties(pid, b), systemd.Property{Name: "OOMPolicy", Value: dbus.MakeVariant("continue")})
	for n.attempt = 1; n.attempt <= mostAttempts; n.attempt++ {
		err := m.startUnit(ctx, n.unit(), with)
		if isBusError(err, unknownProperty) {
			with = with[:len(with)-1]
			err = m.startUnit(ctx, n.unit(), with)
		}
		if !isBusError(err, unitExists) {
			return n, err
		}
	}
	return n, unavailable("the service manager has failed scopes under every name for this session")
}

func isBusError(err error, name string) bool {
	var answer dbus.Error
	return errors.As(err, &answer) && answer.Name == name
}

// properties are what a scope is made with (systemd.resource-control(5)). There
// is no MemoryHigh: it slows a runaway down where this is to end it. And swap
// is closed, because MemoryMax alone lets a runaway take all of that.
func properties(pid int, b Bounds) []systemd.Property {
	list := []systemd.Property{
		systemd.PropDescription("A session of cage"),
		systemd.PropSlice(sessionsSlice),
		systemd.PropPids(uint32(pid)),
	}
	add := func(name string, value uint64) {
		list = append(list, systemd.Property{Name: name, Value: dbus.MakeVariant(value)})
	}
	add("TimeoutStopUSec", uint64(stopPatience.Microseconds()))
	add("TasksMax", b.TasksMax)
	if b.MemoryMax != nil {
		add("MemoryMax", *b.MemoryMax)
		add("MemorySwapMax", 0)
	}
	if b.Weight != nil {
		add("CPUWeight", *b.Weight)
	}
	return list
}

// startUnit starts a transient unit and waits until that is done.
func (m *manager) startUnit(ctx context.Context, unit string, properties []systemd.Property) error {
	ctx, cancel := context.WithTimeout(ctx, managerPatience)
	defer cancel()
	done := make(chan string, 1)
	if _, err := m.conn.StartTransientUnitContext(ctx, unit, "fail", properties, done); err != nil {
		return fmt.Errorf("asking for a scope: %w", err)
	}
	select {
	case result := <-done:
		if result != "done" {
			return unavailable("the service manager could not start a scope: %s", result)
		}
		return nil
	case <-ctx.Done():
		return unavailable("the service manager did not start a scope in time")
	}
}

// killUnit ends every process of a unit.
func (m *manager) killUnit(ctx context.Context, unit string) error {
	ctx, cancel := context.WithTimeout(ctx, managerPatience)
	defer cancel()
	return m.conn.KillUnitWithTarget(ctx, unit, systemd.All, int32(unix.SIGKILL))
}

// settled reads how a unit ended and lets the manager forget it, in this order,
// because to forget it is to lose why. A unit that is not loaded says nothing
// of why, and answers like one that ended well. One that has not ended is stopped:
// a scope whose only process had died before it was moved would stay for ever.
func (m *manager) settled(ctx context.Context, unit string) (outOfMemory bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, managerPatience)
	defer cancel()
	of, err := m.conn.GetUnitPropertiesContext(ctx, unit)
	if err == nil && of["LoadState"] == "loaded" && of["ActiveState"] != "failed" && of["ActiveState"] != "inactive" {
		if err = m.stopUnit(ctx, unit); err == nil {
			of, err = m.conn.GetUnitPropertiesContext(ctx, unit)
		}
	}
	if err != nil {
		return false, fmt.Errorf("asking how the scope ended: %w", err)
	}
	if of["LoadState"] != "loaded" {
		return false, nil
	}
	if result, err := m.conn.GetUnitTypePropertyContext(ctx, unit, "Scope", "Result"); err == nil {
		outOfMemory = result.Value.Value() == "oom-kill"
	}
	// It fails where the unit has gone by itself.
	_ = m.conn.ResetFailedUnitContext(ctx, unit)
	return outOfMemory, nil
}

// stopUnit ends a unit and waits until that is done. One that has gone by
// itself needs none of it.
func (m *manager) stopUnit(ctx context.Context, unit string) error {
	done := make(chan string, 1)
	_, err := m.conn.StopUnitContext(ctx, unit, "replace", done)
	if isBusError(err, noSuchUnit) {
		return nil
	}
	if err != nil {
		return err
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the scope does not end: %w", ctx.Err())
	}
}

// sessions are the scopes that the manager knows.
func (m *manager) sessions(ctx context.Context) ([]systemd.UnitStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, managerPatience)
	defer cancel()
	units, err := m.conn.ListUnitsByPatternsContext(ctx, nil, []string{prefix + "*.scope"})
	if err != nil {
		return nil, fmt.Errorf("listing scopes: %w", err)
	}
	return units, nil
}

// self returns this program as an owner.
func (h hierarchy) self() (owner, error) {
	id, err := proc.Self()
	if err != nil {
		return owner{}, err
	}
	info, err := os.Stat(filepath.Join(h.proc, "self/ns/pid"))
	if err != nil {
		return owner{}, fmt.Errorf("finding the pid namespace: %w", err)
	}
	inode := info.Sys().(*syscall.Stat_t).Ino
	return owner{namespace: uint32(min(inode, math.MaxUint32)), ID: id}, nil
}

// dead reports whether the owner cannot come back for its group. Of an owner in
// another pid namespace that cannot be told.
func (o owner) dead(self owner) bool {
	return o.namespace == self.namespace && !o.Alive()
}
