//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package proc

import "os"

// Strays lists what lives of the recorded processes. Those that are older than
// their run are doubtful. Others are not found: the environments of other
// processes cannot be read here.
func Strays(recorded []ID, _ string, after uint64) (strays, doubtful []Process, err error) {
	above, err := Ancestors()
	if err != nil {
		return nil, nil, err
	}
	for _, id := range recorded {
		switch {
		case above[id.PID] || !id.Alive():
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

// Ancestors returns this process and its parent; what is above that cannot be
// listed everywhere.
func Ancestors() (map[int]bool, error) {
	return map[int]bool{os.Getpid(): true, os.Getppid(): true}, nil
}
