package scope

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"

	"cage/internal/proc"
)

// planted is a hierarchy of plain files: what a kernel answers to what stands
// in them is tried in the guest.
func planted(t *testing.T, own string, files map[string]string) hierarchy {
	t.Helper()
	h := hierarchy{
		mount: filepath.Join(t.TempDir(), "cgroup"), proc: filepath.Join(t.TempDir(), "proc"),
		magic: func(string) (int64, error) { return unix.CGROUP2_SUPER_MAGIC, nil },
	}
	plant(t, h.proc, "self/cgroup", "12:memory:/elsewhere\n0::"+own+"\n")
	if err := os.MkdirAll(filepath.Join(h.mount, own), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		plant(t, h.mount, name, text)
	}
	return h
}

func plant(t *testing.T, at, name, text string) {
	t.Helper()
	file := filepath.Join(at, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// refusal wants an error for a person that has all of some words.
func refusal(t *testing.T, err error, words ...string) {
	t.Helper()
	var why *Unavailable
	if !errors.As(err, &why) {
		t.Errorf("no refusal but %v", err)
		return
	}
	for _, word := range words {
		if !strings.Contains(why.Reason, word) {
			t.Errorf("%q has no %q", why.Reason, word)
		}
	}
}

// Promise: each way in which a machine has no cgroup version 2 has a reason of
// its own.
func TestNoVersion2(t *testing.T) {
	for name, c := range map[string]struct {
		magic int64
		err   error
		words string
	}{
		"version 1":     {unix.TMPFS_MAGIC, nil, "not cgroup version 2 but version 1"},
		"other":         {0xef53, nil, "not cgroup version 2 (file system 0xef53)"},
		"nothing there": {0, fs.ErrNotExist, "cannot be looked at: file does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			h := planted(t, "/", nil)
			h.magic = func(string) (int64, error) { return c.magic, c.err }
			_, err := prepare(context.Background(), h, Request{ID: name, Host: Host{Env: []string{"XDG_RUNTIME_DIR=" + t.TempDir()}}})
			refusal(t, err, h.mount, c.words)
			if swept, err := h.sweep(t.Context(), nil, owner{}); len(swept) > 0 || err != nil {
				t.Errorf("swept %q, %v", swept, err)
			}
		})
	}
}

// Promise: where there is no manager and no group to divide, the reason of each
// is told.
func TestNoWay(t *testing.T) {
	limits := Limits{Memory: Bytes(1 << 20), Weight: 50}
	for name, c := range map[string]struct {
		files map[string]string
		words []string
	}{
		"no controller": {map[string]string{"a/b/cgroup.controllers": "cpuset pids\n", "a/b/cgroup.procs": "", "a/b/cgroup.subtree_control": ""},
			[]string{"/a/b was not given the controller memory (it has: cpuset pids)"}},
		"none at all": {map[string]string{"a/b/cgroup.controllers": "", "a/b/cgroup.procs": ""},
			[]string{"controller pids (it has: none)"}},
		"nothing to see": {nil, []string{"/a/b cannot be looked at: no such file or directory"}},
		"others in it": {map[string]string{"a/b/cgroup.controllers": "cpu memory pids", "a/b/cgroup.procs": "1\n", "a/b/cgroup.type": "domain\n"},
			[]string{"/a/b is shared with other programs"}},
		"not to be handed down": {map[string]string{"a/b/cgroup.controllers": "cpu memory pids", "a/b/cgroup.procs": "", "a/b/cgroup.type": "domain\n"},
			[]string{"/a/b does not hand the controller pids down: no such file"}},
	} {
		t.Run(name, func(t *testing.T) {
			runtime := t.TempDir()
			h := planted(t, "/a/b", c.files)
			os.Symlink("/proc/self/ns", filepath.Join(h.proc, "self/ns"))
			_, err := prepare(context.Background(), h, Request{ID: name, Limits: limits, Host: Host{Env: []string{"XDG_RUNTIME_DIR=" + runtime}}})
			refusal(t, err, append(c.words, "no scope: the service manager of this user does not answer in "+runtime+": no such file or directory")...)
		})
	}
}

// Promise: a manager without the processor does, unless that is required; one
// without memory or tasks never does.
func TestManagerWithoutController(t *testing.T) {
	limits := Limits{Memory: Bytes(1 << 20), Weight: 50}
	for _, c := range []struct {
		has    string
		limits Limits
		strict bool
		lacks  string
	}{
		{"memory pids", limits, false, ""},
		{"memory pids", limits, true, "cpu"},
		{"memory pids", Limits{}, true, ""},
		{"cpu memory pids", limits, true, ""},
		{"cpu pids", limits, false, "memory"},
		{"cpu pids", Limits{Tasks: 3}, true, ""},
		{"cpu memory", Limits{}, false, "pids"},
	} {
		h := planted(t, "/", map[string]string{"user/cgroup.controllers": c.has + "\n"})
		p := Plan{hierarchy: h, need: c.limits.controllers(), strict: c.strict}
		err := (&manager{group: "/user"}).check(h, p.indispensable())
		if c.lacks == "" {
			if err != nil {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		refusal(t, err, "not given the controller "+c.lacks+" (it has: "+c.has+")")
	}
	if err := (&manager{group: "/hidden"}).check(planted(t, "/", nil), []string{"pids"}); err != nil {
		t.Errorf("what cannot be seen is refused: %v", err)
	}
}

// Promise: a group is made in the nearest one above that hands down what is
// needed, filled with every limit before anybody moves in, and is as strong as
// the weakest limit above.
func TestDirectly(t *testing.T) {
	all := "cpu memory pids\n"
	h := planted(t, "/a/b/c", map[string]string{
		"a/b/cgroup.subtree_control": "pids\n", "a/b/cgroup.procs": "", "a/cgroup.subtree_control": all, "a/cgroup.procs": "",
		"a/memory.max": "1073741824\n", "a/b/memory.max": "4096\n", "cgroup.subtree_control": all, "cgroup.procs": "",
	})
	parent, err := h.parent([]string{"memory", "pids"})
	if err != nil || parent != "/a" {
		t.Fatalf("the parent is %q, %v", parent, err)
	}
	if got := h.ceiling(parent); got == nil || *got != 1<<30 {
		t.Errorf("the ceiling is %v", got)
	}
	if got := h.ceiling("/a/b/c"); got == nil || *got != 4096 {
		t.Errorf("the ceiling within is %v", got)
	}
	if got := h.ceiling("/"); got != nil {
		t.Errorf("the root has a ceiling of %d", *got)
	}
	n := name{label: "x", owner: owner{namespace: 1, ID: proc.ID{PID: 7, Start: 9}}, attempt: 1}
	first, err := h.make(parent, n)
	if err != nil || first != "/a/"+n.String() {
		t.Errorf("made %q, %v", first, err)
	}
	second, err := h.make(parent, n)
	if n.attempt = 2; err != nil || second != "/a/"+n.String() {
		t.Errorf("made %q, %v", second, err)
	}
	bytes := uint64(4096)
	controls := Bounds{MemoryMax: &bytes, TasksMax: 5}.controls()
	refusal(t, h.fill(second, proc.ID{PID: 7}, controls), "pids.max cannot be set: no such file or directory")
	for _, c := range controls {
		plant(t, h.mount, filepath.Join(second, c.file), "")
	}
	// A plain file keeps what is not overwritten: another value than was set.
	plant(t, h.mount, filepath.Join(second, "memory.max"), "maximum")
	refusal(t, h.fill(second, proc.ID{PID: 7}, controls), "memory.max reads back as 4096mum, not 4096")
	plant(t, h.mount, filepath.Join(second, "memory.max"), "")
	refusal(t, h.fill(second, proc.ID{PID: 7}, controls), "cannot be moved into the group "+second)
	plant(t, h.mount, filepath.Join(second, "cgroup.procs"), "")
	if err := h.fill(second, proc.ID{PID: 7}, controls); err != nil {
		t.Error(err)
	}
	if got, _ := h.read(second, "cgroup.procs"); got != "7" {
		t.Errorf("moved %q", got)
	}
}

// Promise: only the groups of dead owners in this pid namespace are swept.
func TestOwners(t *testing.T) {
	self, err := machine().self()
	if err != nil {
		t.Fatal(err)
	}
	if self.dead(self) {
		t.Error("this program is dead")
	}
	reused := self
	reused.Start++
	if !reused.dead(self) {
		t.Error("one that had this number before is not dead")
	}
	elsewhere := reused
	elsewhere.namespace++
	if elsewhere.dead(self) {
		t.Error("one of another namespace is dead")
	}
	h := planted(t, "/a", nil)
	for i, o := range []owner{self, reused, elsewhere} {
		plant(t, h.mount, "a/"+name{label: strconv.Itoa(i), owner: o, attempt: 1}.String()+"/cgroup.events", "populated 0\n")
	}
	if err := os.Remove(filepath.Join(h.mount, "a", name{label: "1", owner: reused, attempt: 1}.String(), "cgroup.events")); err != nil {
		t.Fatal(err) // the files of a real group go with it
	}
	swept, err := h.sweep(t.Context(), nil, self)
	if err != nil || len(swept) != 1 || swept[0] != "/a/"+(name{label: "1", owner: reused, attempt: 1}).String() {
		t.Errorf("swept %q, %v", swept, err)
	}
	if left := h.besides(); len(left) != 2 {
		t.Errorf("left are %v", left)
	}
}

// Promise: whose limit it was is told by the counters of the group and of those
// above, as far as they moved.
func TestWhoseLimit(t *testing.T) {
	const none, once = "low 0\nhigh 0\nmax 9\noom 0\noom_kill 0\n", "low 0\nhigh 0\nmax 9\noom 1\noom_kill 0\n"
	for _, c := range []struct {
		name, own, above string
		want             Usage
	}{
		{"nothing", none, none, Usage{}},
		{"own", once, none, Usage{Kills: 2, Limit: Own}},
		{"above", none, once, Usage{Kills: 2, Limit: Above, Group: "/a"}},
		{"the machine", none, none, Usage{Kills: 2, Limit: Above}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := planted(t, "/a/b", map[string]string{
				"a/b/memory.events": none, "a/b/memory.events.local": none, "a/b/memory.peak": "123\n", "a/b/pids.events": "max 4\n",
				"a/b/cgroup.procs": "", "a/memory.events.local": none, "memory.events.local": "oom 7\n",
			})
			e := h.watch("/a/b", "")
			if c.want.Kills > 0 {
				plant(t, h.mount, "a/b/memory.events", "oom 1\noom_kill 2\n")
			}
			plant(t, h.mount, "a/b/memory.events.local", c.own)
			plant(t, h.mount, "a/memory.events.local", c.above)
			got := e.close()
			if got.Kills != c.want.Kills || got.Limit != c.want.Limit || got.Group != c.want.Group {
				t.Errorf("%+v, want %+v", got, c.want)
			}
			if got.Peak == nil || *got.Peak != 123 || got.Refused != 4 || len(got.Killed) > 0 {
				t.Errorf("besides: %+v", got)
			}
		})
	}
}

// Promise: kills are counted also where the group was removed before its counter
// was read, and nobody else's are, as far as the two can be told apart.
func TestRemovedWithItsCounters(t *testing.T) {
	count := func(kills int) string { return fmt.Sprintf("oom 0\noom_kill %d\n", kills) }
	const quiet = "oom 0\n"
	for _, c := range []struct {
		name string
		// all is what the group that stays counts at the start, at the last look
		// and at the end; own is what the group counts at the last look.
		all       [3]int
		own       int
		populated string
		above     string // what the group above has run out of
		want      Usage
	}{
		{"nothing happened", [3]int{7, 7, 7}, 0, "populated 1", quiet, Usage{}},
		{"one unseen", [3]int{7, 7, 8}, 0, "populated 1", quiet, Usage{Kills: 1, Limit: Own}},
		{"one seen, one unseen", [3]int{7, 8, 9}, 1, "populated 1", quiet, Usage{Kills: 2, Limit: Own}},
		{"others before", [3]int{7, 20, 20}, 0, "populated 1", quiet, Usage{}},
		{"others before and one unseen", [3]int{7, 20, 21}, 0, "populated 1", quiet, Usage{Kills: 1, Limit: Own}},
		{"others after its end", [3]int{7, 8, 20}, 1, "populated 0", quiet, Usage{Kills: 1, Limit: Above}},
		{"unseen, of the limit above", [3]int{7, 7, 8}, 0, "populated 1", "oom 1\n", Usage{Kills: 1, Limit: Above, Group: "/m/s"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := planted(t, "/m/s/g", map[string]string{
				"m/memory.events": count(c.all[0]), "m/s/memory.events.local": quiet,
				"m/s/g/memory.events": count(0), "m/s/g/memory.events.local": quiet, "m/s/g/cgroup.events": "populated 1\n",
				"m/s/g/cgroup.procs": "",
			})
			e := h.watch("/m/s/g", "/m")
			e.stop.Close()
			<-e.done
			e.stop = nil
			plant(t, h.mount, "m/memory.events", count(c.all[1]))
			plant(t, h.mount, "m/s/g/memory.events", count(c.own))
			plant(t, h.mount, "m/s/g/cgroup.events", c.populated+"\n")
			e.look()
			e.memory.Close() // of a removed group the kernel says as little
			plant(t, h.mount, "m/memory.events", count(c.all[2]))
			plant(t, h.mount, "m/s/memory.events.local", c.above)
			if got := e.close(); got.Kills != c.want.Kills || got.Limit != c.want.Limit || got.Group != c.want.Group {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

// Promise: only sockets are dialled, whatever the environment says.
func TestAddresses(t *testing.T) {
	for bus, want := range map[string]string{
		"":                                 "",
		"unixexec:path=/bin/touch,argv1=x": "",
		"autolaunch:":                      "",
		"tcp:host=localhost,port=1":        "",
		"unix:":                            "",
		"unix:tmpdir=/tmp":                 "",
		"unix:path=":                       "",
		"unix:path=%zz":                    "",
		"tcp:path=/x":                      "",
		"unix:path=/b":                     "/b",
		"unix:guid=0,path=/a%20b;tcp:x=y":  "/a b",
		"unix:abstract=/tmp/x,guid=1":      "@/tmp/x",
	} {
		ways := addresses(map[string]string{"XDG_RUNTIME_DIR": "/run/x", "DBUS_SESSION_BUS_ADDRESS": bus})
		all := []address{{"/run/x/systemd/private", true}, {socket: want}, {socket: "/run/x/bus"}}
		if want == "" {
			all = slices.Delete(all, 1, 2)
		}
		if !slices.Equal(ways, all) {
			t.Errorf("with %q the ways are %+v, want %+v", bus, ways, all)
		}
	}
	if got := addresses(nil)[0].socket; got != "/run/user/"+strconv.Itoa(os.Getuid())+"/systemd/private" {
		t.Errorf("without an environment it is %q", got)
	}
}

// Promise: a manager that has the same process numbers is talked to.
func TestSamePIDs(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := samePIDs(conn.(*net.UnixConn)); err != nil {
		t.Error(err)
	}
}

// privateManager serves whoever comes to a manager's own socket, and returns the
// runtime directory that leads there.
func privateManager(t *testing.T, serve func(net.Conn)) (runtime string) {
	t.Helper()
	runtime = t.TempDir()
	socket := filepath.Join(runtime, privateSocket)
	if err := os.Mkdir(filepath.Dir(socket), 0o755); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return runtime
}

// Promise: a manager that lets one in and says nothing more is given up.
func TestSilentManager(t *testing.T) {
	dir := privateManager(t, letIn)
	h := planted(t, "/own", map[string]string{"own/cgroup.controllers": "", "own/cgroup.procs": ""})
	plant(t, h.proc, "self/ns/pid", "")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := prepare(ctx, h, Request{ID: "x", Host: Host{Env: []string{"XDG_RUNTIME_DIR=" + dir}}})
		ended <- err
	}()
	select {
	case err := <-ended:
		refusal(t, err, "does not answer in "+dir)
	case <-time.After(time.Minute):
		t.Fatal("it is waited for without end")
	}
}

// Promise: a manager of another machine, to which a socket of this one is
// forwarded, is asked for nothing.
func TestManagerOfAnotherMachine(t *testing.T) {
	if name, err := os.ReadFile("/etc/machine-id"); err != nil || len(strings.TrimSpace(string(name))) != machineIDLength {
		t.Skip("this machine has no name")
	}
	asked := make(chan string, 100)
	dir := privateManager(t, func(conn net.Conn) { answerAsAnother(conn, asked) })
	h := planted(t, "/own", map[string]string{"own/cgroup.controllers": "", "own/cgroup.procs": ""})
	plant(t, h.proc, "self/ns/pid", "")
	_, err := prepare(t.Context(), h, Request{ID: "x", Host: Host{Env: []string{"XDG_RUNTIME_DIR=" + dir}}})
	refusal(t, err, errOtherMachine.Error())
	for len(asked) > 0 {
		// To listen asks for nothing.
		if member := <-asked; member != "GetMachineId" && member != "AddMatch" {
			t.Errorf("it was asked for %s", member)
		}
	}
}

// answerAsAnother tells who asks for it the name of no machine, and notes what it
// was asked.
func answerAsAnother(conn net.Conn, asked chan<- string) {
	defer conn.Close()
	from := bufio.NewReader(conn)
	for line := ""; line != "BEGIN\r\n"; {
		var err error
		if line, err = from.ReadString('\n'); err != nil {
			return
		}
		line = strings.TrimLeft(line, "\x00")
		if answer := greeting(strings.TrimSpace(line)); answer != "" {
			fmt.Fprintf(conn, "%s\r\n", answer)
		}
	}
	for {
		question, err := dbus.DecodeMessage(from)
		if err != nil {
			return
		}
		asked <- question.Headers[dbus.FieldMember].Value().(string)
		const name = "00000000000000000000000000000000"
		answer := &dbus.Message{Type: dbus.TypeMethodReply, Body: []any{name}, Headers: map[dbus.HeaderField]dbus.Variant{
			dbus.FieldReplySerial: dbus.MakeVariant(question.Serial()), dbus.FieldSignature: dbus.MakeVariant(dbus.SignatureOf(name)),
		}}
		if err := answer.EncodeTo(conn, binary.LittleEndian); err != nil {
			return
		}
	}
}

// letIn answers who asks to be let in, and nothing else.
func letIn(conn net.Conn) {
	defer conn.Close()
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		answer := greeting(strings.TrimLeft(lines.Text(), "\x00"))
		if answer == "" {
			continue
		}
		if _, err := conn.Write([]byte(answer + "\r\n")); err != nil {
			return
		}
	}
}

// greeting is the answer to a line of who asks to be let in (D-Bus specification,
// authentication protocol); empty for none.
func greeting(line string) string {
	switch {
	case line == "AUTH":
		return "REJECTED EXTERNAL"
	case line == "AUTH EXTERNAL":
		return "DATA"
	case strings.HasPrefix(line, "DATA"), strings.HasPrefix(line, "AUTH EXTERNAL"):
		return "OK 0123456789abcdef0123456789abcdef"
	case strings.HasPrefix(line, "NEGOTIATE"):
		return "ERROR"
	default:
		return ""
	}
}
