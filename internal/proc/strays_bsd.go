//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package proc

import "os"

// Strays lists what lives of the recorded processes. Those that are older than
// their run are doubtful. Others are not found: the environments of other
// processes cannot be read here. This program and its parent are neither; what is
// above that cannot be listed everywhere.
func Strays(recorded []ID, _ string, after uint64) (strays, doubtful []Process, err error) {
	for _, id := range recorded {
		switch {
		case id.PID == os.Getpid() || id.PID == os.Getppid() || !id.Alive():
		case id.Start < after:
			doubtful = append(doubtful, Process{ID: id})
		default:
			strays = append(strays, Process{ID: id})
		}
	}
	return strays, doubtful, nil
}

// Holding lists nothing: the files of other processes cannot be seen here.
func Holding(string) []Process { return nil }
