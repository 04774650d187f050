package proc

import (
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A keeper that was stopped when its program died has what it adopted, and is
// ended with it.
func TestStraysOfAStoppedKeeper(t *testing.T) {
	mark := marker(t)
	dir := t.TempDir()
	if err := os.Symlink("/bin/sh", dir+"/"+KeeperName); err != nil {
		t.Fatal(err)
	}
	self, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	// The mark is all that the run has; its keeper has none.
	script := `PATH=$1:$PATH; "$2" -c 'env "$0" sleep 1000 & kill -STOP $$; wait' "$3" &`
	pid := spawn(t, "/bin/sh", "-c", script, "sh", dir, KeeperName, mark)
	waitFor(t, pid)
	var strays []Process
	keeper := -1
	eventually(t, "both are found, and the keeper is stopped", func() bool {
		var doubtful []Process
		strays, doubtful, err = Strays(nil, mark, self.Start)
		keeper = slices.IndexFunc(strays, func(p Process) bool { return p.ID.MayBeStopped() })
		return err == nil && len(doubtful) == 0 && len(strays) == 2 && keeper >= 0
	})
	if run := strays[1-keeper]; run.Parent != strays[keeper].PID {
		t.Errorf("the others are %v", run)
	}
	var ids []ID
	for _, p := range strays {
		ids = append(ids, p.ID)
	}
	if left := EndAll(ids, time.Second, patience); len(left) > 0 {
		t.Errorf("left are %v", left)
		_ = left[0].Signal(unix.SIGKILL)
	}
}
