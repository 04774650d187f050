package spawn

// Limits bound what a command may take of the machine, and each process that
// descends from it (setrlimit(2)); nil leaves what the program has, but for Core.
// They are hard limits: only root can raise them again.
type Limits struct {
	// Processes is the most processes and threads that the user may have, those
	// of other runs included. It does not bind root.
	Processes *uint64
	// CPU is the processor time of one process, in seconds. It gets SIGXCPU
	// then, and SIGKILL a second later.
	CPU *uint64
	// FileSize is the largest file that can be written, in bytes.
	FileSize *uint64
	// OpenFiles is one more than the highest descriptor.
	OpenFiles *uint64
	// Core is the largest core dump, in bytes; nil is none. Where the program makes
	// none itself, nil leaves its own limits, and the command may raise its soft
	// one as far as they go.
	Core *uint64
}
