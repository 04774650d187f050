package spawn

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"cage/internal/proc"
)

// verdict runs a filter, as the kernel would, over one call.
func verdict(t *testing.T, vm *bpf.VM, arch, number uint32, request uint64) uint32 {
	t.Helper()
	// seccomp_data, in words of the machine's own order; the interpreter reads
	// each as if it had come over a network.
	data := make([]byte, 64)
	for at, value := range map[int]uint32{0: number, 4: arch, 24: uint32(request), 28: uint32(request >> 32)} {
		binary.BigEndian.PutUint32(data[at:], value)
	}
	got, err := vm.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(got)
}

const (
	allowed = unix.SECCOMP_RET_ALLOW
	denied  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	other   = unix.TCGETS // an ioctl that every terminal program needs
)

// The calls of every ABI are judged by the numbers that they have there, and by
// the half of an ioctl's request that the kernel reads.
func TestFilterJudges(t *testing.T) {
	const x32 = 0x40000000
	for _, abi := range []struct {
		name                   string
		arch                   uint32
		setsid, setpgid, ioctl uint32
		elsewhere              []uint32 // what the calls are called in other ABIs
	}{
		{"amd64", unix.AUDIT_ARCH_X86_64, 112, 109, 16, []uint32{66, 57, 54, 157, 154, 29}},
		{"x32", unix.AUDIT_ARCH_X86_64, x32 | 112, x32 | 109, x32 | 514, []uint32{x32 | 66, x32 | 57, x32 | 54}},
		{"x32 by the number of amd64", unix.AUDIT_ARCH_X86_64, x32 | 112, x32 | 109, x32 | 16, nil},
		{"amd64 by the number of x32", unix.AUDIT_ARCH_X86_64, 112, 109, 514, nil},
		{"i386", unix.AUDIT_ARCH_I386, 66, 57, 54, []uint32{112, 109, 16, 514, 157, 154, 29, x32 | 66}},
		{"arm64", unix.AUDIT_ARCH_AARCH64, 157, 154, 29, []uint32{112, 109, 16, 66, 57, 54}},
		{"arm", unix.AUDIT_ARCH_ARM, 66, 57, 54, []uint32{112, 109, 16, 157, 154, 29}},
	} {
		t.Run(abi.name, func(t *testing.T) {
			for set := range 8 {
				r := refusals{Setsid: set&1 != 0, Background: set&2 != 0, Injection: set&4 != 0}
				vm, err := bpf.NewVM(r.program())
				if err != nil {
					t.Fatal(err)
				}
				check := func(what string, number uint32, request uint64, refuses bool) {
					t.Helper()
					want := uint32(allowed)
					if refuses {
						want = denied
					}
					if got := verdict(t, vm, abi.arch, number, request); got != want {
						t.Errorf("%+v: %s (%d, %#x): got %#x, want %#x", r, what, number, request, got, want)
					}
				}
				check("setsid", abi.setsid, 0, r.Setsid)
				check("setpgid", abi.setpgid, 0, r.Background)
				for request, refuses := range map[uint64]bool{
					unix.TIOCSTI: r.Injection, unix.TIOCLINUX: r.Injection, unix.TIOCSPGRP: r.Background, unix.TIOCNOTTY: r.Background,
				} {
					for _, high := range []uint64{0, 1 << 32, 1 << 63, 0xffffffff << 32} {
						check("ioctl", abi.ioctl, high|request, refuses)
					}
					check("ioctl of a neighbour", abi.ioctl, request+1, false)
					check("ioctl of a neighbour", abi.ioctl, request-1, false)
					check("another call with the same argument", abi.ioctl+1, request, false)
				}
				check("ioctl of something else, high bits alone", abi.ioctl, unix.TIOCSTI<<32|other, false)
				for _, number := range slices.Concat(abi.elsewhere, []uint32{
					0, 1, 511, 512, 1023, 1 << 31, 0xffffffff,
					abi.setsid - 1, abi.setsid + 1, abi.setpgid - 1, abi.setpgid + 1, abi.ioctl - 1,
				}) {
					check("another call", number, unix.TIOCSTI, false)
				}
			}
		})
	}
	for _, arch := range []uint32{0, unix.AUDIT_ARCH_RISCV64, unix.AUDIT_ARCH_X86_64 + 1, unix.AUDIT_ARCH_ARMEB} {
		vm, err := bpf.NewVM(refusals{Setsid: true}.program())
		if err != nil {
			t.Fatal(err)
		}
		if got := verdict(t, vm, arch, 1, 0); got != unix.SECCOMP_RET_KILL_PROCESS {
			t.Errorf("the unknown architecture %#x: got %#x", arch, got)
		}
	}
}

