package scope

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	systemd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"
)

// bus talks to the service manager over D-Bus (org.freedesktop.systemd1(5)).
type bus struct{ conn *systemd.Conn }

// address is one way to the service manager.
type address struct {
	// socket is a path, or a name after an @.
	socket string
	// direct is a socket of the manager itself, without a bus between.
	direct bool
}

// busVariable names the address of the session's bus.
const busVariable = "DBUS_SESSION_BUS_ADDRESS"

// addresses are the ways to the user's service manager, as systemd-run(1) goes
// them. Of the kinds of addresses that a bus can have only sockets are dialled:
// others start programs, or lead to other machines.
func addresses(env map[string]string) []address {
	all := []address{{socket: filepath.Join(runtimeFolder(env), privateSocket), direct: true}}
	if socket := busSocket(env[busVariable]); socket != "" {
		all = append(all, address{socket: socket})
	}
	return append(all, address{socket: filepath.Join(runtimeFolder(env), "bus")})
}

// variable is the environment variable that leads systemd's own programs there.
func (a address) variable() string {
	if a.direct {
		return "XDG_RUNTIME_DIR=" + strings.TrimSuffix(a.socket, "/"+privateSocket)
	}
	if name, abstract := strings.CutPrefix(a.socket, "@"); abstract {
		return busVariable + "=unix:abstract=" + dbus.EscapeBusAddressValue(name)
	}
	return busVariable + "=unix:path=" + dbus.EscapeBusAddressValue(a.socket)
}

// privateSocket is that of the manager itself, beneath the runtime directory.
const privateSocket = "systemd/private"

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

// busManager finds the user's service manager over D-Bus. Where it does not, the
// error is that of the address that comes nearest to one, and mute is the first at
// which somebody of this machine was reached and not understood.
func busManager(ctx context.Context, env map[string]string) (m *manager, mute *address, err error) {
	var elsewhere, reached, failed error
	for _, a := range addresses(env) {
		if m, failed = a.manager(ctx); failed == nil {
			return m, nil, nil
		}
		switch {
		case errors.Is(failed, errOtherPIDs), errors.Is(failed, errOtherMachine):
			elsewhere = failed
		case reached == nil && errors.Is(failed, errNotUnderstood):
			reached, mute = failed, &a
		}
	}
	if elsewhere != nil {
		mute = nil // its programs could go there
	}
	return nil, mute, cmp.Or(elsewhere, reached, failed)
}

// errNotUnderstood is wrapped where there is somebody at an address.
var errNotUnderstood = errors.New("it was not understood")

// manager connects to one address and asks who is there. What answers nothing is
// given up, and so is it when ctx ends; the connection outlives that.
func (a address) manager(ctx context.Context) (*manager, error) {
	alive, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ctx, done := context.WithTimeout(ctx, managerPatience)
	defer done()
	pending := context.AfterFunc(ctx, cancel)
	m, err := a.meet(ctx, alive)
	if !pending() {
		err = context.Cause(ctx)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return m, nil
}

// meet asks who is at an address. Not all of the questions take a context, but all
// are over when alive is.
func (a address) meet(ctx, alive context.Context) (*manager, error) {
	var first *dbus.Conn
	conn, err := systemd.NewConnection(func() (*dbus.Conn, error) {
		conn, err := converse(ctx, alive, a)
		first = cmp.Or(first, conn)
		return conn, err
	})
	if err != nil {
		return nil, err
	}
	t := &bus{conn}
	m, err := t.introduced(ctx, first, a)
	if err != nil {
		t.close()
	}
	return m, err
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
	if err != nil {
		return conn, fmt.Errorf("%w (%w)", err, errNotUnderstood)
	}
	return conn, nil
}

// introduced asks a manager where it is. That comes no sooner than both of its
// connections stand: what systemd reads together with the end of a greeting it
// leaves until more comes.
func (t *bus) introduced(ctx context.Context, first *dbus.Conn, a address) (*manager, error) {
	err := t.listen(a)
	if err == nil {
		err = sameMachine(ctx, first)
	}
	if errors.Is(err, errOtherMachine) {
		return nil, err
	}
	var m *manager
	if err == nil {
		m, err = managed(ctx, t)
	}
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", err, errNotUnderstood)
	}
	return m, nil
}

// sameMachine refuses a manager that says it is another machine's, as one is to
// which a socket of this one is forwarded: there the numbers of processes are
// others', and what looks like the scope of a dead cage is that of one that lives.
func sameMachine(ctx context.Context, conn *dbus.Conn) error {
	text, err := os.ReadFile("/etc/machine-id") // machine-id(5)
	own := strings.TrimSpace(string(text))
	if err != nil || len(own) != machineIDLength {
		return nil // a machine without a name has no other to be told from
	}
	var said string
	manager := conn.Object("org.freedesktop.systemd1", "/org/freedesktop/systemd1")
	if err := manager.CallWithContext(ctx, "org.freedesktop.DBus.Peer.GetMachineId", 0).Store(&said); err != nil {
		return err
	}
	if said != own {
		return errOtherMachine
	}
	return nil
}

