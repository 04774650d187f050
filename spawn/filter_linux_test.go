package spawn

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
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
				r := refusals{Setsid: set&1 != 0, Setpgid: set&2 != 0, Injection: set&4 != 0}
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
				check("setpgid", abi.setpgid, 0, r.Setpgid)
				for _, request := range []uint64{unix.TIOCSTI, unix.TIOCLINUX} {
					for _, high := range []uint64{0, 1 << 32, 1 << 63, 0xffffffff << 32} {
						check("ioctl", abi.ioctl, high|request, r.Injection)
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

// calls are those to try. Standard input is no terminal, so that an ioctl which
// passes changes none.
func calls() []call {
	return []call{
		{"setsid", refusals{Setsid: true}, unix.SYS_SETSID, 66, [2]uint64{}},
		{"setpgid", refusals{Setpgid: true}, unix.SYS_SETPGID, 57, [2]uint64{0, 0}},
		{"TIOCSTI", refusals{Injection: true}, unix.SYS_IOCTL, 54, [2]uint64{0, unix.TIOCSTI}},
		{"TIOCLINUX", refusals{Injection: true}, unix.SYS_IOCTL, 54, [2]uint64{0, unix.TIOCLINUX}},
	}
}

// callAsAsked makes the call that its environment asks for, and says what came
// of it.
func callAsAsked() int {
	var number, first, second uintptr
	if _, err := fmt.Sscan(os.Getenv(callVariable), &number, &first, &second); err != nil {
		fmt.Println(err)
		return 1
	}
	_, _, errno := unix.RawSyscall(number, first, second, 0)
	fmt.Println(int(errno))
	return 0
}

const callVariable = "SPAWN_TEST_CALL"

func readAll(t *testing.T, from *os.File) string {
	t.Helper()
	text, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// answer runs a command under a filter and returns its first word.
func answer(t *testing.T, r *proc.Reaper, set setup, path string, env ...string) string {
	t.Helper()
	ours, theirs := pipe(t)
	tree, err := startTree(r, proc.Spec{
		Path: path, Args: []string{path}, Env: env, Files: []*os.File{nil, theirs, os.Stderr},
	}, set)
	theirs.Close()
	if err != nil {
		t.Fatal(err)
	}
	said := readAll(t, ours)
	<-tree.Gone()
	exit := <-tree.Exited()
	return strings.TrimSpace(fmt.Sprintf("%s exit %d", strings.TrimSpace(said), exit.Status()))
}

// The kernel takes the filter and refuses what it names, and nothing else; also
// with high bits in a request, and through x32 where the kernel has it.
func TestFilterHolds(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := newReaper(t)
	outcome := func(set refusals, number, first, second uint64) string {
		t.Helper()
		return answer(t, r, setup{Refusals: set}, self,
			roleVariable+"="+roleCall, fmt.Sprintf("%s=%d %d %d", callVariable, number, first, second))
	}
	refused := fmt.Sprintf("%d exit 0", int(unix.EPERM))
	for _, c := range calls() {
		if got := outcome(c.refused, uint64(c.number), c.arguments[0], c.arguments[1]); got != refused {
			t.Errorf("%s: got %s", c.name, got)
		}
		others := refusals{!c.refused.Setsid, !c.refused.Setpgid, !c.refused.Injection}
		if got := outcome(others, uint64(c.number), c.arguments[0], c.arguments[1]); got == refused {
			t.Errorf("%s is refused though only others are", c.name)
		}
		if c.number == unix.SYS_IOCTL {
			if got := outcome(c.refused, uint64(c.number), c.arguments[0], c.arguments[1]|1<<63|1<<32); got != refused {
				t.Errorf("%s with high bits: got %s", c.name, got)
			}
		}
		if runtime.GOARCH == "amd64" {
			if got := outcome(c.refused, uint64(c.number|x32Bit), c.arguments[0], c.arguments[1]); got != refused {
				t.Errorf("%s by x32: got %s", c.name, got)
			}
		}
	}
}

// The same through the ABI of 32-bit programs, which has other numbers.
func TestFilterHoldsForI386(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("only amd64 runs the programs of i386")
	}
	if err := exec.Command(i386Program(t, 20, 0, 0)).Run(); errors.Is(err, unix.ENOEXEC) {
		t.Skip("this kernel runs no program of i386")
	}
	r := newReaper(t)
	for _, c := range calls() {
		program := i386Program(t, c.i386, uint32(c.arguments[0]), uint32(c.arguments[1]))
		run := func(set refusals) string { return answer(t, r, setup{Refusals: set}, program) }
		if run(refusals{}) == "exit 0" {
			t.Fatalf("%s is refused without a filter", c.name)
		}
		if got := run(c.refused); got != "exit 0" {
			t.Errorf("%s is not refused: %s", c.name, got)
		}
	}
}

// i386Program writes a 32-bit program that makes one call and exits with 0 if
// the answer was EPERM, else with 1.
func i386Program(t *testing.T, number, first, second uint32) string {
	t.Helper()
	word := binary.LittleEndian.AppendUint32
	code := word([]byte{0xb8}, number)        // mov eax, number
	code = word(append(code, 0xbb), first)    // mov ebx, first
	code = word(append(code, 0xb9), second)   // mov ecx, second
	code = append(code, 0x31, 0xd2)           // xor edx, edx
	code = append(code, 0xcd, 0x80)           // int 0x80
	code = append(code, 0x31, 0xdb)           // xor ebx, ebx
	code = append(code, 0x83, 0xf8, 0xff)     // cmp eax, -EPERM
	code = append(code, 0x0f, 0x95, 0xc3)     // setne bl
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