// The numbers of the ABI that this test was built for are the compiler's too.
func TestFilterKnowsItsOwnNumbers(t *testing.T) {
	arch, known := map[string]uint32{
		"amd64": unix.AUDIT_ARCH_X86_64, "386": unix.AUDIT_ARCH_I386, "arm64": unix.AUDIT_ARCH_AARCH64, "arm": unix.AUDIT_ARCH_ARM,
	}[runtime.GOARCH]
	if !known {
		t.Skipf("no filter is built for %s", runtime.GOARCH)
	}
	at := slices.IndexFunc(abis(), func(a abi) bool { return a.arch == arch })
	if own := abis()[at]; own.setsid != unix.SYS_SETSID || own.setpgid != unix.SYS_SETPGID || own.ioctl[0] != unix.SYS_IOCTL {
		t.Errorf("%+v", own)
	}
}

// call is a system call that a program under a filter makes.
type call struct {
	name    string
	refused refusals
	// number is how this program's own ABI has it, i386 how that has it.
	number, i386 uint32
	arguments    [2]uint64
}

// calls are those to try. None that passes has an effect on the next: the group
// is impossible, and standard input is no terminal.
func calls() []call {
	setsid, background, injection := refusals{Setsid: true}, refusals{Background: true}, refusals{Injection: true}
	const high = 1<<63 | 1<<32
	list := []call{
		{"setpgid", background, unix.SYS_SETPGID, 57, [2]uint64{0, math.MaxUint32}},
		{"TIOCSPGRP", background, unix.SYS_IOCTL, 54, [2]uint64{0, unix.TIOCSPGRP}},
		{"TIOCNOTTY", background, unix.SYS_IOCTL, 54, [2]uint64{0, unix.TIOCNOTTY}},
		{"setsid", setsid, unix.SYS_SETSID, 66, [2]uint64{}},
		{"TIOCSTI", injection, unix.SYS_IOCTL, 54, [2]uint64{0, unix.TIOCSTI}},
		{"TIOCLINUX", injection, unix.SYS_IOCTL, 54, [2]uint64{0, unix.TIOCLINUX}},
		{"TIOCSPGRP with high bits", background, unix.SYS_IOCTL, 54, [2]uint64{0, unix.TIOCSPGRP | high}},
		{"TIOCSTI with high bits", injection, unix.SYS_IOCTL, 54, [2]uint64{0, unix.TIOCSTI | high}},
		{"TIOCLINUX with high bits", injection, unix.SYS_IOCTL, 54, [2]uint64{0, unix.TIOCLINUX | high}},
	}
	if runtime.GOARCH == "amd64" {
		for _, c := range list {
			c.name, c.number = c.name+" by x32", c.number|x32Bit
			list = append(list, c)
		}
	}
	return list
}

// makeCalls makes all calls and says which are refused.
func makeCalls() int {
	for _, c := range calls() {
		if _, _, errno := unix.RawSyscall(uintptr(c.number), uintptr(c.arguments[0]), uintptr(c.arguments[1]), 0); errno == unix.EPERM {
			fmt.Println(c.name)
		}
	}
	return 0
}

