package guard

import (
	"os"
	"reflect"
	"testing"
	"time"

	"cage/rules"
	"cage/watch"
)

// A comparison that is asked for leaves those that come by the clock their turn,
// also where it had to wait for one of them.
func TestCatchUpKeepsTheClockGoing(t *testing.T) {
	r := newRig(t)
	r.Rescans, r.Interval = true, time.Millisecond
	r.startRescan(t.Context(), request{})
	r.catchUp(t.Context())
	if r.rescan.running {
		t.Error("the rescan that was under way is still waited for")
	}
	select {
	case <-r.timers.rescan.C:
	case <-time.After(30 * time.Second):
		t.Fatal("no rescan comes any more")
	}
}

// What the watcher says is for the loop: it may be that hints were lost, and then
// more is to be done than to compare.
func TestCatchUpTakesNoHints(t *testing.T) {
	r := newRig(t)
	r.Watcher = watch.New(watch.Options{Plan: r.Plan, Trees: r.Trees})
	t.Cleanup(func() { r.Watcher.Close() })
	r.Watcher.Scan()
	added := rules.Path{Rel: ".env"}
	if err := os.WriteFile(r.abs(added), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	select {
	case <-r.Watcher.Ready():
	case <-time.After(30 * time.Second):
		t.Skip("this system gives no events")
	}
	r.catchUp(t.Context())
	if reflect.DeepEqual(r.Watcher.Take(), watch.Batch{}) {
		t.Error("hints were taken and not acted upon")
	}
}

// A rescan that takes longer than the interval is not followed by another one at
// once because the alarm rang meanwhile. Who asks for one meanwhile gets it.
func TestAlarmDuringARescan(t *testing.T) {
	r := newRig(t)
	r.rescan.running = true
	r.rescanInTime(t.Context())
	if r.rescan.again != nil {
		t.Error("another rescan was asked for")
	}
	r.startRescan(t.Context(), request{walk: true})
	if r.rescan.again == nil || !r.rescan.again.walk {
		t.Error("what was asked for meanwhile is forgotten")
	}
	r.rescan.running = false
}
