package console

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stop stops the program by the default action of sig, which the kernel leaves
// out in an orphaned process group. The Go runtime keeps its handler of a
// signal that was once received, also after signal.Reset, so the action is
// asked of the kernel itself. A signal that a thread sends to itself acts
// before the call returns: the handler is back for whatever comes later.
func stop(sig syscall.Signal) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var handler, byDefault sigaction
	if setAction(sig, &byDefault, &handler) != 0 {
		return
	}
	// Fails for no thread of this process.
	_ = unix.Tgkill(os.Getpid(), unix.Gettid(), sig)
	setAction(sig, &handler, nil)
}

// sigaction is the kernel's struct sigaction on 64-bit machines. All zero it is
// the default action.
type sigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

func setAction(sig syscall.Signal, now, before *sigaction) syscall.Errno {
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig),
		uintptr(unsafe.Pointer(now)), uintptr(unsafe.Pointer(before)), unsafe.Sizeof(now.mask), 0, 0)
	return errno
}

func dropInput(fd int) error { return unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) }