// sets are the refusals, each by itself, and none of them.
func sets() []refusals {
	return []refusals{{}, {Setsid: true}, {Background: true}, {Injection: true}}
}

// runFiltered runs a program under a filter and returns what it says and how it
// exits.
func runFiltered(t *testing.T, r *proc.Reaper, set refusals, path string, env ...string) (said string, code int) {
	t.Helper()
	ours, theirs := pipe(t)
	tree, err := startTree(r, proc.Spec{
		Path: path, Args: []string{path}, Env: env, Files: []*os.File{nil, theirs, os.Stderr},
	}, setup{Refusals: set}, nil)
	theirs.Close()
	if err != nil {
		t.Fatal(err)
	}
	said = readAll(t, ours)
	<-tree.Gone()
	exit := <-tree.Exited()
	return said, exit.Status()
}

func readAll(t *testing.T, from *os.File) string {
	t.Helper()
	text, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The kernel takes the filter and refuses what it names, and nothing else; also
// with high bits in a request, and through x32, whether it has that or not.
func TestFilterHolds(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := newReaper(t)
	for _, set := range sets() {
		var want []string
		for _, c := range calls() {
			if c.refused == set {
				want = append(want, c.name)
			}
		}
		said, code := runFiltered(t, r, set, self, roleVariable+"="+roleCall, "GORACE="+os.Getenv("GORACE"))
		if got := strings.Split(strings.TrimSuffix(said, "\n"), "\n"); code != 0 || strings.Join(got, ", ") != strings.Join(want, ", ") {
			t.Errorf("%+v: refused are %q, exit %d, want %q", set, got, code, want)
		}
	}
}

// The same through the ABI of 32-bit programs, which has other numbers.
func TestFilterHoldsForI386(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("only amd64 runs the programs of i386")
	}
	all := calls()[:6]
	program := i386Program(t, all)
	if err := exec.Command(program).Run(); errors.Is(err, unix.ENOEXEC) {
		t.Skip("this kernel runs no program of i386")
	}
	r := newReaper(t)
	for _, set := range sets() {
		want := 0
		for i, c := range all {
			if c.refused == set {
				want |= 1 << i
			}
		}
		if _, got := runFiltered(t, r, set, program); got != want {
			t.Errorf("%+v: refused are %06b, want %06b", set, got, want)
		}
	}
}

// i386Program writes a 32-bit program that makes calls and exits with a bit set
// for each that is refused with EPERM, the first one's lowest.
func i386Program(t *testing.T, calls []call) string {
	t.Helper()
	word := binary.LittleEndian.AppendUint32
	code := []byte{0x31, 0xf6} // xor esi, esi
	for i, c := range calls {
		code = word(append(code, 0xb8), c.i386)                 // mov eax, number
		code = word(append(code, 0xbb), uint32(c.arguments[0])) // mov ebx, first
		code = word(append(code, 0xb9), uint32(c.arguments[1])) // mov ecx, second
		code = append(code, 0x31, 0xd2)                         // xor edx, edx
		code = append(code, 0xcd, 0x80)                         // int 0x80
		code = append(code, 0x83, 0xf8, 0xff)                   // cmp eax, -EPERM
		code = append(code, 0x75, 0x03)                         // jne over the next
		code = append(code, 0x83, 0xce, 1<<i)                   // or esi, bit
	}
	code = append(code, 0x89, 0xf3)           // mov ebx, esi
	code = word(append(code, 0xb8), 1)        // mov eax, exit
	code = append(code, 0xcd, 0x80)           // int 0x80
	const base, headers = 0x08048000, 52 + 32 // where it is loaded, and the size of both headers
	size := uint32(headers + len(code))
	var file bytes.Buffer
	for _, part := range []any{
		elf.Header32{
			Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS32), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
			Type:  uint16(elf.ET_EXEC), Machine: uint16(elf.EM_386), Version: uint32(elf.EV_CURRENT),
			Entry: base + headers, Phoff: 52, Ehsize: 52, Phentsize: 32, Phnum: 1,
		},
		elf.Prog32{
			Type: uint32(elf.PT_LOAD), Vaddr: base, Paddr: base, Filesz: size, Memsz: size,
			Flags: uint32(elf.PF_R | elf.PF_X), Align: 0x1000,
		},
		code,
	} {
		if err := binary.Write(&file, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Join(t.TempDir(), "i386")
	if err := os.WriteFile(name, file.Bytes(), 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

// withoutFilters becomes roleStart on a system that has no filters: one filter
// sees to that.
func withoutFilters() int {
	refuse := bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)}
	filter := append([]bpf.Instruction{bpf.LoadAbsolute{Off: numberAt, Size: word}}, where(unix.SYS_SECCOMP, refuse)...)
	return startUnder(append(filter, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}))
}