const machineIDLength = 32

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

var (
	errOtherPIDs    = errors.New("it runs in another pid namespace")
	errOtherMachine = errors.New("it runs on another machine")
)

// The errors of the manager that are answers (org.freedesktop.systemd1(5)
// does not name them; they are in its sources).
const (
	unitExists = "org.freedesktop.systemd1.UnitExists"
	noSuchUnit = "org.freedesktop.systemd1.NoSuchUnit"
	// cannotSet is what systemd answers for a property that a scope does not know.
	cannotSet = "org.freedesktop.DBus.Error.PropertyReadOnly"
)

// listen asks to be told of jobs.
func (t *bus) listen(a address) error {
	if a.direct {
		return nil // the manager's own socket tells everybody everything
	}
	return t.conn.Subscribe()
}

func (t *bus) close() { t.conn.Close() }

func (t *bus) controlGroup(context.Context) (string, error) {
	text, err := t.conn.GetManagerProperty("ControlGroup")
	if err != nil {
		return "", err
	}
	return strconv.Unquote(text)
}

func (t *bus) memoryMax(ctx context.Context, slice string) *uint64 {
	ctx, cancel := context.WithTimeout(ctx, managerPatience)
	defer cancel()
	property, err := t.conn.GetUnitTypePropertyContext(ctx, slice, "Slice", "MemoryMax")
	if err != nil {
		return nil
	}
	n, ok := property.Value.Value().(uint64)
	if !ok {
		return nil
	}
	return finite(n)
}

// start asks for a policy for what follows when memory runs out. Before systemd
// 252 scopes have none, and follow the one that is asked for anyhow.
func (t *bus) start(ctx context.Context, unit string, held Held, b Bounds) error {
	with := append(properties(held.Process().PID, b), systemd.Property{Name: "OOMPolicy", Value: dbus.MakeVariant("continue")})
	err := t.startUnit(ctx, unit, with)
	if isBusError(err, cannotSet) {
		err = t.startUnit(ctx, unit, with[:len(with)-1])
	}
	if isBusError(err, unitExists) {
		return errTaken
	}
	return err
}

func isBusError(err error, name string) bool {
	var answer dbus.Error
	return errors.As(err, &answer) && answer.Name == name
}

// properties are what a scope is made with (systemd.resource-control(5)).
func properties(pid int, b Bounds) []systemd.Property {
	list := []systemd.Property{
		systemd.PropDescription(description),
		systemd.PropSlice(sessionsSlice),
		systemd.PropPids(uint32(pid)),
		{Name: "TimeoutStopUSec", Value: dbus.MakeVariant(uint64(stopPatience.Microseconds()))},
	}
	for _, r := range b.resources() {
		list = append(list, systemd.Property{Name: r.name, Value: dbus.MakeVariant(r.value)})
	}
	return list
}

// startUnit starts a transient unit and waits until that is done.
func (t *bus) startUnit(ctx context.Context, unit string, properties []systemd.Property) error {
	ctx, cancel := context.WithTimeout(ctx, managerPatience)
	defer cancel()
	done := make(chan string, 1)
	if _, err := t.conn.StartTransientUnitContext(ctx, unit, "fail", properties, done); err != nil {
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

func (t *bus) kill(ctx context.Context, unit string) error {
	ctx, cancel := context.WithTimeout(ctx, managerPatience)
	defer cancel()
	return t.conn.KillUnitWithTarget(ctx, unit, systemd.All, int32(unix.SIGKILL))
}

// stop takes one that has gone by itself for stopped.
func (t *bus) stop(ctx context.Context, unit string) error {
	done := make(chan string, 1)
	_, err := t.conn.StopUnitContext(ctx, unit, "replace", done)
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

func (t *bus) reset(ctx context.Context, unit string) error {
	return t.conn.ResetFailedUnitContext(ctx, unit)
}

func (t *bus) state(ctx context.Context, unit string) (state, error) {
	of, err := t.conn.GetUnitPropertiesContext(ctx, unit)
	if err != nil {
		return state{}, err
	}
	var s state
	s.load, _ = of["LoadState"].(string)
	s.active, _ = of["ActiveState"].(string)
	if s.loaded() {
		// It fails where the unit has gone by itself.
		if result, err := t.conn.GetUnitTypePropertyContext(ctx, unit, "Scope", "Result"); err == nil {
			s.result, _ = result.Value.Value().(string)
		}
	}
	return s, nil
}

func (t *bus) scopes(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, managerPatience)
	defer cancel()
	units, err := t.conn.ListUnitsByPatternsContext(ctx, nil, []string{prefix + "*.scope"})
	if err != nil {
		return nil, fmt.Errorf("listing scopes: %w", err)
	}
	names := make([]string, len(units))
	for i, unit := range units {
		names[i] = unit.Name
	}
	return names, nil
}
