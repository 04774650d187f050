package guard

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// crowd returns how long, since the machine started, some program was ready to
// run and had no processor. It is 0 where the kernel keeps no such account
// (CONFIG_PSI).
func crowd() time.Duration {
	account, err := os.ReadFile("/proc/pressure/cpu")
	if err != nil {
		return 0
	}
	// some avg10=0.00 avg60=0.00 avg300=0.00 total=<microseconds>
	line, _, _ := bytes.Cut(account, []byte("\n"))
	_, total, _ := bytes.Cut(line, []byte("total="))
	us, err := strconv.ParseInt(string(total), 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(us) * time.Microsecond
}