// withoutSessions becomes roleStart where another run refuses sessions.
func withoutSessions() int { return startUnder(refusals{Setsid: true, Background: true}.program()) }

func startUnder(filter []bpf.Instruction) int {
	runtime.LockOSThread()
	err := install(filter)
	if err == nil {
		err = unix.Exec("/proc/self/exe", os.Args, append(os.Environ(), roleVariable+"="+roleStart))
	}
	fmt.Println(err)
	return 1
}

// foreignVariable has the number of the child that startEach was given.
const foreignVariable = "SPAWN_TEST_FOREIGN"

// startEach tries to start a command in each mode and says what came of it. The
// child that it was given ends with it.
func startEach(stage Stage) int {
	r, err := proc.NewReaper()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer r.Close()
	for _, terminal := range []Terminal{NoTerminal, Foreground} {
		for _, lifetime := range []Lifetime{LifetimeRun, LifetimeTree, LifetimeLeave} {
			run, err := stage.Start(r, Command{
				Path: "echo", Args: []string{"it runs"}, Stdout: os.Stdout, Lifetime: lifetime, Terminal: terminal,
			})
			if err != nil {
				fmt.Println(err)
				continue
			}
			<-run.Gone()
		}
	}
	if _, err := stage.Start(r, Command{Path: "echo", Lifetime: LifetimeTree, Terminal: NewPTY}); err != nil {
		fmt.Println(err)
	}
	if foreign, err := strconv.Atoi(os.Getenv(foreignVariable)); err == nil {
		_ = unix.Kill(foreign, unix.SIGKILL)
	}
	return 0
}

// Where the system does not allow a mode the command never runs with a weaker
// rule: what is missing is named, and what can be asked for instead.
func TestRefusedRatherThanWeaker(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const (
		unfiltered = "this system cannot filter system calls (seccomp), which is to keep the run in one session: " +
			"function not implemented; run it with the lifetime tree\n"
		sessionless = `cannot run "echo": its terminal takes a session or process group of its own, which this program is refused, ` +
			"as in a run with the lifetime run; take the terminal foreground\n"
		typing = "the keeper refuses: this system cannot filter system calls (seccomp), which is to keep the run from typing into the terminal: " +
			"function not implemented; run it with the lifetime tree and the terminal foreground or none\n"
		runs = "it runs\n"
	)
	for role, says := range map[string]func(by string) string{
		roleBare:   func(by string) string { return strings.Repeat(by+unfiltered+runs+runs, 2) + typing },
		roleNested: func(string) string { return strings.Repeat(sessionless, 3) + strings.Repeat(runs, 3) + sessionless },
	} {
		for before, by := range map[string]string{"": "", "sleep 1000 >/dev/null 2>&1 & export " + foreignVariable + "=$!; ": "the keeper refuses: "} {
			cmd := exec.Command("sh", "-c", before+`exec "$0"`, self)
			cmd.Env = append(os.Environ(), roleVariable+"="+role)
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != says(by) {
				t.Errorf("%s, %s%q, %v, want %q", role, before, out, err, says(by))
			}
		}
	}
}
